"""Elements chosen along a dimension, and added there."""

import torch


def step(x, index):
    chosen = x.gather(1, index)
    return chosen, torch.zeros_like(x).scatter_add(1, index, chosen)


CALLS = [(torch.randn(2, 4), torch.tensor([[0, 1], [3, 3]])) for _ in range(5)]
