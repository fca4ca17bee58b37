"""A variable that is None on one side is a value and a flag."""

import torch


def step(x):
    penalty = None
    if x.sum() > 0:
        penalty = x.square().sum()
    loss = x.abs().sum()
    if penalty is not None:
        loss = loss + penalty
    return loss


CALLS = [(torch.full((4,), float(i % 2) - 0.5),) for i in range(8)]
