"""`clip_grad_norm_` of torch is inlined: a norm of all gradients and a scale in place."""

import torch
from torch import nn

model = nn.Linear(3, 2)


def step(x):
    model.zero_grad()
    model(x).square().sum().backward()
    return nn.utils.clip_grad_norm_(model.parameters(), 0.5)


CALLS = [(torch.randn(4, 3),) for _ in range(5)]
WATCHED = [model]
