"""A variable of the enclosing function is read, and written behind the run."""

import torch


def make():
    total = torch.zeros(3)
    calls = 0

    def step(x):
        nonlocal total, calls
        total = total * 0.9 + x
        calls += 1
        return total / calls

    return step


step = make()
CALLS = [(torch.randn(3),) for _ in range(6)]
