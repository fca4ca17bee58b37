"""Refused: the shapes don't fit, and the program handles what torch raises."""

import torch


def step(x, y):
    try:
        return x @ y
    except RuntimeError:
        return x * 2


CALLS = [(torch.randn(3, 2), torch.randn(3, 2)) for _ in range(5)]
