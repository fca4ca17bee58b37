"""Functions of `math` on numbers that vary are operators on numbers, or calls of Python's."""

import math

import torch


def step(x, n):
    rate = 0.5 * (1 + math.cos(math.pi * n / 10))
    return x * rate, math.floor(rate * 7), math.sqrt(n)


CALLS = [(torch.randn(3), i) for i in range(7)]
