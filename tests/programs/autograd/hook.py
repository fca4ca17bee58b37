"""A hook on a tensor of the run changes the gradient where `backward()` comes to it."""

import torch

weight = torch.ones(3, requires_grad=True)


def step(x):
    weight.grad = None
    hidden = x * weight
    hidden.register_hook(lambda gradient: gradient * 0.5)
    hidden.square().sum().backward()
    return hidden.detach()


CALLS = [(torch.randn(3),) for _ in range(5)]
WATCHED = [weight]
