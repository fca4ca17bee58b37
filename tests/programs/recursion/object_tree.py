"""A recursion over objects that loops over their children: a loop within a function of the graph."""

import random

import torch


class Node:
    def __init__(self, value, children):
        self.value, self.children = value, children


def total(node, x):
    result = x * node.value
    for child in node.children:
        result = result + total(child, x * 0.5)
    return result


def step(node, x):
    return total(node, x)


def tree(depth):
    count = random.randrange(1, 3) if depth else 0
    return Node(random.random(), [tree(depth - 1) for _ in range(count)])


CALLS = [(tree(1 + i % 3), torch.randn(2)) for i in range(12)]
