"""Refused: more iterations than may be unrolled, over objects that no loop of the graph takes."""

import torch

words = [str(i) for i in range(6000)]


def step(x):
    for word in words:
        x = x + len(word)
    return x


CALLS = [(torch.randn(2),) for _ in range(5)]
