"""A loop over a range that varies is a `while` of the graph."""

import torch


def step(x, n):
    for i in range(n):
        x = x * 0.5 + i
    return x


CALLS = [(torch.randn(3), 2 + i % 4) for i in range(8)]
