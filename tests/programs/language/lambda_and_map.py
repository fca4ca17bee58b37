"""A lambda is inlined wherever it is called."""

import torch


def step(xs):
    square = lambda x: x * x
    return sum(map(square, xs))


CALLS = [((torch.randn(2), torch.randn(2)),) for _ in range(5)]
