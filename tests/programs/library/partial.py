"""A `functools.partial` calls its function with what it holds."""

import functools

import torch.nn.functional as F

import torch

activation = functools.partial(F.leaky_relu, negative_slope=0.2)


def step(x):
    return activation(x) + 1


CALLS = [(torch.randn(3),) for _ in range(5)]
