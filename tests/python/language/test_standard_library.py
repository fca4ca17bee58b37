"""Functions of Python's library in a step: they do what their operators and methods do."""

import bisect
import functools
import heapq
import itertools
import math
import operator
import sys
import types

from differential import Program, differential

import torch


def calls(count=12, *more):
    return [(torch.randn(4, 3), *(each(index) for each in more)) for index in range(count)]


# --- operator ---------------------------------------------------------------------------------------


@differential(hits=8, graphs=1)
def test_operators_as_functions():
    def step(x, k):
        y = operator.add(x, operator.neg(k)) + operator.methodcaller("sum", 0)(x)
        return operator.imul(y, 2.0) * operator.mod(k, 4), operator.contains([1, 3], 3)

    return Program(step, calls(12, lambda index: index))


@differential(hits=8)
def test_operators_that_change_what_they_are_given():
    rates = [0.5, 0.25]
    table = {"a": 1}

    def step(x):
        operator.setitem(rates, 0, 2.0)
        operator.setitem(table, "b", 3)
        operator.delitem(table, "a")
        same = operator.iadd(rates, [4.0])
        y = x * rates[0] * len(same)
        operator.delitem(rates, -1)
        operator.setitem(table, "a", 1)
        return y, operator.is_(same, rates)

    return Program(step, calls(), [rates, table])


@differential(reasons=["unsupported_argument"])
def test_operators_with_too_many_arguments():
    def step(x):
        try:
            operator.setitem([1], 0, 2, 3)
        except TypeError:
            return x * 2
        return x

    return Program(step, calls(5))


# --- itertools, heapq, bisect, math -----------------------------------------------------------------


@differential(hits=8, graphs=1)
def test_more_of_itertools():
    def step(x, k):
        for a, b in zip(itertools.cycle([1, 2]), [k, 2, 3], strict=False):
            x = x + a * b
        small = list(itertools.takewhile(lambda v: v < 3, [1, 2, 3, 1]))
        rest = list(itertools.dropwhile(lambda v: v < 3, [1, 2, 3, 1]))
        odd = list(itertools.filterfalse(lambda v: v % 2 == 0, [1, 2, 3, 4]))
        chosen = list(itertools.compress([1, 2, k], [True, False, True]))
        return x * k, small, rest, odd, chosen

    return Program(step, calls(12, lambda index: index))


@differential(hits=8, graphs=1)
def test_groups():
    words = [("a", 1), ("a", 2), ("b", 3), ("c", 4), ("c", 5)]

    def letter(pair):
        print("letter of", pair[1])
        return pair[0]

    def step(x, k):
        for key, group in itertools.groupby(words, key=letter):
            print(key)
            for _, value in group:
                x = x + value * k
                if key == "c":
                    break
        unused = [(key, list(group)) for key, group in list(itertools.groupby([1, 1, 2]))]
        return x, unused

    return Program(step, calls(12, lambda index: index), [words])


@differential(hits=8)
def test_groups_of_keys_that_vary():
    def step(x, k):
        for key, group in itertools.groupby([k, 1, 1, 2]):
            x = x * key + len(list(group))
        return x

    return Program(step, calls(16, lambda index: index % 3))


@differential(hits=8, graphs=1)
def test_extremes_and_places():
    def step(x, k):
        best = heapq.nlargest(2, [1, k, 3])
        worst = heapq.nsmallest(1, [(2, "b"), (1, "a")], key=lambda pair: pair[0])
        places = [1, 3, 5]
        bisect.insort(places, 4)
        return x * best[0] * worst[0][0] + places[1], math.prod([k, 2, 0.5]), places

    return Program(step, calls(14, lambda index: index % 7))


@differential(reasons=["unknown_callable"])
def test_a_heap_that_is_kept():
    heap = []

    def step(x, k):
        heapq.heappush(heap, k)
        return x * heap[0]

    return Program(step, calls(6, lambda index: index), [heap])


# --- cached properties ------------------------------------------------------------------------------


class Cached:
    def __init__(self, base):
        self.base = base

    @functools.cached_property
    def scale(self):
        print("computed")
        return self.base * 2.0


@differential(hits=8)
def test_cached_properties():
    kept = Cached(3)

    def step(x):
        made = Cached(2)
        return x * kept.scale * made.scale + made.scale

    def forget():
        del kept.scale

    return Program(step, [*calls(8), forget, *calls(6)], [kept])


# --- numbers and texts ------------------------------------------------------------------------------


@differential(hits=8, graphs=1)
def test_methods_of_numbers_that_vary():
    def step(x, k):
        half = k / 2
        print("#" * k, 2 * "ab", ord("a"), chr(98))
        return x * k.bit_length() if half.is_integer() else x * half

    return Program(step, calls(14, lambda index: index))


# --- import -----------------------------------------------------------------------------------------


@differential(hits=8)
def test_modules_that_are_imported_in_the_step():
    first, second = types.ModuleType("halves_of_a_test"), types.ModuleType("halves_of_a_test")
    first.half, second.half = 0.5, 0.25
    sys.modules["halves_of_a_test"] = first

    def step(x):
        import math

        import halves_of_a_test
        from torch.nn import functional

        return functional.relu(x) * math.pi * halves_of_a_test.half

    def change():
        first.half = 0.125

    def replace():
        sys.modules["halves_of_a_test"] = second

    return Program(step, [*calls(7), change, *calls(6), replace, *calls(6)])
