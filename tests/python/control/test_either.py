"""Variables that are one thing on one side of a branch and another on the other: numbers of two
kinds, texts, functions, modules, containers against None, tensors of two shapes."""

import pytest
from differential import Program, differential

import torch
from torch import nn


def vectors(count=30):
    return [(torch.randn(4),) for _ in range(count)]


def rows(count=30):
    return [(torch.randn(2 + (i * 7 + i * i) % 9, 4),) for i in range(count)]


def chosen(x):
    scale = 1 if x.sum() > 0 else 0.5
    return x * scale, scale, type(scale) is int, isinstance(scale, float), scale // 2, -scale


def summed(x):
    scale = 1 if x.sum() > 0 else 0.5
    return x * sum([scale, 2]), sum((scale, 0.25), 1)


def printed(x):
    scale = 1 if x.sum() > 0 else 0.5
    print(scale, f"{scale}", str(scale))
    return x * scale


def one_after_the_other(x):
    weight = 1
    if x[0] > 0:
        weight = weight * 0.5
    if x[1] > 0:
        weight = weight + 2
    if x[2] > 0:
        weight = True
    return x * weight


def clipped(x):
    norm = x.norm().item()
    factor = 1
    if norm > 2:
        factor = 2 / norm
    return x * factor


def flag_or_count(x):
    found = False
    if x[0] > 0:
        found = 1
    return x * found, found


def ints_and_floats(x):
    steps = 7 if x.sum() > 0 else 7.0
    return x * (steps // 2), steps % 3, steps**2, steps == 7, steps < 8, bool(steps), [steps] * 2


def divided(x):
    by = 0 if x.sum() > 100 else 0.5
    return x / by if by else x


def text(x):
    mode = "up" if x.sum() > 0 else "down"
    y = x * 2 if mode == "up" else x - 1
    return y, mode


def activation(x):
    act = torch.relu if x.sum() > 0 else torch.tanh
    return act(x)


def list_or_none(x):
    extra = None
    if x.sum() > 0:
        extra = [x * 2, x * 3]
    y = x
    if extra is not None:
        extra.append(x)
        y = y + extra[0] * extra[1] - extra[2] / len(extra)
    return y


def shapes(x):
    y = x[:2] if x.sum() > 0 else x
    z = y * 2
    return x * z.sum()


def lengths(x):
    parts = (x,) if x.sum() > 0 else (x, x * 2)
    return torch.stack(parts).sum(0)


def dicts(x):
    info = {"mean": x.mean()} if x.sum() > 0 else {"max": x.max(), "min": x.min()}
    return x * sum(info.values())


BRANCHES = [
    chosen, summed, printed, one_after_the_other, clipped, flag_or_count, ints_and_floats, divided, text,
    activation, list_or_none, shapes, lengths, dicts,
]  # fmt: skip


@pytest.mark.parametrize("step", BRANCHES)
@differential(hits=20, graphs=2)
def test_branches(step):
    return Program(step, vectors())


def counted(x):
    hits = 0
    for row in x:
        if row.sum() > 0:
            hits += row.mean().item()
    return x * hits, hits


def tried(x):
    total = 0
    for row in x:
        try:
            value = row.sum().item()
            if value >= 0:
                total += 1 / value
        except ZeroDivisionError:
            total += 1.0
        finally:
            total += 1
    return x * total, total


def left_early(x):
    total = 0
    for row in x:
        for value in row:
            if value < -1:
                break
            if value < 0:
                continue
            total += value.item()
        else:
            total += 100
        if total > 150:
            break
    return x * total, total


def kept(x):
    best = -1
    for row in x:
        value = row.sum().item()
        if value > best:
            best = value
    return x * best, best


def made_an_int_again(x):
    value = 0.5
    for i, row in enumerate(x):
        if row.sum() > 0:
            value = i
        print(value, value + 1, value / 2)
    return x * value, value


@pytest.mark.parametrize("step", [counted, tried, left_early, kept, made_an_int_again])
@differential(hits=20, graphs=2)
def test_loops(step):
    return Program(step, rows())


class State:
    def __init__(self):
        self.total, self.best, self.mode, self.count = 0, 0, "warm", 0


@differential(hits=15)
def test_attributes():
    state = State()

    def step(x):
        for row in x:
            if row.sum() > 0:
                state.total += row.sum().item()
        if x.sum() > 1:
            state.best = x.sum().item()
        return x * state.total

    return Program(step, rows(), watch=[state])


@differential(hits=15)
def test_keys_that_vary():
    stats = {"up": 0, "down": 0}

    def step(x):
        for row in x:
            name = "up" if row.sum() > 0 else "down"
            stats[name] += 1
        last = "up" if x.sum() > 0 else "down"
        stats[last] += 2
        return x * stats["up"]

    return Program(step, rows(), watch=[stats])


@differential(hits=15, graphs=2)
def test_one_of_two_modules():
    first, second = nn.Linear(4, 4), nn.Linear(4, 4)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], 0.1)

    def step(x):
        layer = first if x.sum() > 0 else second
        loss = layer(x).pow(2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return Program(step, vectors(), watch=[first, second])


@differential(hits=10)
def test_overflow_is_as_in_python():
    def step(x):
        large = 2**62 if x.sum() > 0 else 0.5
        return x, large * 4

    return Program(step, vectors())


@differential(hits=5)
def test_division_by_what_may_be_zero():
    def step(x):
        by = 0 if x.sum() > 0 else 0.5
        return x * 2, 1 / by

    return Program(step, vectors())
