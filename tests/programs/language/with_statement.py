"""`with torch.no_grad()` says what has a gradient and is nothing in the graph."""

import torch

weight = torch.ones(3, requires_grad=True)


def step(x):
    with torch.no_grad():
        mean = (x * weight).mean()
    return x * weight - mean


CALLS = [(torch.randn(3),) for _ in range(5)]
WATCHED = [weight]
