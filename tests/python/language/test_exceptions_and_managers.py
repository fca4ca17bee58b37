"""Exceptions on their way through context managers, and managers that raise themselves. PYTEST_DONT_REWRITE"""

import contextlib

import pytest
from differential import Program, differential

import torch
import torchjanus
from torch import nn


def calls(count=16, *more):
    """Tensors whose sum is positive and negative by turns, irregularly."""
    signs = [1, -1, 1, 1, -1, -1, 1, -1] * (count // 8 + 1)
    return [
        (torch.rand(4, 3) * signs[index], *(each(index) for each in more)) for index in range(count)
    ]


class Counting:
    entered = 0

    def __enter__(self):
        self.entered += 1
        return self

    def __exit__(self, kind, value, traceback):
        self.entered -= 1
        return False


class Swallowing:
    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        return kind is ValueError


@differential(hits=10, graphs=1)
def test_a_context_manager_on_the_way():
    manager = Counting()

    def step(x):
        try:
            with manager:
                if x.sum() < 0:
                    raise ValueError
                y = x * manager.entered
        except ValueError:
            y = x * 3 + manager.entered
        return y

    return Program(step, calls(), [manager])


@differential(hits=10, graphs=1)
@pytest.mark.parametrize("manager", [Swallowing, lambda: contextlib.suppress(ValueError)])
def test_a_context_manager_that_handles_it(manager):
    def step(x):
        y = x * 3
        with manager():
            if x.sum() < 0:
                raise ValueError
            y = x * 2
        return y

    return Program(step, calls())


@differential(hits=10, graphs=1)
def test_out_of_no_grad():
    weight = nn.Parameter(torch.randn(3))

    def step(x):
        try:
            with torch.no_grad():
                if x.sum() < 0:
                    raise ValueError
                y = x * weight
        except ValueError:
            y = x * weight
        return y.detach(), torch.is_grad_enabled()

    return Program(step, calls(), [weight])


class Raising:
    """A context manager that notes what is called, and raises where the argument says."""

    def __init__(self, log, where="", gives=None, handles=None):
        self.log, self.where, self.gives, self.handles = log, where, gives, handles

    def __enter__(self):
        self.log.append("enter")
        if self.where == "enter":
            raise ValueError
        return self.gives

    def __exit__(self, kind, exception, traceback):
        self.log.append("left" if kind is None else kind.__name__)
        if self.where == "exit":
            raise KeyError
        return self.handles is not None and kind is self.handles


@differential(hits=10, graphs=2)
def test_a_manager_that_raises_as_it_is_entered():
    log = []

    def step(x):
        y = x
        try:
            with Raising(log, "enter" if x.sum() < 0 else ""):
                y = x * 2
        except ValueError:
            y = x * 3
        return y

    return Program(step, calls(), watch=[log])


@differential(hits=10, graphs=2)
def test_a_manager_within_another_that_raises_as_it_is_entered():
    log = []

    def step(x):
        y = x
        with Raising(log, handles=ValueError), Raising(log, "enter" if x.sum() < 0 else ""):
            y = x * 2
        return y + 1

    return Program(step, calls(), watch=[log])


@differential(hits=10, graphs=1)
def test_a_manager_whose_gift_can_not_be_taken_apart():
    log = []

    def step(x):
        y = x
        try:
            with Raising(log, gives=(1, 2, 3)) as (_first, _second):
                y = x * 2
        except ValueError:
            y = x * 3
        return y

    return Program(step, calls(), watch=[log])


@differential(hits=10, graphs=2)
def test_a_manager_within_another_that_is_not_made():
    log = []

    def made(x):
        if x.sum() < 0:
            raise ValueError
        return Raising(log)

    def step(x):
        y = x
        with Raising(log, handles=ValueError), made(x):
            y = x * 2
        return y + 1

    return Program(step, calls(), watch=[log])


@differential(hits=10, graphs=1)
def test_no_grad_in_front_of_what_raises():
    weight, log = nn.Parameter(torch.ones(3)), []

    def step(x):
        try:
            with torch.no_grad(), Raising(log, gives=(1, 2, 3)) as (_first, _second):
                pass
        except ValueError:
            pass
        return (weight * x).sum()

    return Program(step, calls(), watch=[log, weight])


@differential(hits=10, graphs=2)
def test_a_manager_that_raises_as_it_is_left():
    log = []

    def step(x):
        y = x
        try:
            with Raising(log, "exit"):
                if x.sum() < 0:
                    raise ValueError
                y = x * 2
        except KeyError:
            y = y + 1
        return y

    return Program(step, calls(), watch=[log])


@differential(hits=6, graphs=4)
def test_numbers_that_raise_under_a_manager():
    def step(x, n):
        factor = 5
        with contextlib.suppress(ZeroDivisionError):
            factor = 6 / n
        return x * factor

    def at_once(step):
        return (torchjanus.function(step, profile_runs=0),) * 2

    values = [3, 0, 5, 4, 0, 7, 2, 0, 9]
    return Program(step, [(torch.ones(3), n) for n in values], convert=at_once)
