"""A test that always went one way is a guard; when it goes the other way, a graph with both is made."""

import torch


def step(x):
    if x.max() > 10:
        x = x.clamp(max=10)
    return x * 2


CALLS = [(torch.ones(3) * value,) for value in (1, 2, 3, 4, 20, 5, 30, 6)]
