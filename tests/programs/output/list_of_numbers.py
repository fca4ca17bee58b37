"""`tolist()` of a tensor of known size gives numbers of the run."""

import torch


def step(x):
    first, second = x.softmax(0).tolist()
    return max(first, second), [first, second]


CALLS = [(torch.randn(2),) for _ in range(5)]
