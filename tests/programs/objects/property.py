"""A property's function is inlined, and so is its setter."""

import torch


class Layer:
    def __init__(self):
        self._rate = 0.5

    @property
    def rate(self):
        return self._rate * 2

    @rate.setter
    def rate(self, value):
        self._rate = value / 2


layer = Layer()


def step(x):
    layer.rate = 4.0
    return x * layer.rate


CALLS = [(torch.randn(3),) for _ in range(5)]
WATCHED = [layer]
