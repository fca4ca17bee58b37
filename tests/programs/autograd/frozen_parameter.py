"""A parameter that requires no gradient gets none, and nothing is kept for it."""

import torch
from torch import nn

model = nn.Linear(3, 2)
model.weight.requires_grad_(False)


def step(x):
    model.zero_grad()
    loss = model(x).square().sum()
    loss.backward()
    return loss


CALLS = [(torch.randn(4, 3),) for _ in range(5)]
WATCHED = [model]
