"""Tensors of two sizes on the two sides of a branch: the size is a dimension that the run decides."""

import torch


def step(x):
    if x.sum() > 0:
        x = torch.cat([x, x])
    return x.exp().sum()


CALLS = [(torch.full((4,), float(i % 2) - 0.5),) for i in range(8)]
