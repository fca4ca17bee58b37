"""`locals()` in a step: read, returned, passed on."""

import pytest
from differential import Program, differential

import torch


def batches(count=8):
    return [(torch.randn(4, 3),) for _ in range(count)]


def sum_of_locals(x):
    a = x * 2
    b = a + 1
    there = locals()
    return there["a"] + there["b"]


def returned_locals(x):
    b = x * 2
    if b is None:
        never = 1  # noqa: F841
    a = b + 1  # noqa: F841
    return locals()


def callee_of_locals(x, a, b=3):
    return x + a * b


def passed_locals(x, a=2):
    return callee_of_locals(**locals())


@pytest.mark.parametrize("step", [sum_of_locals, returned_locals, passed_locals])
@differential(hits=5, graphs=1)
def test_locals(step):
    return Program(step, batches())


@differential(hits=5, graphs=1)
def test_locals_of_a_closure():
    factor = 3

    def step(x):
        y = x * factor
        return dict(locals())

    return Program(step, batches())
