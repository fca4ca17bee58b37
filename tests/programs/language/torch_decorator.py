"""A function that `torch.no_grad` decorates is inlined in torch's wrapper of it."""

import torch

weight = torch.ones(3, requires_grad=True)


@torch.no_grad()
def step(x):
    return x * weight


CALLS = [(torch.randn(3),) for _ in range(5)]
WATCHED = [weight]
