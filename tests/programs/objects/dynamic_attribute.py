"""`getattr`, `hasattr` and `setattr` with names that are known when the graph is made."""

import torch


class Config:
    activation = "tanh"


config = Config()


def step(x):
    if not hasattr(config, "used"):
        setattr(config, "used", True)
    return getattr(torch, config.activation)(x)


CALLS = [(torch.randn(3),) for _ in range(6)]
WATCHED = [config]
