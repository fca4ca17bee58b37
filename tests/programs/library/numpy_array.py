"""Refused: the elements of a tensor become a NumPy array."""

import torch


def step(x):
    array = (x * 2).numpy()
    return float(array.sum())


CALLS = [(torch.ones(3),) for _ in range(5)]
