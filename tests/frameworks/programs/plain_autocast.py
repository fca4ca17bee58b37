"""Mixed precision in a plain loop: bfloat16 autocast, a GradScaler, clipping of unscaled gradients."""

import sys

import torch.nn.functional as F

import torch
from torch import nn

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 200

torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
    nn.Flatten(), nn.LayerNorm(64), nn.Linear(64, 10),
)  # fmt: skip
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=40)
images = torch.rand(512, 1, 12, 12)
labels = (images.mean((1, 2, 3)) * 1e4).long() % 10
for step in range(STEPS):
    start = step * 16 % 512
    x, y = images[start : start + 16], labels[start : start + 16]
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    if step % 25 == 0:
        print(step, f"{loss.item():.2f} {norm.item():.1f}", scaler.get_scale())
print("finite", all(bool(torch.isfinite(p).all()) for p in model.parameters()))
