"""torch.amp.GradScaler: steps that it scales, and steps that it skips."""

import pytest
from differential import Program, differential

import torch
from torch import nn


def batches(count=8):
    return [(torch.randn(4, 3),) for _ in range(count)]


def scaled_step(unscales, kind, **settings):
    model = nn.Linear(3, 2)
    optimizer = kind(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", **settings)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        scaler.scale(loss).backward()
        if unscales:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    def state():
        return scaler.state_dict()

    return step, [model, optimizer, scaler._growth_tracker], state


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam])
@pytest.mark.parametrize("unscales", [True, False])
@differential(hits=10, graphs=4)
def test_gradient_scaler(unscales, kind):
    step, watch, _ = scaled_step(unscales, kind, init_scale=8.0, growth_interval=5)
    return Program(step, batches(20), watch=watch)


@pytest.mark.parametrize("unscales", [True, False])
@differential(hits=10, graphs=5)
def test_gradient_scaler_that_skips_steps(unscales):
    step, watch, _ = scaled_step(unscales, torch.optim.SGD, init_scale=8.0, growth_interval=3)
    calls = [(torch.randn(4, 3) * (float("inf") if i in (9, 17) else 1),) for i in range(30)]
    return Program(step, calls, watch=watch)
