"""NumPy's generator is drawn from in the program's order."""

import numpy

import torch


def step(x):
    if numpy.random.rand() < 0.5:
        x = x * 2
    return x + 1


CALLS = [(torch.randn(3),) for _ in range(10)]
