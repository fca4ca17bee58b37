"""A number that is another in each call becomes an input of the graph."""

import torch


def step(x, rate):
    return x * (1 - rate) + rate


CALLS = [(torch.randn(3), 0.1 * i) for i in range(6)]
