"""What is appended to a list that existed before the call is added behind the run; its length isn't assumed."""

import torch

history = []


def step(x):
    loss = x.square().mean()
    history.append(loss)
    return loss * 2


CALLS = [(torch.randn(3),) for _ in range(6)]
WATCHED = [history]
