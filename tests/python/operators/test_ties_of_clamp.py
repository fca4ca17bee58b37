"""Gradients of clamp where an operand equals its bounds, where bounds cross and where something is no number: they
differ between versions of torch."""

import itertools
import math

import pytest
from differential import Program, differential

import torch

NUMBERS = (-math.inf, -1.0, 0.0, -0.0, 1.0, 2.0, math.inf, math.nan)


def columns(count):
    """All combinations of the numbers, as one tensor for each place."""
    rows = torch.tensor(list(itertools.product(NUMBERS, repeat=count)), dtype=torch.float64)
    return rows.unbind(1)


BY_TENSORS = {
    "from below": lambda x, low: torch.clamp(x, min=low),
    "from above": lambda x, high: torch.clamp(x, max=high),
    "between": torch.clamp,
    "maximum": torch.maximum,
}


@pytest.mark.parametrize("name", BY_TENSORS)
@differential()
def test_tensors_as_bounds(name):
    clamped = BY_TENSORS[name]

    def step(*operands):
        leaves = [each.clone().requires_grad_() for each in operands]
        result = clamped(*leaves)
        return result, torch.autograd.grad((result * weights).sum(), leaves)

    operands = columns(3 if name == "between" else 2)
    weights = torch.arange(len(operands[0]), dtype=torch.float64) + 3
    return Program(step, [operands for _ in range(5)])


BY_NUMBERS = {
    "from below": lambda x, low, high: x.clamp(min=low),
    "from above": lambda x, low, high: x.clamp(max=high),
    "between": lambda x, low, high: x.clamp(low, high),
    "clamp_min": lambda x, low, high: x.clamp_min(low),
    "clamp_max": lambda x, low, high: x.clamp_max(high),
}


@pytest.mark.parametrize("name", BY_NUMBERS)
@differential()
def test_numbers_as_bounds(name):
    clamped = BY_NUMBERS[name]

    def step(x):
        leaf = x.clone().requires_grad_()
        results = [clamped(leaf, low, high) for low in NUMBERS for high in (-1.0, 0.0, 2.0)]
        return results, torch.autograd.grad(torch.stack(results).sum(), leaf)

    (numbers,) = columns(1)
    return Program(step, [(numbers,) for _ in range(5)])


@differential(tolerance=0)
def test_log10_to_the_last_bit():
    def step(x):
        leaf = x.clone().requires_grad_()
        return torch.autograd.grad(leaf.log10().sum(), leaf)

    numbers = torch.logspace(-3, 3, 4096, dtype=torch.float64)
    return Program(step, [(numbers,) for _ in range(5)])
