"""Schedulers of the learning rate, in the step and between epochs."""

import math

import pytest
from differential import Program, differential

import torch
from torch import nn


def batches(count=8):
    return [(torch.randn(4, 3),) for _ in range(count)]


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW])
@differential(hits=36, graphs=1)
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


def changes(calls, change, first, every):
    """The calls, and the change after the first ones and then again and again."""
    mixed = []
    for index, call in enumerate(calls):
        if index >= first and index % every == 0:
            mixed.append(lambda index=index: change(index))
        mixed.append(call)
    return mixed


def training(kind, *groups, **options):
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    layers = [model[0], model[2]]
    settings = groups or ({}, {})
    optimizer = kind(
        [{"params": list(layer.parameters()), **own} for layer, own in zip(layers, settings)],
        **options,
    )

    def step(x):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return model, optimizer, step


@differential(hits=290, graphs=2)
def test_learning_rate_that_changes_late():
    """One more graph serves all later values."""
    model, optimizer, step = training(torch.optim.Adam, lr=0.01)

    def change(index):
        optimizer.param_groups[0]["lr"] *= 0.9

    return Program(step, changes(batches(300), change, 200, 5), watch=[model])


@differential(hits=90, graphs=2)
def test_other_groups_follow_the_first_one():
    """A second learning rate changes only after the first one did: it is an input already."""
    model, optimizer, step = training(torch.optim.SGD, {"lr": 0.1}, {"lr": 0.2}, momentum=0.9)

    def change(index):
        for group in optimizer.param_groups[: 1 if index < 50 else 2]:
            group["lr"] *= 0.9

    return Program(step, changes(batches(100), change, 10, 5), watch=[model])


@differential(hits=85, graphs=5)
def test_other_settings_that_change():
    """Each kind of setting is an input from its first change on."""
    model, optimizer, step = training(torch.optim.AdamW, lr=0.01)

    def change(index):
        for group in optimizer.param_groups:
            group[("lr", "weight_decay", "eps")[index // 5 % 3]] *= 0.9
            if index % 20 == 0:
                group["betas"] = (group["betas"][0] * 0.99, group["betas"][1])

    return Program(step, changes(batches(100), change, 10, 5), watch=[model])


class Meter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.value = self.average = self.sum = self.count = 0

    def update(self, value, n=1):
        self.value = value
        self.sum += value * n
        self.count += n
        self.average = self.sum / self.count


@differential(hits=70, graphs=2)
def test_meter_that_begins_as_an_int_in_each_epoch():
    model, meter = nn.Linear(3, 2), Meter()

    def step(x):
        loss = model(x).pow(2).mean()
        meter.update(loss.item(), x.shape[0])
        return loss

    calls = []
    for _ in range(8):
        calls += [*batches(10), meter.reset]
    return Program(step, calls, watch=[model, meter])


class Setting:
    penalty = None


@differential(hits=50, graphs=3)
def test_number_or_none():
    model, setting = nn.Linear(3, 2), Setting()

    def step(x):
        loss = model(x).pow(2).mean()
        return loss if setting.penalty is None else loss + setting.penalty * model.weight.sum()

    def change(index):
        setting.penalty = None if index % 3 == 0 else index * 0.1

    return Program(step, changes(batches(60), change, 0, 1), watch=[model])


@differential(hits=50, graphs=3)
def test_int_that_becomes_a_float():
    model, setting = nn.Linear(3, 2), Setting()
    setting.penalty = 0

    def step(x):
        return model(x).pow(2).mean() + setting.penalty * model.weight.sum()

    def change(index):
        setting.penalty = index * 0.1 if index % 7 else index

    return Program(step, changes(batches(60), change, 10, 1), watch=[model])


@differential(hits=55, graphs=2)
def test_learning_rate_that_the_step_sets():
    """As reinforcement learning libraries do: from the share of the training that is left."""
    model, optimizer, step = training(torch.optim.RMSprop, lr=0.01)
    setting = Setting()
    setting.left = 1.0

    def whole(x):
        for group in optimizer.param_groups:
            group["lr"] = 0.01 * setting.left
        return step(x)

    def change(index):
        setting.left = 1 - index / 60

    return Program(whole, changes(batches(60), change, 0, 1), watch=[model])
