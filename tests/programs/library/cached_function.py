"""What an `lru_cache` holds is assumed to stay; the call itself is made behind the run."""

import functools

import torch


@functools.lru_cache
def mask(n):
    return torch.ones(n, n).tril()


def step(x):
    return x * mask(3)


CALLS = [(torch.randn(3, 3),) for _ in range(5)]
