"""What a signature says of a function is known; its code and its defaults are assumed."""

import inspect

import torch


def scaled(x, by=2.0, *, keep=True):
    return x * by


def step(x):
    parameters = inspect.signature(scaled).parameters
    return x * parameters["by"].default if "keep" in parameters else x


CALLS = [(torch.randn(3),) for _ in range(6)]
