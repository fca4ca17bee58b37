"""LBFGS with a closure: a physics-informed network that solves u'' = -sin(x) with derivatives by autograd."""

import math
import sys

import torch
from torch import nn

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 60

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1))
x = torch.linspace(0, math.pi, 64).unsqueeze(1).requires_grad_(True)
edges = torch.tensor([[0.0], [math.pi]])
optimizer = torch.optim.LBFGS(net.parameters(), lr=0.5, max_iter=8, history_size=10)
evaluations = 0


def residual():
    u = net(x)
    (du,) = torch.autograd.grad(u.sum(), x, create_graph=True)
    (ddu,) = torch.autograd.grad(du.sum(), x, create_graph=True)
    return (ddu + torch.sin(x)).pow(2).mean() + 10 * net(edges).pow(2).mean()


def closure():
    global evaluations
    optimizer.zero_grad()
    loss = residual()
    loss.backward()
    evaluations += 1
    return loss


for step in range(STEPS):
    loss = optimizer.step(closure)
    if step in (0, 1, 2, 3):
        print(step, f"{loss.item():.4f}")
with torch.no_grad():
    worst = (net(x) - torch.sin(x)).abs().max().item()
print("solved", worst < 0.05, evaluations > 60)
