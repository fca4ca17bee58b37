"""`==`, `!=`, `in` and `<` of objects whose class is written in C: by what they hold, not by identity."""

import dataclasses
import operator
import types

import pytest
from differential import Program, differential

import torch


@dataclasses.dataclass(frozen=True)
class Config:
    layers: range = range(0)


RANGES = {
    "equal": lambda x, n: x * 2 if range(3) == range(3) else x,
    "unequal": lambda x, n: x * 2 if range(3) != range(3) else x * 3,
    "of a size": lambda x, n: x * 2 if range(x.shape[0]) == range(3) else x,
    "of a number": lambda x, n: x * (1 + (range(n) == range(0, n, 1))),
    "in a list": lambda x, n: x * (1 + (range(3) in [range(2), range(3)])),
    "in a tuple": lambda x, n: x * (1 + ((range(2), 1) == (range(2), 1))),
    "as a field": lambda x, n: x * (1 + (Config(range(3)) == Config(range(3)))),
    "by operator": lambda x, n: x * (1 + operator.eq(range(3), range(4))),
}


@pytest.mark.parametrize("name", RANGES)
@differential(hits=2)
def test_ranges(name):
    return Program(RANGES[name], [(torch.randn(3), n) for n in (3, 3, 3, 3, 3, 3, 4, 4, 4, 4)])


@differential(hits=2)
def test_range_of_before():
    """The range is another one in some calls, also an equal one."""
    state = types.SimpleNamespace(layers=range(3))

    def f(x):
        return x * (2 if state.layers == range(x.shape[0]) else 3)

    def put(layers):
        def change():
            state.layers = layers

        return change

    calls = [(torch.randn(3),) for _ in range(6)]
    return Program(f, [*calls, put(range(4)), *calls, put(range(0, 3)), *calls], watch=[])


MATERIAL = {
    "slice": (slice(1), slice(1), slice(2)),
    "bytearray": (bytearray(b"a"), bytearray(b"a"), bytearray(b"b")),
    "keys": ({1: 2}.keys(), {1: 3}.keys(), {2: 2}.keys()),
    "code": tuple(compile(text, "here", "eval") for text in ("1", "1", "2")),
    "view of a dict": tuple(types.MappingProxyType({1: value}) for value in (1, 1, 2)),
}


@pytest.mark.parametrize("kind", MATERIAL)
@differential(reasons=["expression"])
def test_other_classes(kind):
    one, other, third = MATERIAL[kind]
    held = types.SimpleNamespace(one=one, other=other, third=third)

    def f(x):
        if held.one == held.other and held.one != held.third:
            return x * 2
        return x

    return Program(f, [(torch.randn(3),) for _ in range(6)])


@differential(reasons=["expression"])
def test_order():
    held = types.SimpleNamespace(one=slice(1), other=slice(2))

    def f(x):
        try:
            return x * (2 if held.one < held.other else 3)
        except TypeError:
            return x

    return Program(f, [(torch.randn(3),) for _ in range(6)])
