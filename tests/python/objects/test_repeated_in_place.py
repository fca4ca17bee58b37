"""`rows *= n` changes the list itself, whoever holds it."""

import operator
import types

import pytest
from differential import Program, differential

import torch


def pad(rows, n):
    rows *= n


def by_function(x):
    rows = [x]
    pad(rows, 3)
    return torch.stack(rows).sum(0)


def by_alias(x):
    rows = [1]
    also = rows
    rows *= 2
    rows.append(5)
    return x * len(also), also is rows


def by_attribute(x):
    rows = [x, x * 2]
    holder = types.SimpleNamespace(rows=rows)
    holder.rows *= 2
    return torch.stack(rows), holder.rows is rows


def by_item(x):
    rows = [x]
    table = {"rows": rows}
    outer = [rows]
    table["rows"] *= 2
    outer[0] *= 2
    return torch.stack(rows)


def by_operator(x):
    rows = [x, 1]
    also = operator.imul(rows, 2)
    return x * len(rows), also is rows


def by_nothing(x):
    rows = [x]
    also = rows
    rows *= 0
    rows *= -1
    return x * 2, also


def by_flag(x):
    rows = [x * 2]
    rows *= True
    return rows


def by_itself(x):
    rows = [x]
    try:
        rows *= 1.5
    except TypeError:
        rows.append(x * 2)
    return rows


PROGRAMS = [
    by_function, by_alias, by_attribute, by_item, by_operator, by_nothing, by_flag,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
@differential()
def test_the_list_itself(program):
    return Program(program, [(torch.randn(3),) for _ in range(6)])


@differential(reasons=["would_raise"])
def test_by_what_is_no_int():
    return Program(by_itself, [(torch.randn(3),) for _ in range(6)])


@differential(hits=2)
def test_in_a_loop():
    def f(x, n):
        rows = [x]
        also = rows
        for _ in range(n):
            rows *= 2
        return torch.stack(also).sum(0)

    return Program(f, [(torch.randn(3), n) for n in (1, 1, 1, 1, 1, 2, 2, 2, 2, 3)])
