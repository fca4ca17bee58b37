"""Refused: a custom function whose gradient is asked for behind the call."""

import torch


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


weight = torch.ones(3, requires_grad=True)


def step(x):
    return Doubled.apply(x * weight)


CALLS = [(torch.randn(3),) for _ in range(5)]
WATCHED = [weight]
