"""Refused: a recursion that only the run ends, and that prints."""

import torch


def shrink(x):
    if x.abs().max() < 0.1:
        return x
    print("larger")
    return shrink(x / 2)


def step(x):
    return shrink(x) + 1


CALLS = [(torch.ones(3) * 2**i,) for i in range(8)]
