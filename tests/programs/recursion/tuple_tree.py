"""A recursion over nested tuples of ever other forms becomes a function of the graph that reads them."""

import random

import torch


def total(tree, x):
    if isinstance(tree, tuple):
        left, right = tree
        return total(left, x + 1) - total(right, x * 0.5)
    return x * tree


def step(tree, x):
    return total(tree, x)


def tree(size):
    if size == 1:
        return random.randrange(10)
    left = random.randrange(1, size)
    return tree(left), tree(size - left)


CALLS = [(tree(2 + i % 6), torch.randn(2)) for i in range(10)]
