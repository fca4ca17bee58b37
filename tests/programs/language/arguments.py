"""Defaults, keywords, *args and **kwargs are bound when the graph is made."""

import torch


def combine(x, *others, scale=1.0, **options):
    for other in others:
        x = x + other
    return x * scale - options.get("offset", 0.0)


def step(x, y):
    return combine(x, y, y, scale=0.5, offset=1.0)


CALLS = [(torch.randn(3), torch.randn(3)) for _ in range(5)]
