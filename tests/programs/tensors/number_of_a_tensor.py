"""`item()` gives a number that the run computes with."""

import torch


def step(x):
    peak = x.max().item()
    count = int((x > 0).sum())
    return x / (peak + 1), peak * 2, count + 1


CALLS = [(torch.arange(4.0) - i % 3,) for i in range(6)]
