"""Schedulers in a plain loop: OneCycle a step, a chain of warm-up and cosine an epoch, momentum that changes."""

import sys

import torch.nn.functional as F
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, OneCycleLR, SequentialLR

import torch
from torch import nn

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 8


def train(make_scheduler, every_step):
    torch.manual_seed(1)
    x, y = torch.randn(640, 16), torch.randint(0, 4, (640,))
    model = nn.Sequential(nn.Linear(16, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    scheduler = make_scheduler(optimizer)
    for epoch in range(EPOCHS):
        total = 0.0
        for start in range(0, 640, 32):
            optimizer.zero_grad()
            loss = F.cross_entropy(
                model(x[start : start + 32]), y[start : start + 32], label_smoothing=0.1
            )
            loss.backward()
            optimizer.step()
            if every_step:
                scheduler.step()
            total += loss.item()
        if not every_step:
            scheduler.step()
        print(epoch, total / 20, scheduler.get_last_lr()[0], optimizer.param_groups[0]["momentum"])
    return sum(p.detach().double().abs().sum().item() for p in model.parameters())


def chain(optimizer):
    warm_up = LinearLR(optimizer, 0.1, total_iters=3)
    return SequentialLR(
        optimizer, [warm_up, CosineAnnealingLR(optimizer, EPOCHS - 3)], milestones=[3]
    )


print(
    "one cycle", train(lambda optimizer: OneCycleLR(optimizer, 0.2, total_steps=20 * EPOCHS), True)
)
print("chain", train(chain, False))
