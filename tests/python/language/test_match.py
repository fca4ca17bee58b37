"""Differential programs: `match` statements."""

import enum
from collections import OrderedDict
from dataclasses import dataclass

import pytest
from differential import Program, differential

import torch
from torch import nn


def batches(count=16):
    return [(torch.randn(4) + 0.3 * (-1) ** i, i % 4) for i in range(count)]


@differential(hits=6)
def test_literals_of_a_number_that_varies():
    def step(x, n):
        match n:
            case 0:
                return x
            case 1 | 2:
                return x * n
            case other if other > 10:
                return x * 100
            case other:
                return x - other

    return Program(step, batches(24))


@differential(hits=6)
def test_numbers_of_the_data():
    def step(x, n):
        match int((x > 0).sum().item()):
            case 0:
                y = x
            case 1 | 2:
                y = x * 2
            case 3 as count if x[0] > 0:
                y = x * count
            case _:
                y = -x
        return y + 1

    return Program(step, batches(40))


PATTERNS = {
    "sequence": lambda x: [x, x * 2],
    "tuple": lambda x: (1, x),
    "long": lambda x: (1, 2, x, 3, 4),
    "mapping": lambda x: {"kind": "scale", "by": 3, "x": x},
    "mapping of another kind": lambda x: {"kind": "shift", "x": x},
    "number": lambda x: 3,
    "text": lambda x: "name",
    "none": lambda x: None,
    "flag": lambda x: True,
    "nested": lambda x: [1, {"inner": (x, None)}],
    "tensor": lambda x: x,
    "empty": lambda x: [],
}


@pytest.mark.parametrize("name", PATTERNS)
@differential(hits=6)
def test_patterns(name):
    build = PATTERNS[name]

    def step(x, n):
        match build(x):
            case []:
                return x * 0
            case [a, b] if isinstance(a, torch.Tensor):
                return a + b
            case (1, torch.Tensor() as y):
                return y * 4
            case [1, *rest, 4]:
                return rest[1] * len(rest)
            case [1, {"inner": (y, None)}]:
                return y * 7
            case {"kind": "scale", "by": by, "x": y}:
                return y * by
            case {"kind": str(kind), "x": y}:
                return y + len(kind)
            case None:
                return x * 11
            case True:
                return x * 12
            case int(number):
                return x * number
            case "name" | "other":
                return x * 13
            case _:
                return x * 14

    return Program(step, batches(10))


@dataclass
class Shift:
    by: float
    more: float = 0.0


@dataclass
class Scale:
    by: float


class Kind(enum.Enum):
    FIRST = 1
    SECOND = 2


@differential(hits=6)
def test_classes():
    def apply(layer, x):
        match layer:
            case Shift(by, more=0.0):
                return x + by
            case Shift(by, more):
                return x + by * more
            case Scale(by=factor):
                return x * factor
            case nn.Linear(in_features=4) as linear:
                return linear(x)
            case nn.ReLU():
                return x.relu()
            case _:
                return x

    layers = [Shift(1.0), Scale(3.0), nn.Linear(4, 4), Shift(1.0, 2.0), nn.ReLU(), "nothing"]

    def step(x, n):
        for layer in layers:
            x = apply(layer, x)
        return x

    return Program(step, batches(10))


@differential(hits=6)
def test_enumerations_and_attributes():
    state = {"kind": Kind.FIRST}

    def step(x, n):
        match state["kind"]:
            case Kind.FIRST:
                return x * 2
            case Kind.SECOND:
                return x * 3

    def change():
        state["kind"] = Kind.SECOND

    return Program(step, [*batches(8), change, *batches(8)])


@differential(hits=6)
def test_gradients_and_effects():
    first, second = nn.Linear(4, 2), nn.Linear(4, 2)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], 0.1, momentum=0.9)

    def step(x, n):
        optimizer.zero_grad()
        match (x > 0).sum().item():
            case 0 | 1:
                y = first(x)
            case 2:
                y = second(x)
                print("second")
            case _:
                y = first(x) + second(x)
        y.pow(2).mean().backward()
        optimizer.step()
        return y

    return Program(step, batches(40), watch=[first, second, optimizer])


@differential(hits=3)
def test_rest_of_a_mapping():
    def step(options, x):
        match options:
            case {"scale": scale, **rest}:
                rest["more"] = 1
                return x * scale * len(rest) + rest.get("offset", 0.0), rest
            case {**everything}:
                return x, everything

    calls = [({"scale": 2.0, "offset": o}, torch.randn(3)) for o in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)]
    return Program(step, [*calls, ({"other": 1}, torch.randn(3)), ({"scale": 2.0}, torch.randn(3))])


class OwnItems(dict):
    def __getitem__(self, key):
        return "own", key


class OwnGet(dict):
    def get(self, key, default=None):
        return ("got", key) if key == "b" else default


class OwnMissing(dict):
    def __missing__(self, key):
        return 5


@pytest.mark.parametrize("kind", [dict, OwnItems, OwnGet, OwnMissing, OrderedDict])
@differential(hits=5)
def test_mappings_are_asked_by_get(kind):
    def step(given, x):
        answers = []
        for mapping in (given, kind(a=1), kind(b=x)):
            match mapping:
                case {"b": value}:
                    answers.append(("b", value))
                case {"a": value, "c": _}:
                    answers.append(("c", value))
                case {"a": value}:
                    answers.append(("a", value))
        return answers, x * 2

    return Program(step, [(kind(a=2), torch.randn(3)) for _ in range(8)])
