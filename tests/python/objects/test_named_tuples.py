"""Differential programs: named tuples whose classes have methods of their own, as keys and as texts."""

from collections import Counter, namedtuple
from typing import NamedTuple

import pytest
from differential import Program, differential

import torch

Single = namedtuple("Single", "a")
Pair = namedtuple("Pair", "x y", defaults=[3])


class Vector(NamedTuple):
    x: int
    y: int

    def __mul__(self, k):
        return "mul", k

    def __rmul__(self, k):
        return "rmul", k

    def __radd__(self, other):
        return "radd", other

    def __iadd__(self, other):
        return "iadd", other

    def __gt__(self, other):
        return "gt"

    def __ne__(self, other):
        return "ne"

    def __bool__(self):
        return False

    def index(self, value):
        return "index", value


class Overridden(Pair):
    x = property(lambda self: 77)


class Shown(NamedTuple):
    a: int

    def __str__(self):
        return f"shown {self.a}"


VECTOR = Vector(1, 2)


def batches(count=8):
    return [(torch.randn(3),) for _ in range(count)]


def of_operators(v, x):
    total = v
    total += 1
    return v * 2, 2 * v, 1 + v, total, v > v, v != v, bool(v), v.index(5), v.x, v[1], x * 2


@differential(reasons=["unknown_callable"])
def test_methods_of_one_made_in_the_run():
    return Program(lambda x: of_operators(Vector(1, 2), x), batches())


@differential(hits=5)
def test_methods_of_one_from_before():
    return Program(lambda x: (VECTOR * 2, VECTOR > VECTOR, VECTOR != 1, VECTOR.x, x * 2), batches())


@differential(reasons=["unknown_callable"])
def test_a_property_in_the_place_of_a_field():
    return Program(lambda x: (Overridden(1, 2).x, x * 2), batches())


@differential(hits=5)
def test_classes_without_methods_of_their_own():
    def step(x):
        p = Pair(1, 2)
        a, b = p
        return p * 2, p + (1,), p > Pair(0), bool(p), p.count(1), p._replace(x=9), x * a + b

    return Program(step, batches())


@differential(hits=5)
def test_as_keys():
    outside = {}

    def step(x):
        made = {Pair(1, 2): 1, (3, 4): 2}
        key = next(iter(made))
        outside[x.shape] = 1
        outside[Pair(1, 5)] = x * 2
        kinds = [type(each).__name__ for each in (*made, *outside, *{x.shape}, *{Pair(2)})]
        counts = Counter([Pair(1, 2), (1, 2), x.shape])
        return kinds, key.x, made, counts, made[1, 2], [made[each] for each in made], x * 2

    return Program(step, batches(), watch=[outside])


@differential(hits=5)
def test_texts():
    def step(x):
        loss = x[0].item()
        known = f"{Single(3)}", str(Single(3)), "%s %s" % (Single(3), Pair(1)), "{}".format(Pair(2))
        return known, f"{Single(loss)} {Pair(loss)} {x.shape}", repr(Single(1)), f"{Single(2)!r}"

    return Program(step, batches())


def formatted(x):
    return f"{Shown(1)} {x[0].item()}"


def among_others(x):
    return "%s" % [Shown(1), x[0].item()]  # noqa: UP031


@pytest.mark.parametrize("step", [formatted, among_others])
@differential(reasons=["expression"])
def test_texts_by_the_program(step):
    return Program(step, batches())


Item = namedtuple("Item", "index value")
Tally = namedtuple("Tally", "count value")


@differential(hits=3)
def test_fields_that_are_named_as_methods_of_tuples():
    items = [Item(k, torch.ones(3) * k) for k in range(3)]

    def step(x):
        item, tally = Item(2, x * 2), Tally(3, x)
        total = sum(each.value * each.index for each in items) + item.index * tally.count
        return item, tally.value, total, items[1].index, item._replace(index=5)

    return Program(step, [(torch.randn(3),) for _ in range(6)])
