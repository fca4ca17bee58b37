"""Refused: an attribute is written to a tensor that the run makes."""

import torch


def step(x):
    y = x * 2
    y.tag = "doubled"
    return y


CALLS = [(torch.randn(3),) for _ in range(5)]
