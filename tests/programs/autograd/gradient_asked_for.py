"""`torch.autograd.grad` of a value made in the call is part of the graph."""

import torch


def step(x):
    x = x.detach().requires_grad_()
    y = (x**3).sum()
    (gradient,) = torch.autograd.grad(y, x)
    return gradient


CALLS = [(torch.randn(3),) for _ in range(5)]
