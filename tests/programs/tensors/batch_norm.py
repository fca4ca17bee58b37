"""The running averages of a batch norm are state that is written."""

import torch
from torch import nn

layer = nn.BatchNorm1d(3)


def step(x):
    with torch.no_grad():
        return layer(x)


CALLS = [(torch.randn(4, 3),) for _ in range(6)]
WATCHED = [layer]
