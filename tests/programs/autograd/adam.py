"""Adam's state (two averages and a number of steps for each parameter) is state of the graph."""

import torch

weight = torch.ones(3, requires_grad=True)
optimizer = torch.optim.Adam([weight], lr=0.1)


def step(x):
    optimizer.zero_grad()
    loss = (x * weight).square().sum()
    loss.backward()
    optimizer.step()
    return loss.item()


CALLS = [(torch.randn(3),) for _ in range(6)]
WATCHED = [weight, optimizer]
