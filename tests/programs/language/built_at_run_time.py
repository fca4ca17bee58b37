"""Refused: `exec` runs a text that the run makes."""

import torch


def step(x):
    names = {"x": x}
    exec("y = x * 2", names)
    return names["y"] + 1


CALLS = [(torch.randn(3),) for _ in range(16)]
