"""A learning rate set by hand each step: linear warm-up, then inverse square root; weight decay that follows it."""

import sys

import torch.nn.functional as F

import torch
from torch import nn

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 10


def learning_rate(step, peak=4e-3, warmup=40):
    return peak * min(step / warmup, (warmup / step) ** 0.5)


class Mixer(nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.across = nn.Sequential(nn.Linear(tokens, 32), nn.GELU(), nn.Linear(32, tokens))
        self.within = nn.Sequential(nn.Linear(width, 48), nn.GELU(), nn.Linear(48, width))
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2)])

    def forward(self, x):
        x = x + self.across(self.norms[0](x).transpose(1, 2)).transpose(1, 2)
        return x + self.within(self.norms[1](x))


torch.manual_seed(0)
model = nn.Sequential(
    nn.Linear(6, 32), Mixer(12, 32), Mixer(12, 32), nn.Flatten(), nn.Linear(384, 5)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.0)
x = torch.randn(400, 12, 6)
y = x.mean(1)[:, :5].argmax(1)
step = 0
for epoch in range(EPOCHS):
    order = torch.randperm(400)
    for start in range(0, 400, 20):
        step += 1
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step)
            group["weight_decay"] = 10 * group["lr"]
        chosen = order[start : start + 20]
        loss = F.cross_entropy(model(x[chosen]), y[chosen])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step}: loss {loss.item()!r}, lr {learning_rate(step):.6f}")
print("parameters", sum(p.detach().double().abs().sum().item() for p in model.parameters()))
