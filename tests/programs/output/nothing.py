"""A call that gives None, and of which only its writes are seen."""

import torch

total = torch.zeros(3)


def step(x):
    total.add_(x)


CALLS = [(torch.randn(3),) for _ in range(5)]
WATCHED = [total]
