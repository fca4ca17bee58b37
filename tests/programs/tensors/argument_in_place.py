"""An argument that is written in place gets its new contents behind the run."""

import torch


def step(x, y):
    x.add_(y)
    x[0] = 0.0
    return x.sum()


CALLS = [(torch.randn(3), torch.randn(3)) for _ in range(5)]
