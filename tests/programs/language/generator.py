"""A generator that a loop uses at once runs around the loop's body."""

import torch


def halves(x):
    while x.shape[0] > 1:
        yield x
        x = x[: x.shape[0] // 2]


def step(x):
    total = 0
    for part in halves(x):
        total = total + part.sum()
    return total


CALLS = [(torch.randn(8),) for _ in range(5)]
