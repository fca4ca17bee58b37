"""A warning is given behind the run."""

import warnings

import torch


def step(x):
    if x.dtype != torch.float32:
        warnings.warn("not in single precision", stacklevel=1)
    return x * 2


CALLS = [(torch.randn(3),) for _ in range(5)]
