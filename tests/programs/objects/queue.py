"""A deque of a greatest length drops one element and gets another one."""

from collections import deque

import torch

recent = deque([torch.zeros(3)] * 3, maxlen=3)


def step(x):
    recent.append(x * 2)
    return sum(recent)


CALLS = [(torch.randn(3),) for _ in range(6)]
WATCHED = [recent]
