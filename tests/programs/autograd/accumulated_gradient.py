"""Two backward passes without `zero_grad` between them add up."""

import torch

weight = torch.ones(3, requires_grad=True)


def step(x, y):
    weight.grad = None
    for batch in (x, y):
        (batch * weight).square().mean().backward()
    return weight.grad.norm()


CALLS = [(torch.randn(3), torch.randn(3)) for _ in range(5)]
WATCHED = [weight]
