"""A chained comparison of a number of the run is two tests joined by `and`."""

import torch


def step(x):
    mean = x.mean().item()
    if -0.5 < mean < 0.5:
        return x + 1
    return x - 1


CALLS = [(torch.full((4,), float(i % 3) - 1),) for i in range(8)]
