"""A test of a known value follows one side; the value is an assumption."""

import torch
from torch import nn

layer = nn.Dropout(0.5)
layer.eval()


def step(x):
    if layer.training:
        return layer(x)
    return x + 1


CALLS = [(torch.randn(3),) for _ in range(5)]
