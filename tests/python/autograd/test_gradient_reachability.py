"""Differential programs: parameters that have a gradient in some runs only."""

import random

import pytest
import torch.nn.functional as F
from differential import Program, differential

import torch
from torch import nn

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "sgd momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-2),
    "sgd nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adam amsgrad": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True, weight_decay=1e-2),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.05, lr_decay=0.1),
    "adadelta": lambda p: torch.optim.Adadelta(p, lr=0.5),
    "adamax": lambda p: torch.optim.Adamax(p, lr=0.01),
    "nadam": lambda p: torch.optim.NAdam(p, lr=0.01),
}


class Network(nn.Module):
    def __init__(self, depth, survives):
        super().__init__()
        self.enter = nn.Linear(4, 5)
        self.layers = nn.ModuleList(nn.Linear(5, 5) for _ in range(depth))
        self.leave = nn.Linear(5, 2)
        self.survives = survives

    def forward(self, x):
        x = F.relu(self.enter(x))
        for layer in self.layers:
            if self.training and random.random() < self.survives:
                x = x + torch.tanh(layer(x))
        return self.leave(x)


def batches(count):
    return [(torch.randn(3, 4), torch.randint(0, 2, (3,))) for _ in range(count)]


def train(model, optimizer, between=lambda: None):
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        between()
        optimizer.step()
        return loss

    return step


@pytest.mark.parametrize("name", OPTIMIZERS)
@differential(hits=12, graphs=3)
def test_stochastic_depth(name):
    model = Network(3, 0.6)
    optimizer = OPTIMIZERS[name](model.parameters())
    return Program(train(model, optimizer), batches(20), watch=[model, optimizer])


@differential(hits=12, graphs=3)
def test_all_dropped():
    model = Network(2, 0.2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    return Program(train(model, optimizer), batches(30), watch=[model, optimizer])


@differential(hits=10, graphs=8)
def test_state_made_late():
    """Layers that no profiled run used have no state in the optimizer yet."""
    model = Network(4, 0.25)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return Program(train(model, optimizer), batches(50), watch=[model, optimizer])


@pytest.mark.parametrize("norm", [2.0, float("inf"), 1.0])
@differential(hits=12, graphs=3)
def test_clipped(norm):
    model = Network(3, 0.6)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def clip():
        nn.utils.clip_grad_norm_(model.parameters(), 0.1, norm_type=norm)

    return Program(train(model, optimizer, clip), batches(20), watch=[model, optimizer])


@differential(hits=12, graphs=3)
def test_clipped_by_value():
    model = Network(3, 0.6)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def clip():
        nn.utils.clip_grad_value_(model.parameters(), 0.01)

    return Program(train(model, optimizer, clip), batches(20), watch=[model, optimizer])


@differential(hits=8, graphs=4)
def test_gradients_that_stay():
    """Where all have a gradient, later ones are added to it."""
    model = Network(3, 0.6)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step(x, y):
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    return Program(step, batches(16), watch=[model, optimizer])


@differential(hits=8, graphs=4)
def test_zeroed_in_place():
    model = Network(3, 0.6)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def step(x, y):
        optimizer.zero_grad(set_to_none=False)
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    return Program(step, batches(16), watch=[model, optimizer])


@differential(hits=10, graphs=3)
def test_update_by_hand():
    model = Network(3, 0.6)

    def step(x, y):
        model.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.grad is not None:
                    parameter -= 0.1 * parameter.grad
        return loss

    return Program(step, batches(20), watch=[model])


@differential(hits=10, graphs=3)
def test_cleared_by_hand():
    model = Network(2, 0.5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x, y):
        for parameter in model.parameters():
            parameter.grad = None
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    return Program(step, batches(20), watch=[model, optimizer])


@differential(hits=10, graphs=3)
def test_experts_chosen_by_the_data():
    """Each side of a branch has parameters of its own."""
    first, second = nn.Linear(4, 2), nn.Linear(4, 2)
    parameters = [*first.parameters(), *second.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=0.01)

    def step(x, y):
        optimizer.zero_grad()
        logits = first(x) if x.sum() > 0 else second(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return Program(step, batches(24), watch=[first, second, optimizer])


@differential(hits=10, graphs=4)
def test_nested_branches():
    layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(4))
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.1, momentum=0.9)

    def step(x, y):
        optimizer.zero_grad()
        h = layers[0](x)
        if h.sum() > 0:
            h = layers[1](h)
            if h.mean() > 0.1:
                h = h + layers[2](h).relu()
        else:
            h = h * layers[3](h)
        loss = F.cross_entropy(h[:, :2], y)
        loss.backward()
        optimizer.step()
        return loss

    return Program(step, batches(40), watch=[layers, optimizer])


@differential(hits=10, graphs=4)
def test_two_losses():
    model = Network(2, 0.6)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(x, y):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        F.cross_entropy(model(x * 2), y).backward()
        optimizer.step()

    return Program(step, batches(24), watch=[model, optimizer])


@differential(hits=10, graphs=3)
def test_gradients_counted_and_given():
    model = Network(2, 0.5)
    used = {"count": 0}

    def step(x, y):
        for parameter in model.parameters():
            parameter.grad = None
        F.cross_entropy(model(x), y).backward()
        if model.layers[0].weight.grad is not None:
            used["count"] += 1
        return model.layers[0].weight.grad

    return Program(step, batches(20), watch=[model, used])


@differential(hits=10, graphs=5)
def test_parameters_that_change():
    """The mode, the rate and a parameter's requires_grad change between calls."""
    model = Network(2, 0.5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def freeze():
        model.layers[1].weight.requires_grad_(False)

    def slow():
        optimizer.param_groups[0]["lr"] = 0.01

    calls = batches(10) + [slow] + batches(8) + [freeze] + batches(10)
    calls += [lambda: model.eval()] + batches(6) + [lambda: model.train()] + batches(6)
    return Program(train(model, optimizer), calls, watch=[model, optimizer])


@differential(hits=10, graphs=4)
def test_two_groups():
    model = Network(3, 0.6)
    optimizer = torch.optim.AdamW(
        [
            {"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": 0.1},
            {"params": [p for p in model.parameters() if p.dim() == 1], "weight_decay": 0.0},
        ],
        lr=0.01,
    )
    return Program(train(model, optimizer), batches(24), watch=[model, optimizer])


@differential(hits=10, graphs=4)
def test_two_steps_in_one_call():
    model = Network(2, 0.6)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    one = train(model, optimizer)

    def step(x, y):
        one(x, y)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.clamp_(-0.5, 0.5)
        return one(x, y)

    return Program(step, batches(24), watch=[model, optimizer])


def parameters(*shape, count=6, layout=lambda x: x):
    return [(layout(torch.randn(*shape)).requires_grad_(),) for _ in range(count)]


@differential(hits=6)
def test_no_gradient_in_some_runs():
    """That of a norm of order 0 is None, not zeros."""

    def step(p, order):
        p.grad = None
        torch.linalg.vector_norm(p, order).atan().backward()
        return p.grad

    orders = [2.0, 3.0, 1.0, 2.0, 4.0, 1.5, 2.5, 0.0, 2.0, 0.0, 3.0]
    ps = parameters(3, 4, count=len(orders))
    return Program(step, [(p, order) for (p,), order in zip(ps, orders, strict=True)])
