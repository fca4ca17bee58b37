"""Refused: a second `backward()` through what the first one has freed raises."""

import torch

weight = torch.ones(3, requires_grad=True)


def step(x):
    loss = (x * weight).square().sum()
    loss.backward()
    loss.backward()
    return loss


CALLS = [(torch.randn(3),) for _ in range(5)]
WATCHED = [weight]
