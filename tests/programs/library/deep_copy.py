"""A deep copy of tensors and containers copies their contents."""

import copy

import torch

state = {"mean": torch.zeros(3), "history": [torch.ones(3)]}


def step(x):
    saved = copy.deepcopy(state)
    state["mean"].add_(x)
    return saved


CALLS = [(torch.randn(3),) for _ in range(5)]
WATCHED = [state]
