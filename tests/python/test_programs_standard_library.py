"""Functions of Python's library in a step: they do what their operators and methods do."""

import operator

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
