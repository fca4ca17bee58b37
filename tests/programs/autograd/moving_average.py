"""Parameters of a second model are updated in place under `no_grad`."""

import torch
from torch import nn

model, target = nn.Linear(2, 2), nn.Linear(2, 2)


def step():
    with torch.no_grad():
        for p, q in zip(model.parameters(), target.parameters()):
            q.mul_(0.9).add_(p, alpha=0.1)


CALLS = [() for _ in range(5)]
WATCHED = [model, target]
