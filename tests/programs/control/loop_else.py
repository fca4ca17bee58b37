"""The `else` of a loop runs where no `break` was met."""

import torch


def step(x, n):
    for i in range(n):
        x = x + 1
        if x.sum() > 20:
            break
    else:
        x = -x
    return x


CALLS = [(torch.ones(3) * (i % 3), 3 + i % 4) for i in range(12)]
