"""A whole step of training: forward, loss, backward and the optimizer's update."""

import torch.nn.functional as F

import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def step(x, y):
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


CALLS = [(torch.randn(5, 4), torch.randn(5, 1)) for _ in range(5)]
WATCHED = [model, optimizer]
