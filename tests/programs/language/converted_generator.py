"""Refused: the converted function itself is a generator."""

import torch


def step(x):
    yield x * 2


CALLS = [(torch.randn(3),) for _ in range(4)]
