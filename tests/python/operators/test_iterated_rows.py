"""Rows of a tensor that are written while a loop goes over it."""

from differential import Program, differential

import torch
from torch import nn


@differential(reasons=["would_raise"])
def test_rows_that_are_written_while_they_are_iterated_over():
    """Autograd lets nobody write one of several views."""
    linear = nn.Linear(3, 3)

    def step(x):
        y = linear(x)
        for row in y:
            row.add_(1)
        return y.sum()

    return Program(step, [(torch.randn(4, 3),) for _ in range(6)], watch=[linear])


@differential(hits=3)
def test_rows_without_gradients_that_are_written_while_they_are_iterated_over():
    def step(x):
        for row in x:
            row.add_(1)
        return [row for row in x * 2], x

    return Program(step, [(torch.randn(4, 3),) for _ in range(6)])
