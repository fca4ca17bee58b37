"""Conversions between dtypes, and results of each of them."""

import torch


def step(x):
    return x.float(), x.long(), (x > 0).to(torch.uint8), x.half().double()


CALLS = [(torch.randn(3),) for _ in range(5)]
