"""Rows of a table, and the cross entropy of classes."""

import torch.nn.functional as F

import torch
from torch import nn

table = nn.Embedding(5, 3)


def step(words, labels):
    table.zero_grad()
    loss = F.cross_entropy(table(words), labels)
    loss.backward()
    return loss


CALLS = [(torch.tensor([1, 4, 1]), torch.tensor([0, 2, 1])) for _ in range(5)]
WATCHED = [table]
