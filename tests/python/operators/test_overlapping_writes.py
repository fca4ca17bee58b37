"""In-place operations that read the memory that they write. Where that is the same element, or parts that
surely have none in common, they are in the graph; else eager raises or does what its loops do."""

import operator

import pytest
from differential import Program, differential

import torch


def shift_rows(x, y):
    x[1:] = x[:-1]


def shift_columns(x, y):
    x[:, 1:] += x[:, :-1]


def add_a_row(x, y):
    x.add_(x[0])


def multiply_by_the_transposed(x, y):
    x *= x.t()


def multiply_by_moved_dimensions(x, y):
    x.mul_(x.movedim(0, 1))


def write_an_operand(x, y):
    torch.add(x[1:], x[:-1], out=x[1:])


def index_add_of_itself(x, y):
    x.index_add_(0, torch.tensor([0, 0]), x[1:3])


def clamp_by_neighbours(x, y):
    x[1:].clamp_(min=x[:-1])


def row_of_an_unknown_column(x, y):
    x[:, int(y[0] > 0)].add_(x[1])


def by_way_of_a_view(x, y):
    x.view(-1)[1:].sub_(x.view(-1)[:-1])


def of_an_opaque_operator(x, y):
    x[1:].heaviside_(x[:-1])


def of_an_opaque_operator_by_keyword(x, y):
    x[1:].heaviside_(values=x[:-1])


OVERLAPS = [
    shift_rows,
    shift_columns,
    add_a_row,
    multiply_by_the_transposed,
    multiply_by_moved_dimensions,
    write_an_operand,
    index_add_of_itself,
    clamp_by_neighbours,
    row_of_an_unknown_column,
    by_way_of_a_view,
    of_an_opaque_operator,
    of_an_opaque_operator_by_keyword,
]


def calls(count=8):
    return [(torch.randn(4, 4), torch.randn(4)) for _ in range(count)]


@pytest.mark.parametrize("change", OVERLAPS)
@differential(reasons=["unsupported_tensor"])
def test_overlaps_stay_imperative(change):
    def step(x, y):
        change(x, y)
        return x * y

    return Program(step, calls())


@differential(hits=9)
def test_one_argument_is_two():
    """Only where both are one tensor do they overlap."""

    def step(x, z, y):
        x[:, 1:] += z[:, :-1]
        return x * y

    several = [(x, torch.randn(4, 4), y) for x, y in calls(6)]
    return Program(step, [*several, *((x, x, y) for x, y in calls(4)), *several])


def itself(x, y):
    x += x
    x.t().mul_(x.t())
    torch.mul(x, x, out=x)
    x.data.mul_(x.detach())


def rows(x, y):
    x[0] += x[1]
    x[-1] = x[-2]
    x[:2].mul_(x[2:])
    x[::2] -= x[1::2]


def columns(x, y):
    x[:, 0] = x[:, 1]
    x[1:, 0] = x[:-1, 1]
    x.t()[2].add_(x[:, 3])


def chunks(x, y):
    first, second = x.chunk(2)
    x[:2].add_(second)
    x[3].add_(x.unbind(0)[1])
    flat = x.view(-1)
    flat[:4] += flat[4:8]


def copies(x, y):
    x[1:] = x[:-1].clone()
    x.add_(x.flip(0))
    x.sub_(x.mean(0))


def one_row_after_the_other(x, y):
    for i in range(1, len(x)):
        x[i] += x[i - 1]


@pytest.mark.parametrize("change", [itself, rows, columns, chunks, copies, one_row_after_the_other])
@differential(hits=4)
def test_parts_that_do_not_overlap(change):
    def step(x, y):
        change(x, y)
        return x * y

    return Program(step, calls())


@pytest.mark.parametrize("change", [operator.iadd, operator.isub])
@differential(hits=4)
def test_rows_by_numbers_that_vary(change):
    """They are one row or two, and fit either way."""

    def step(x, i, j):
        change(x[i], x[j])
        return x * 2

    rows = [(0, 1), (2, 3), (3, 3), (1, 1), (2, 0), (1, 3), (3, 0), (2, 2), (0, 2), (3, 1)]
    return Program(step, [(torch.randn(4, 4), i, j) for i, j in rows * 2])


@differential(hits=4)
def test_rows_of_a_loop():
    def step(x, n):
        for i in range(1, n):
            x[i] += x[i - 1]
        return x * 2

    return Program(step, [(torch.randn(9, 4), n) for n in [3, 5, 9, 4, 6, 3, 7, 8, 5, 9, 4]])
