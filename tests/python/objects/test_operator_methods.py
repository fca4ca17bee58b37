"""Operators of objects: whose method is asked, in which order; enumerations of ints that have methods of their own."""

import enum

import pytest
from differential import Program, differential

import torch


class Flags(enum.IntFlag):
    READ = 1
    WRITE = 2


class Grade(enum.IntEnum):
    LOW = 1
    HIGH = 2

    def __mul__(self, other):
        return "times"

    def __rsub__(self, other):
        return "from"

    def __eq__(self, other):
        return "equal"

    def __gt__(self, other):
        return "above"

    def __int__(self):
        return 77

    __hash__ = int.__hash__


class Base:
    def __init__(self, x):
        self.x = x

    def __add__(self, other):
        return "base", self.x

    def __radd__(self, other):
        return "base reversed", self.x

    def __sub__(self, other):
        return NotImplemented

    def __rsub__(self, other):
        return "from", self.x


class Derived(Base):
    def __radd__(self, other):
        return "derived reversed", self.x


class Plain(Base):
    pass


def calls():
    return [(torch.randn(3),) for _ in range(6)]


@pytest.mark.parametrize("flags", list(Flags))
@differential(hits=3)
def test_flags_stay_flags(flags):
    def step(x):
        changed = flags
        changed |= Flags.WRITE
        return x * flags, flags | Flags.WRITE, flags & 3, 1 ^ flags, ~flags, flags + 1, changed

    return Program(step, calls())


@differential(hits=3)
def test_flags_in_conditions():
    def step(x, flags):
        return x * 2 if flags & Flags.WRITE else x, Flags.READ in flags, flags == 3, flags > 1

    return Program(step, [(torch.randn(3), flags) for flags in (Flags.READ, Flags(3)) * 6])


@differential(hits=3)
def test_an_enumeration_of_ints_with_methods_of_its_own():
    grade = Grade.HIGH

    def step(x):
        return (
            x * grade,
            grade * 2,
            3 - grade,
            grade == 2,
            2 == grade,
            1 < grade,
            grade + 1,
            grade < 3,
        )

    return Program(step, calls())


@differential(hits=3)
def test_what_is_written_to_the_class_of_an_enumeration():
    class Level(enum.IntEnum):
        ONE = 1

    def change():
        Level.__add__ = lambda self, other: "added"

    def step(x):
        return x + 1, Level.ONE + 1

    return Program(step, [*calls(), change, *calls()])


@differential(hits=3)
def test_a_derived_class_on_the_right_is_asked_first():
    def step(x):
        return x + 1, Base(x) + Derived(x), Base(x) + Plain(x), Derived(x) + Base(x), 1 + Base(x)

    return Program(step, calls())


@differential(hits=3)
def test_a_class_on_the_right_is_asked_where_the_left_one_has_nothing():
    def step(x):
        return x + 1, Base(x) - Plain(x), Base(x) - Derived(x), 3 - Base(x)

    return Program(step, calls())


@differential(reasons=["expression"])
def test_an_object_of_the_same_class_is_not_asked_in_reverse():
    def step(x):
        return x + 1, Base(x) - Base(x)

    return Program(step, calls())
