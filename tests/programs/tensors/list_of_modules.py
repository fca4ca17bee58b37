"""A `ModuleList` is unrolled, and each of its modules inlined."""

import torch
from torch import nn

layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(2)])


def step(x):
    with torch.no_grad():
        for layer in layers:
            x = x + layer(x).relu()
        return x


CALLS = [(torch.randn(3, 2),) for _ in range(5)]
