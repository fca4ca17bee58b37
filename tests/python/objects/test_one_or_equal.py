"""Containers find the object itself without asking it; NaN has no place among sorted numbers."""

import bisect
import enum
from collections import deque

import pytest
from differential import Program, differential

import torch

NAN = float("nan")
BYTES = bytearray(b"ab")
VIEWED = memoryview(b"ab")
TABLE = {"a": 1}
KEYS = TABLE.keys()
ROWS = [1, 2, 3]
LARGE = 2**70


class Unlike:
    def __eq__(self, other):
        return False

    __hash__ = None


UNLIKE = Unlike()


class Kind(enum.Enum):
    A = 1
    B = 2


def nan(x):
    n = float("nan")
    rows = [n, 1.0]
    found = rows.index(n), rows.count(n), (1.0, n).index(n), (n, n).count(n), deque(rows).count(n)
    rows.remove(n)
    return x * 2, found, rows


def nan_of_a_global(x):
    rows = [1.0, NAN]
    return x * 2, rows.index(NAN), rows.count(NAN), (NAN,).count(NAN)


def unlike_objects(x):
    one = Unlike()
    rows = [one, UNLIKE]
    found = rows.index(one), rows.index(UNLIKE), rows.count(one), rows.count(UNLIKE)
    rows.remove(UNLIKE)
    return x * 2, found, len(rows)


def tensors(x):
    y = x * 2
    return [y, x].index(y), [y, y].count(y), y


def members(x):
    rows = [Kind.A, Kind.B, Kind.A]
    return x * 2, rows.index(Kind.B), rows.count(Kind.A), rows.count(None), rows.count(1)


def sorted_nan(x):
    rows = [3.0, NAN, 1.0, 2.0, 0.5, NAN, 0.1]
    return (
        x * 2,
        sorted(rows),
        sorted(rows, reverse=True),
        sorted("badc", key=lambda c: ord(c) % 2, reverse=True),
        sorted(range(7), key=lambda i: rows[i]),
    )


def bisected_nan(x, y):
    y = y.item()
    rows = [1.0, 2.0, 3.0]
    return (
        x * 2,
        bisect.bisect_right(rows, y),
        bisect.bisect_left(rows, y),
        bisect.bisect([NAN], y),
        bisect.bisect_left([NAN], y),
        bisect.bisect_right([1, 2, 2, 3], 2),
        bisect.bisect_left([1, 2, 2, 3], 2),
    )


def positions_beyond(x):
    return x * 2, ROWS[LARGE:], ROWS[-LARGE:], ROWS[:LARGE], ROWS[-2:]


def position_beyond(x, n):
    try:
        return x * ROWS[n]
    except IndexError:
        return x


def whole_tuples(x):
    t = (x, 1)
    u = (1, "a")
    size = x.shape
    return (
        x * 2, t[:] is t, t[0:9] is t, (t + ()) is t, (() + t) is t, (t * 1) is t, (1 * t) is t,
        t[1:] is t, (t * 2) is t, (size[:]) is size, (size * 1) is size, (u[:]) is u, t[::-1] is t,
    )  # fmt: skip


def whole_given_tuple(x, t):
    return x * 2, t[:] is t, (t + ()) is t, (t * 1) is t, t[:], t + ()


def shown(elements):
    return sorted(repr(element) for element in elements)


def common(x):
    one, many = {True}, {1, 2, 3}
    changed = {True, 5}
    changed &= {1, 6}
    table = {True: 0}
    return (
        x * 2,
        shown(one & {1}), shown({1} & one), shown(one & many), shown(many & one),
        shown(one.intersection([1, 2])), shown(many.intersection([True, True])),
        shown(changed), shown(table.keys() & {1}), shown({1} & table.keys()),
        shown(table.keys() & many), shown(table.keys() & {1: 0}.keys()), shown(one | {1}),
        shown(table.keys() & frozenset({1, 4})), shown(frozenset({1, 4}) & table.keys()),
        shown(table.keys() & [1, 4]),
    )  # fmt: skip


PROGRAMS = [
    nan, nan_of_a_global, unlike_objects, tensors, members, sorted_nan, whole_tuples, common,
    positions_beyond,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
@differential()
def test_what_is_found(program):
    return Program(program, [(torch.randn(3),) for _ in range(6)])


@differential(hits=1)
def test_whole_tuples_that_existed_before_the_call():
    return Program(whole_given_tuple, [(torch.randn(3), (torch.randn(2), i)) for i in range(6)])


@differential(hits=1)
def test_nan_among_sorted_numbers():
    numbers = [0.5, 1.0, 2.5, 2.0, 4.0, NAN, 1.5]
    return Program(bisected_nan, [(torch.randn(3), torch.tensor(y)) for y in numbers])


@differential(reasons=["would_raise"])
def test_a_position_beyond_64_bits():
    return Program(position_beyond, [(torch.randn(3), LARGE) for _ in range(6)])


COMPARISONS = [
    lambda: BYTES == b"ab", lambda: b"ab" == BYTES, lambda: BYTES < b"b", lambda: VIEWED == b"ab",
    lambda: BYTES != VIEWED, lambda: KEYS == {"a": 2}.keys(), lambda: KEYS == {"a"},
    lambda: frozenset({"a"}) == KEYS, lambda: KEYS >= frozenset(), lambda: (KEYS, 1) == ({"a"}, 1),
]  # fmt: skip


@pytest.mark.parametrize("comparison", COMPARISONS)
@differential(reasons=["expression"])
def test_objects_that_compare_with_others(comparison):
    def f(x):
        return x * 2, comparison()

    return Program(f, [(torch.randn(3),) for _ in range(6)])


@differential()
def test_objects_that_equal_nothing_of_another_kind():
    def f(x):
        return x * 2, BYTES == None, KEYS != None, BYTES in (None, 1)  # noqa: E711

    return Program(f, [(torch.randn(3),) for _ in range(6)])
