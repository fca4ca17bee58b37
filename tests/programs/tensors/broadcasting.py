"""Broadcasting and dtypes are part of each operator's rule."""

import torch


def step(x, mask, n):
    return (x[:, None] + n) * mask


CALLS = [(torch.randn(3), torch.arange(2) > 0, torch.arange(2)) for _ in range(5)]
