"""A number that Python's generator draws decides a branch."""

import random

import torch


def step(x):
    if random.random() < 0.5:
        x = x * 2
    return x + 1


CALLS = [(torch.randn(3),) for _ in range(10)]
