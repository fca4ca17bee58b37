"""A recursion that only the run ends is a function of the graph."""

import torch


def shrink(x):
    if x.abs().max() < 0.1:
        return x
    return shrink(x / 2)


def step(x):
    return shrink(x) + 1


CALLS = [(torch.ones(3) * 2**i,) for i in range(8)]
