"""Gradient accumulation in a plain loop: an update every fourth batch, and one for the rest of an epoch."""

import sys

import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

import torch
from torch import nn

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 6


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = (
            nn.LayerNorm(width),
            nn.Linear(width, 96),
            nn.Linear(96, width),
        )

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


torch.manual_seed(5)
data = TensorDataset(torch.randn(1000, 24), torch.randn(1000))
loader = DataLoader(data, batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(24, 48), Residual(48), Residual(48), nn.Linear(48, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95))
accumulate, updates = 4, 0
for epoch in range(EPOCHS):
    running = 0.0
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader):
        loss = F.smooth_l1_loss(model(x).squeeze(1), y)
        (loss / accumulate).backward()
        running += loss.item()
        if (i + 1) % accumulate == 0 or i + 1 == len(loader):
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            updates += 1
    print(epoch, running / len(loader), updates)
print("parameters", sum(p.detach().double().abs().sum().item() for p in model.parameters()))
