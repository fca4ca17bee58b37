"""The forms of one optimizer: a loop, foreach and fused AdamW, and groups with rates of their own."""

import sys

import torch.nn.functional as F

import torch
from torch import nn

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 6


def train(**form):
    torch.manual_seed(4)
    model = nn.Sequential(
        nn.Embedding(40, 24), nn.Flatten(), nn.Linear(24 * 6, 64), nn.ReLU(), nn.Linear(64, 40)
    )
    decay = [p for p in model.parameters() if p.dim() > 1]
    rest = [p for p in model.parameters() if p.dim() <= 1]
    groups = [
        {"params": decay, "weight_decay": 0.05},
        {"params": rest, "weight_decay": 0.0, "lr": 5e-3},
    ]
    optimizer = torch.optim.AdamW(groups, lr=2e-3, **form)
    tokens = torch.randint(0, 40, (320, 6))
    targets = tokens.sum(1).remainder(40)
    for epoch in range(EPOCHS):
        total = 0.0
        for batch, target in zip(tokens.split(16), targets.split(16), strict=True):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(batch), target)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(form, epoch, total / 20)
    return sum(p.detach().double().abs().sum().item() for p in model.parameters())


for form in ({"foreach": False}, {"foreach": True}, {"fused": True}):
    print(form, train(**form))
