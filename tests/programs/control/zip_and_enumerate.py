"""`zip`, `enumerate` and `reversed` over known sequences are unrolled."""

import torch


def step(xs, scales):
    total = torch.zeros(2)
    for i, (x, scale) in enumerate(zip(xs, reversed(scales))):
        total = total + i * scale * x
    return total


CALLS = [([torch.randn(2) for _ in range(3)], (1.0, 2.0, 3.0)) for _ in range(5)]
