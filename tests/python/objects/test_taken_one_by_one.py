"""What takes elements one by one takes each when Python does: an iterator may read what has been
added, and whoever goes on with it finds it where Python leaves it."""

import itertools
from collections import Counter, OrderedDict, deque

import pytest
from differential import Program, differential

import torch

GLOBAL = [1, 1]
TABLE = {"a": 1}


def by_extend(x):
    rows = [1, 1]
    rows.extend(rows[-1] + rows[-2] for _ in range(5))
    return x * 2, rows


def by_tensors(x):
    rows = [x]
    rows += (rows[-1] * 2 for _ in range(3))
    return rows


def by_map(x):
    rows = [1]
    rows.extend(map(lambda i: len(rows) * i, range(4)))
    return x * 2, rows


def by_itself(x):
    rows = [1, 2]
    rows.extend(rows)
    rows += rows
    return x * 2, rows


def by_slice(x):
    rows = [1, 2]
    rows[1:] = (len(rows) for _ in range(3))
    return x * 2, rows


def of_a_global(x):
    GLOBAL[:] = [1, 1]
    GLOBAL.extend(GLOBAL[-1] + GLOBAL[-2] for _ in range(3))
    return x * 2


def of_a_global_unopened(x):
    GLOBAL.extend(GLOBAL[-1] + 1 for _ in range(2))
    return x * 2


def of_a_deque(x):
    rows = deque([1, 2], maxlen=3)
    rows.extend(rows[0] + rows[-1] for _ in range(5))
    rows.extendleft(rows[0] + 1 for _ in range(2))
    return x * 2, list(rows)


def of_a_dict(x):
    table = {"n": 1}
    table.update((str(i), len(table)) for i in range(3))
    ordered = OrderedDict()
    ordered.update((i, len(ordered)) for i in range(3))
    return x * 2, table, ordered


def of_a_dict_in_place(x):
    table = {"n": 1}
    table |= ((str(i), sum(table.values())) for i in range(3))
    return x * 2, table


def of_a_global_dict(x):
    TABLE.update((key, TABLE["a"] + 1) for key in ("a", "a", "b"))
    return x * 2


def of_a_set(x):
    some = {1}
    some.update(len(some) * 10 for _ in range(3))
    others = {1, 2, 3, 4}
    others.difference_update(len(others) for _ in range(3))
    return x * 2, sorted(some), sorted(others)


def of_a_counter(x):
    counts = Counter()
    counts.update(len(counts) for _ in range(4))
    return x * 2, counts


class Keyed:
    def __init__(self, table):
        self.table = table

    def keys(self):
        return ["b", "c"]

    def __getitem__(self, key):
        return len(self.table)


def of_a_mapping(x):
    table = {"a": 0}
    table.update(Keyed(table))
    return x * 2, table


def where_one_raises(x):
    rows = [1]
    try:
        rows.extend(6 // (2 - i) for i in range(4))
    except ZeroDivisionError:
        pass
    return x * 2, rows


def by_zip_longest(x):
    numbers = iter([1, 2, 3, 4, 5])
    pairs = list(itertools.zip_longest(numbers, numbers, fillvalue=0))
    rows = [1]
    grown = itertools.zip_longest(rows, [x, x * 2, x * 3])
    rows.append(2)
    return pairs, list(grown), list(itertools.zip_longest()), list(itertools.zip_longest([], [1]))


def by_islice(x):
    numbers = iter(range(40))
    parts = []
    for bounds in [(0, 5, 3), (3, 2), (2,), (0,), (1, None, 30)]:
        parts.append(list(itertools.islice(numbers, *bounds)))
        parts.append(next(numbers, None))
    one = itertools.islice(iter(range(5)), 1, 4, 2)
    return x * 2, parts, next(one), next(one), next(one, None), next(one, None)


def by_list_iterator(x):
    rows = [1, 2]
    numbers = iter(rows)
    found = list(numbers)
    rows.append(3)
    return x * 2, found, next(numbers, None), list(numbers)


def by_chain(x):
    called = []

    def note(i):
        called.append(i)
        return [i, i + 1]

    every = itertools.chain.from_iterable(map(note, [1, 2, 3]))
    called.append("before")
    first = next(every)
    called.append("after")
    rows = [[1]]
    grown = itertools.chain.from_iterable(rows)
    rows.append([2])
    return x * 2, first, list(every), called, list(grown)


def by_pairwise(x):
    rows = [1, 2]
    pairs = itertools.pairwise(rows)
    rows.append(3)
    return x * 2, list(pairs), list(itertools.pairwise([1])), list(itertools.pairwise([]))


def by_extremes(x):
    called = []

    def note(i):
        called.append(i)
        return i

    def key(i):
        called.append(-i)
        return i

    return x * 2, max(map(note, [1, 3, 2]), key=key), min(map(note, [3, 1, 2]), key=key), called


PROGRAMS = [
    by_extend, by_tensors, by_map, by_itself, by_slice, of_a_global, of_a_deque, of_a_dict,
    of_a_dict_in_place, of_a_set, of_a_counter, of_a_mapping, where_one_raises, by_zip_longest,
    by_islice, by_list_iterator, by_chain, by_pairwise, by_extremes,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
@differential()
def test_the_elements(program):
    return Program(program, [(torch.randn(3),) for _ in range(6)])


@pytest.mark.parametrize("program", [of_a_global_unopened, of_a_global_dict])
@differential(hits=1)
def test_what_existed_before_the_call(program):
    GLOBAL[:] = [1, 1]
    TABLE.clear()
    TABLE["a"] = 1
    return Program(program, [(torch.randn(3),) for _ in range(6)], watch=[GLOBAL, TABLE])


def changed_deque(x):
    rows = deque([1, 2, 3])
    try:
        for row in rows:
            rows.append(row)
    except RuntimeError:
        return x * 2
    return x


@differential(reasons=["expression"])
def test_a_deque_that_changes():
    return Program(changed_deque, [(torch.randn(3),) for _ in range(6)])


@differential(reasons=["dynamic_value"])
def test_the_order_of_a_set_that_a_dict_changed():
    def f(x):
        some = set()
        some.update({16: 0, 1: 0, 2: 0, 3: 0, 4: 0})
        return x * 2, list(some)

    return Program(f, [(torch.randn(3),) for _ in range(6)])
