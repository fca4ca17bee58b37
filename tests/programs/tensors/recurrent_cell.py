"""A recurrent cell over the steps of a sequence of known length."""

import torch
from torch import nn

cell = nn.GRUCell(2, 3)


def step(xs):
    with torch.no_grad():
        state = torch.zeros(1, 3)
        for x in xs:
            state = cell(x, state)
        return state


CALLS = [(torch.randn(2, 1, 2),) for _ in range(5)]
