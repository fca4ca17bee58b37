"""Texts that can't be made of some values: what is made after the run must not raise there."""

import math

import pytest
from differential import Program, differential

import torch

log = []


def percent(x, n):
    return "%d" % x.sum().item()


def caught(x, n):
    try:
        return "%d" % x.sum().item()
    except (ValueError, OverflowError) as error:
        return str(error)


def character(x, n):
    return f"{n:c}"


def precision(x, n):
    return f"{x.sum().item():.{n}f}"


def format_method(x, n):
    return "{:d}".format(x.sum().item())


def too_few(x, n):
    return "%s %d" % (n,)  # noqa: F507


def too_many(x, n):
    return "%s" % (n, 2)  # noqa: F507


def vector(x, n):
    return f"{x * 2:.2f}"


def object_without_formats(x, n):
    try:
        return f"{program:>20} {n}"
    except TypeError as error:
        return str(error)


def separator(x, n):
    print(n, sep=3)


def joined_number(x, n):
    try:
        return ", ".join([n])
    except TypeError as error:
        return str(error)


def joined_with_a_number(x, n):
    join = ",".join
    try:
        return join([f"{n}", n])
    except TypeError as error:
        return str(error)


def joined_tensor(x, n):
    return ", ".join(x)


def default_beside_arguments(x, n):
    try:
        return f"{max(n, 2, default=1)}"
    except TypeError as error:
        return str(error)


def program(make):
    log.clear()

    def step(x, n):
        log.append(1)
        y = x.exp().sum()
        text = make(x, n)
        log.append(2)
        return y, text

    values = [1.0, 2.0, 3.0, 4.0, 5.0, math.inf, 1.0, math.nan, 2.0]
    batches = [(torch.full((2,), value), 3 + i) for i, value in enumerate(values)]
    return Program(step, [*batches, (torch.ones(2), -1), (torch.ones(2), 2**21)], watch=[log])


@pytest.mark.parametrize(
    "make",
    [
        *(percent, caught, character, precision, format_method, too_few, too_many, vector),
        object_without_formats,
    ],
)
@differential(reasons=["would_raise"])
def test_a_format_that_may_raise(make):
    return program(make)


@pytest.mark.parametrize("make", [joined_number, joined_with_a_number, joined_tensor])
@differential(reasons=["dynamic_value"])
def test_what_is_joined_is_no_text(make):
    return program(make)


@differential(reasons=["unsupported_argument"])
def test_a_default_beside_several_arguments():
    return program(default_beside_arguments)


@differential(reasons=["unsupported_argument"])
def test_a_separator_that_is_no_text():
    return program(separator)


@pytest.mark.parametrize("form", ["%s %r", "%.2f %g", "%5.1f %e", "{} {!r}", "{:.2f} {:>8}"])
@differential(hits=4)
def test_a_format_that_takes_all_numbers(form):
    def step(x, n):
        numbers = (x.sum().item(), n)
        text = form % numbers if "%" in form else form.format(*numbers)
        return x.exp(), text, f"{x.sum():.1e}", "%d %x %5d" % (n, n, n), f"{n:,}"

    values = [1.0, 2.0, 3.0, 4.0, math.inf, math.nan, 2.0]
    return Program(step, [(torch.full((2,), value), i) for i, value in enumerate(values)])
