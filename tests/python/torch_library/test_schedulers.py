"""Schedulers of the learning rate, in the step and between epochs."""

import math

import pytest
from differential import Program, differential

import torch
from torch import nn


def batches(count=8):
    return [(torch.randn(4, 3),) for _ in range(count)]


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW])
@differential(hits=30, graphs=2)
def test_learning_rate_of_epochs(kind):
    model = nn.Linear(3, 2)
    optimizer = kind(model.parameters(), 0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.7)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    calls = []
    for _ in range(8):
        calls += [*batches(5), schedule.step]
    return Program(step, calls, watch=[model])


def numbered_batches(count=12):
    return [(torch.randn(5, 4), i) for i in range(count)]


@differential(hits=8)
def test_cosine_of_a_counter():
    model = nn.Linear(4, 3)
    model.steps = 0

    def step(x, i):
        model.steps += 1
        factor = 0.5 * (1 + math.cos(math.pi * model.steps / 20))
        return model(x * factor).sum()

    return Program(step, numbered_batches(), watch=[model])


SCHEDULERS = {
    "cosine": lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 10),
    "one cycle": lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=50),
    "warm restarts": lambda o: torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 7),
    "cyclic": lambda o: torch.optim.lr_scheduler.CyclicLR(o, 0.01, 0.1, step_size_up=5),
    "lambda": lambda o: torch.optim.lr_scheduler.LambdaLR(
        o, lambda e: 0.5 * (1 + math.cos(e * 0.1))
    ),
    "multi step": lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [4, 9]),
    "sequential": lambda o: torch.optim.lr_scheduler.SequentialLR(
        o,
        [
            torch.optim.lr_scheduler.ConstantLR(o, 0.1, 4),
            torch.optim.lr_scheduler.ExponentialLR(o, 0.9),
        ],
        milestones=[4],
    ),
    "plateau": lambda o: torch.optim.lr_scheduler.ReduceLROnPlateau(o, patience=2),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SCHEDULERS)
def test_schedulers(name):
    @differential(hits=10)
    def program():
        model = nn.Linear(4, 3)
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        scheduler = SCHEDULERS[name](optimizer)

        def step(x, i):
            optimizer.zero_grad()
            loss = model(x).pow(2).mean()
            loss.backward()
            optimizer.step()
            scheduler.step(loss) if name == "plateau" else scheduler.step()
            return loss, optimizer.param_groups[0]["lr"]

        return Program(step, numbered_batches(24), watch=[model])

    program()
