"""An exponential moving average of the weights: a deep copy updated in place each step, evaluated each epoch."""

import copy
import sys

import torch.nn.functional as F

import torch
from torch import nn

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 8


class EMA:
    def __init__(self, model, decay):
        self.model, self.decay, self.updates = copy.deepcopy(model).eval(), decay, 0
        for p in self.model.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        self.updates += 1
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        for average, value in zip(self.model.parameters(), model.parameters(), strict=True):
            average.mul_(decay).add_(value, alpha=1 - decay)
        for average, value in zip(self.model.buffers(), model.buffers(), strict=True):
            average.copy_(value)


torch.manual_seed(2)
model = nn.Sequential(
    nn.Conv1d(2, 16, 5, padding=2, bias=False), nn.BatchNorm1d(16), nn.SiLU(),
    nn.Conv1d(16, 16, 5, padding=2, bias=False), nn.BatchNorm1d(16), nn.SiLU(),
    nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(16, 3),
)  # fmt: skip
ema = EMA(model, 0.99)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
x = torch.randn(480, 2, 32)
y = x[:, 0].mul(x[:, 1]).mean(1).mul(8).clamp(-1, 1).round().long() + 1
for epoch in range(EPOCHS):
    model.train()
    for chosen in torch.randperm(480).split(24):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x[chosen]), y[chosen])
        loss.backward()
        optimizer.step()
        ema.update(model)
    model.eval()
    with torch.no_grad():
        both = [F.cross_entropy(each(x), y).item() for each in (model, ema.model)]
    print(epoch, loss.item(), *both)
print("parameters", sum(p.double().abs().sum().item() for p in ema.model.parameters()))
