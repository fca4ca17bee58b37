"""A recursion that appends to a list has a list of the graph."""

import random

import torch


def collect(tree, x, leaves):
    if isinstance(tree, int):
        leaves.append(x * tree)
    else:
        left, right = tree
        collect(left, x + 1, leaves)
        collect(right, x * 0.5, leaves)


def step(tree, x):
    leaves = []
    collect(tree, x, leaves)
    return torch.stack(leaves).sum(0)


def tree(size):
    if size == 1:
        return random.randrange(10)
    left = random.randrange(1, size)
    return tree(left), tree(size - left)


CALLS = [(tree(2 + i % 6), torch.randn(2)) for i in range(10)]
