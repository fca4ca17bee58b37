"""A module without parameters that is made in the call is its attributes, with `forward` inlined."""

import torch
from torch import nn


def step(x, y):
    criterion = nn.SmoothL1Loss(beta=0.5)
    return criterion(nn.ReLU()(x), y)


CALLS = [(torch.randn(3), torch.randn(3)) for _ in range(5)]
