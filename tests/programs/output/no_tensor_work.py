"""Refused: nothing is computed with tensors."""

import torch


def step(x):
    return [x, x.shape[0]]


CALLS = [(torch.randn(3),) for _ in range(6)]
