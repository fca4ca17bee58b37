"""An assertion about the shape is decided; one about values is a guard."""

import torch


def step(x):
    assert x.dim() == 1, "a vector is expected"
    assert x.sum() > 0
    return x.log()


CALLS = [(torch.ones(3) * (i + 1),) for i in range(5)]
