"""Trains a small network, and does what training programs do besides: for a look at the page of a report.

torchjanus run --report out.html docs/pictures/train.py
"""

import time

import torch.nn.functional as F

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.first, self.second = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = F.gelu(self.first(self.norm(x)))
        if h.abs().max() > 1e6:  # has never happened
            h = h / h.abs().max()
        return x + self.second(h)


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(20, 64), Block(64), Block(64), nn.Linear(64, 10))
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
x, y = torch.randn(64, 20), torch.randint(10, (64,))
seen: list[float] = []
for step in range(900):
    start = time.monotonic()
    loss = F.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(1e-3)  # the picture
    seen.append(loss.item())
    if step % 300 == 299:
        print(f"step {step}: loss {seen[-1]:.3f} after {time.monotonic() - start:.3f} s")
