"""Model-agnostic meta-learning of sine waves: functional_call and torch.autograd.grad with create_graph."""

import math
import sys

import torch.nn.functional as F
from torch.func import functional_call

import torch
from torch import nn

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 150

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)


def task():
    amplitude, phase = 0.1 + 4.9 * torch.rand(1), math.pi * torch.rand(1)

    def sample(count):
        x = torch.rand(count, 1) * 10 - 5
        return x, amplitude * torch.sin(x + phase)

    return sample


def adapt(params, x, y, lr=0.01, steps=2):
    for _ in range(steps):
        loss = F.mse_loss(functional_call(model, params, (x,)), y)
        gradients = torch.autograd.grad(loss, list(params.values()), create_graph=True)
        params = {name: p - lr * g for (name, p), g in zip(params.items(), gradients, strict=True)}
    return params


for iteration in range(STEPS):
    optimizer.zero_grad()
    total = 0.0
    for _ in range(4):
        sample = task()
        adapted = adapt(dict(model.named_parameters()), *sample(10))
        x, y = sample(10)
        loss = F.mse_loss(functional_call(model, adapted, (x,)), y) / 4
        loss.backward()
        total += loss.item()
    optimizer.step()
    if iteration % 25 == 0:
        print(iteration, total)
print("parameters", sum(p.detach().double().abs().sum().item() for p in model.parameters()))
