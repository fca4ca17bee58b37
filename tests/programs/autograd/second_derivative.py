"""A gradient with `create_graph=True` has a gradient itself: a penalty of its norm."""

import torch

weight = torch.ones(3, requires_grad=True)


def step(x):
    weight.grad = None
    x = x.detach().requires_grad_()
    y = (x * weight).square().sum()
    (gradient,) = torch.autograd.grad(y, x, create_graph=True)
    gradient.square().sum().backward()
    return weight.grad.clone()


CALLS = [(torch.randn(3),) for _ in range(5)]
WATCHED = [weight]
