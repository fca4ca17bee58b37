"""A test that went both ways is an `if` of the graph."""

import torch


def step(x):
    if x.sum() > 0:
        y = x * 2
        z = y + 1
    else:
        y = x - 1
        z = x
    return y * z


CALLS = [(torch.full((4,), float(i % 2) - 0.5),) for i in range(8)]
