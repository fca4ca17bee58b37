"""Refused: a function in C, of which nothing is known, changes a list that existed before the call."""

import heapq

import torch

queue = [3, 1, 2]


def step(x):
    heapq.heappush(queue, 5)
    return x * 2


CALLS = [(torch.randn(3),) for _ in range(5)]
WATCHED = [queue]
