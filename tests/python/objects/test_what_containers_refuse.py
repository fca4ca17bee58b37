"""What Python's containers raise where others would take what they are given."""

import enum
import operator
from collections import defaultdict, deque

import pytest
from differential import Program, differential

import torch


def popped(x):
    deque([1, 2]).pop(0)


def sliced(x):
    rows = deque([1, 2])
    rows[:1] = []


def deleted(x):
    rows = deque([1, 2])
    del rows[:1]


def compared(x):
    return [1] < deque([2])


def classes(x):
    return isinstance(1, [int])


def last_item(x):
    return {"a": 1}.popitem(False)


def moved(x):
    defaultdict(int, a=1).move_to_end("a")


def factory(x):
    return defaultdict(3)


def concatenated(x):
    return operator.concat(1, 2)


def concatenated_in_place(x):
    return operator.iconcat(x, x)


def summed(x):
    return sum(["a"], f"{x.sum().item()}")


def summed_constants(x):
    return sum(["a"], "b")


class Number(enum.IntEnum):
    TWO = 2


def repeated(x):
    number = Number.TWO
    number *= [1]


def caught(x, program):
    try:
        program(x)
    except (TypeError, AttributeError):
        return x * 2
    return x


REFUSED = {
    popped: "unsupported_argument", sliced: "would_raise", deleted: "would_raise",
    compared: "expression", classes: "would_raise", last_item: "unsupported_argument",
    concatenated: "expression", concatenated_in_place: "expression", summed: "would_raise",
    summed_constants: "would_raise", repeated: "would_raise", factory: "would_raise",
}  # fmt: skip


@pytest.mark.parametrize("program", REFUSED)
def test_what_raises(program):
    @differential(reasons=[REFUSED[program]])
    def test():
        return Program(caught, [(torch.randn(3), program) for _ in range(6)])

    test()


@differential()
def test_a_method_of_another_dict():
    return Program(caught, [(torch.randn(3), moved) for _ in range(6)])


@differential()
def test_sequences_that_are_concatenated():
    def f(x):
        rows = [x]
        same = operator.iconcat(rows, [x * 2])
        return same is rows, operator.concat([x], [1]), operator.concat("a", "b"), rows

    return Program(f, [(torch.randn(3),) for _ in range(6)])
