"""The gradient of a `while` is a loop that runs back."""

import torch

weight = torch.ones(3, requires_grad=True)


def step(x, n):
    weight.grad = None
    for _ in range(n):
        x = (x * weight).sin()
    x.sum().backward()
    return x.detach()


CALLS = [(torch.randn(3), 2 + i % 3) for i in range(8)]
WATCHED = [weight]
