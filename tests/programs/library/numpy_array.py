"""Refused: NumPy computes with the array of a tensor."""

import torch


def step(x):
    array = (x * 2).numpy()
    return float(array.sum())


CALLS = [(torch.ones(3),) for _ in range(5)]
