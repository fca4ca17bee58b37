"""A branch within a branch, and a variable that only some sides assign."""

import torch


def step(x):
    scale = 1.0
    if x[0] > 0:
        if x[1] > 0:
            scale = 2.0
        else:
            x = x - 1
    return x * scale


CALLS = [(torch.tensor([a, b, 1.0]),) for a, b in [(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0)] * 3]
