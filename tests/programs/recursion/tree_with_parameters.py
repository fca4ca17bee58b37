"""A recursion with layers: their gradient comes from as many nodes as the run has met."""

import random

import torch
from torch import nn

words, cell = nn.Embedding(10, 2), nn.Linear(4, 2)
model = nn.ModuleList([words, cell])


def encode(tree):
    if isinstance(tree, int):
        return words.weight[tree]
    left, right = tree
    return torch.tanh(cell(torch.cat([encode(left), encode(right)])))


def step(tree):
    model.zero_grad()
    loss = encode(tree).sum()
    loss.backward()
    return loss


def tree(size):
    if size == 1:
        return random.randrange(10)
    left = random.randrange(1, size)
    return tree(left), tree(size - left)


CALLS = [(tree(2 + i % 6),) for i in range(10)]
WATCHED = [model]
