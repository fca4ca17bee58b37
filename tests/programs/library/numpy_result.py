"""The array of a result is made behind the run, on the memory of the tensor."""

import torch


def step(x):
    y = x * 2
    return y, y.detach().numpy()


CALLS = [(torch.ones(3),) for _ in range(6)]
