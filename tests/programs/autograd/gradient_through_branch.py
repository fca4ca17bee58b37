"""A parameter that one side of a branch uses has a gradient and a flag."""

import torch

weight = torch.ones(3, requires_grad=True)
other = torch.ones(3, requires_grad=True)


def step(x):
    weight.grad = other.grad = None
    y = x * weight
    if x.sum() > 0:
        y = y * other
    loss = y.sum()
    loss.backward()
    return loss


CALLS = [(torch.full((3,), float(i % 2) - 0.5),) for i in range(8)]
WATCHED = [weight, other]
