"""Full backward hooks on modules and hooks on tensors: gradient norms a layer, gradients scaled on their way."""

import sys
from collections import defaultdict

import torch.nn.functional as F

import torch
from torch import nn

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 10

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 3))
norms = defaultdict(float)


def watch(name):
    def hook(module, grad_input, grad_output):
        norms[name] += grad_output[0].norm().item()

    return hook


for name, module in model.named_children():
    if isinstance(module, nn.Linear):
        module.register_full_backward_hook(watch(name))
model[0].weight.register_hook(lambda gradient: gradient * 0.5)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
x = torch.randn(480, 12)
y = (x[:, :3] + x[:, 3:6]).argmax(1)
for epoch in range(EPOCHS):
    total = 0.0
    norms.clear()
    for start in range(0, 480, 24):
        loss = F.cross_entropy(model(x[start : start + 24]), y[start : start + 24])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(epoch, total / 20, {name: round(value / 20, 4) for name, value in sorted(norms.items())})
print("parameters", sum(p.detach().double().abs().sum().item() for p in model.parameters()))
