"""A decorated function is inlined together with its wrapper."""

import functools

import torch


def scaled(function):
    @functools.wraps(function)
    def wrapper(*args):
        return 2 * function(*args)

    return wrapper


@scaled
def shifted(x):
    return x + 1


def step(x):
    return shifted(x)


CALLS = [(torch.randn(3),) for _ in range(5)]
