"""A conditional expression is an `if` with a value."""

import torch


def step(x):
    y = x.relu() if x.sum() > 0 else x.tanh()
    return y * 2


CALLS = [(torch.full((4,), float(i % 2) - 0.5),) for i in range(8)]
