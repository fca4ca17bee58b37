"""Attributes that a recursion writes to the nodes that it meets are set behind the run."""

import random

import torch


class Node:
    def __init__(self, value, next):
        self.value, self.next = value, next


def run(node, x):
    node.state = x * node.value
    if node.next is not None:
        run(node.next, x + 1)


def step(node, x):
    run(node, x)
    return x * 2


def chain(size):
    return Node(random.random(), chain(size - 1) if size > 1 else None)


CALLS = [(chain(2 + i % 4), torch.randn(2)) for i in range(10)]
