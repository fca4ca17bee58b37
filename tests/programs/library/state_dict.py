"""`load_state_dict` copies what another module's `state_dict` holds."""

import torch
from torch import nn

model, target = nn.Linear(2, 2), nn.Linear(2, 2)


def step(x):
    target.load_state_dict(model.state_dict())
    with torch.no_grad():
        return target(x)


CALLS = [(torch.randn(3, 2),) for _ in range(5)]
WATCHED = [model, target]
