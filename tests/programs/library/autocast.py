"""Under `torch.autocast` operands are cast by torch's lists."""

import torch
from torch import nn

model = nn.Linear(4, 2).float()


def step(x):
    with torch.no_grad():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return model(x).float()


CALLS = [(torch.ones(3, 4, dtype=torch.float32),) for _ in range(5)]
