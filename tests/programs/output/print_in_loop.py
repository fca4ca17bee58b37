"""`print` in a loop of the graph is called for each iteration."""

import torch


def step(x, n):
    for i in range(n):
        x = x * 0.5
        print(i, x.sum().item())
    return x


CALLS = [(torch.ones(3), 2 + i % 3) for i in range(8)]
