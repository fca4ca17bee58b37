"""A result of which the gradient is asked outside keeps its way back."""

import torch

weight = torch.ones(3, requires_grad=True)


def step(x):
    hidden = (x * weight).tanh()
    return hidden.sum(), hidden.detach()


CALLS = [(torch.randn(3),) for _ in range(5)]
WATCHED = [weight]
