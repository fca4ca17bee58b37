"""The elements that a mask chooses have a dimension that the run decides."""

import torch


def step(x):
    positive = x[x > 0]
    return positive.log().mean(), positive.shape[0]


CALLS = [(torch.arange(6.0) - i % 4,) for i in range(8)]
