"""Errors of values that nobody uses: eager computes them all the same, and so raises.

Each program is called with data that it takes, then with data that it doesn't.
"""

import math

import pytest
import torch.nn.functional as F
from differential import Program, differential

import torch

POSITIONS = {"good": torch.tensor([0, 1, 2]), "bad": torch.tensor([0, 1, 100])}

UNUSED = {
    "index": lambda x, i: x[i],
    "index_select": lambda x, i: x.index_select(0, i),
    "gather": lambda x, i: x.gather(0, i[:, None]),
    "take": lambda x, i: x.take(i),
    "embedding": lambda x, i: F.embedding(i, x),
    "scatter": lambda x, i: x.scatter(0, i[:, None], x[:3, :1]),
    "scatter_number": lambda x, i: x.scatter(0, i[:, None], 1.0),
    "scatter_add": lambda x, i: x.scatter_add(0, i[:, None], x[:3, :1]),
    "index_add": lambda x, i: x.index_add(0, i, x[:3]),
    "index_put": lambda x, i: x.index_put((i,), x[:3]),
    "one_hot": lambda x, i: F.one_hot(i, 4),
    "cross_entropy": lambda x, i: F.cross_entropy(x[:3], i),
    "nll_loss": lambda x, i: F.nll_loss(x[:3], i),
    "size": lambda x, i: x[i].shape[0],
    "quotient": lambda x, i: i // (100 - i),
    "remainder": lambda x, i: i % (100 - i),
    "inverse": lambda x, i: torch.linalg.inv(torch.diag((100 - i).double())),
    "cross entropy of two": lambda x, i: F.binary_cross_entropy(i / 2.0, i / 2.0),
}


@pytest.mark.parametrize("name", UNUSED)
@differential(hits=3, aborts=1)
def test_tensor(name):
    unused = UNUSED[name]

    def step(x, i):
        unused(x, i)
        return x * 2

    good = [(torch.randn(5, 4), POSITIONS["good"]) for _ in range(5)]
    return Program(step, [*good, (torch.randn(5, 4), POSITIONS["bad"]), good[0]])


@differential(hits=3, aborts=1)
def test_gradient_of_what_nobody_uses():
    """The gradient needs the indices alone, and writes where they say."""

    def step(table, i):
        table.grad = None
        F.embedding(i, table).sum().backward()
        return table.grad

    tables = [torch.randn(5, 4).requires_grad_() for _ in range(7)]
    good = [(table, POSITIONS["good"]) for table in tables[:6]]
    return Program(step, [*good[:5], (tables[6], POSITIONS["bad"]), good[5]])


@pytest.mark.parametrize("name", ["index", "embedding", "gather", "quotient"])
@differential(hits=2)
def test_one_side_of_a_branch(name):
    unused = UNUSED[name]

    def step(x, i):
        if x.sum() > 0:
            unused(x, i)
            y = x + 1
        else:
            y = x - 1
        return y * 2

    ones = torch.ones(5, 4)
    good = [(ones * sign, POSITIONS["good"]) for sign in (1, -1, 1, -1, 1, -1, 1, -1)]
    return Program(step, [*good, (-ones, POSITIONS["bad"]), (ones, POSITIONS["bad"]), *good[:2]])


@pytest.mark.parametrize("name", ["index", "embedding", "quotient"])
@differential(hits=2)
def test_used_on_one_side_only(name):
    """It may not be moved to where it is used: eager computes it in front of the test."""
    unused = UNUSED[name]

    def step(x, i):
        rows = unused(x, i)
        return x + rows.sum() if x.sum() > 0 else x - 1

    ones = torch.ones(5, 4)
    good = [(ones * sign, POSITIONS["good"]) for sign in (1, -1, 1, -1, 1, -1, 1, -1)]
    return Program(step, [*good, (-ones, POSITIONS["bad"]), (ones, POSITIONS["bad"]), *good[:2]])


@differential(hits=2)
def test_in_a_loop():
    def step(x, i, iterations):
        k = torch.zeros((), dtype=torch.int64)
        while k < iterations:
            x[i + k]
            x = x + 1
            k = k + 1
        return x

    good = [
        (torch.ones(5, 4), torch.tensor([0, 1]), torch.tensor(iterations))
        for iterations in (1, 2, 3, 2, 1, 3, 2)
    ]
    bad = (torch.ones(5, 4), torch.tensor([0, 3]), torch.tensor(3))
    return Program(step, [*good, bad, good[0]])


NUMBERS = {
    "quotient": (lambda s: 1 / s, 0.0),
    "floor quotient": (lambda s: 7 // s, 0.0),
    "remainder": (lambda s: 7 % s, 0.0),
    "power": (lambda s: s**-2, 0.0),
    "int": (lambda s: int(s), math.inf),
    "round": (lambda s: round(s), math.nan),
    "floor": (lambda s: math.floor(s), math.nan),
    "sqrt": (lambda s: math.sqrt(s), -1.0),
    "log": (lambda s: math.log(s), 0.0),
    "exp": (lambda s: math.exp(s), 1e5),
    "acos": (lambda s: math.acos(s / 10), 11.0),
}


@pytest.mark.parametrize("name", NUMBERS)
@differential(hits=3)
def test_number(name):
    unused, bad = NUMBERS[name]

    def step(x, s):
        unused(s)
        return x * s

    x = torch.randn(3)
    return Program(step, [*((x, 0.5 + k) for k in range(7)), (x, bad), (x, 1.0)])


@differential(hits=3)
def test_integers_that_do_not_fit_are_no_error():
    def step(x, n):
        n * n * n * n * n
        return x * n

    x = torch.randn(3)
    return Program(step, [(x, n) for n in (2, 3, 4, 5, 6, 7, 2**40, 3)])


@differential(hits=3, aborts=2)
def test_quotients_of_ints():
    def step(x, n):
        n % (n - 3)
        n // (n - 4)
        return x * n

    x = torch.randn(3)
    return Program(step, [(x, n) for n in (5, 6, 7, 8, 9, 10, 3, 4, 11)])


@differential(hits=3, aborts=2)
def test_elements_of_a_list_that_grows():
    def step(x, iterations, k):
        ys = []
        for i in range(iterations):
            ys.append(x * i)
        ys[k]
        return ys[0] + 1

    x = torch.randn(3)
    good = [
        (x, iterations, k) for iterations, k in ((3, 1), (4, 2), (5, 1), (6, -3), (4, 2), (7, 5))
    ]
    return Program(step, [*good, (x, 3, 3), (x, 5, -6), good[0]])


@differential(hits=2, aborts=2)
def test_elements_of_a_list_of_another_length_each_time():
    def step(xs, k):
        xs[k]
        return xs[0] + 1

    def call(length, k):
        return [torch.ones(3) for _ in range(length)], k

    good = [call(length, k) for length, k in ((3, 1), (4, 2), (5, 1), (6, 3), (4, 2), (7, 5))]
    return Program(step, [*good, call(3, 3), call(5, -6), good[0]])
