"""Refused: a recursion over known numbers that is deeper than may be inlined."""

import torch


def count(x, n):
    return x if n == 0 else count(x + 1, n - 1)


def step(x):
    return count(x, 250)


CALLS = [(torch.randn(2),) for _ in range(5)]
