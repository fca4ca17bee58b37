"""`backward()` is the gradient's graph, and `.grad` is set behind the run."""

import torch

weight = torch.ones(3, requires_grad=True)


def step(x):
    weight.grad = None
    loss = (x * weight).square().sum()
    loss.backward()
    return loss


CALLS = [(torch.randn(3),) for _ in range(5)]
WATCHED = [weight]
