"""What `itertools` and `functools` rearrange is known when the graph is made."""

import functools
import itertools
import operator

import torch


def step(xs):
    pairs = [a * b for a, b in itertools.combinations(xs, 2)]
    return functools.reduce(operator.add, pairs), list(itertools.accumulate(pairs))


CALLS = [([torch.randn(2) for _ in range(3)],) for _ in range(5)]
