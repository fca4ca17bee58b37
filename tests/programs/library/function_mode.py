"""Refused: a mode is active that sees each call of torch."""

from torch.overrides import TorchFunctionMode

import torch


class Watching(TorchFunctionMode):
    def __torch_function__(self, function, types, arguments=(), keywords=None):
        return function(*arguments, **(keywords or {}))


def step(x):
    with Watching():
        return x * 2 + 1


CALLS = [(torch.randn(3),) for _ in range(5)]
