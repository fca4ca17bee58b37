"""Sizes that are computed from a varying one are expressions of its name."""

import torch


def step(x):
    n = x.shape[0]
    pairs = x[: n // 2 * 2].view(-1, 2)
    return pairs.sum(1), torch.zeros(2 * n + 1)


CALLS = [(torch.randn(4 + i),) for i in range(6)]
