"""Methods of several classes that call each other: the class of a node that the run meets is a test."""

import random

import torch


class Leaf:
    def __init__(self, value):
        self.value = value

    def evaluate(self, x):
        return x * self.value


class Sum:
    def __init__(self, left, right):
        self.left, self.right = left, right

    def evaluate(self, x):
        return self.left.evaluate(x) + self.right.evaluate(x.sin())


def step(node, x):
    return node.evaluate(x)


def tree(size):
    if size == 1:
        return Leaf(random.random())
    left = random.randrange(1, size)
    return Sum(tree(left), tree(size - left))


CALLS = [(tree(2 + i % 6), torch.randn(2)) for i in range(10)]
