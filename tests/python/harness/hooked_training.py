"""A small network and its training step, for tests of hooks that stand on it."""

import torch
from torch import nn


def network():
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))


def batches(count=8):
    return [(torch.randn(5, 4),) for _ in range(count)]


def training(model, optimizer):
    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    return step
