"""Operators that the graph does not know, and their gradients by what autograd recorded."""

import pytest
from differential import Program, differential
from torch.nn import functional as F

import torch
import torchjanus
from torch import nn


def trained(model, loss_of, shape, calls=8):
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(x):
        optimizer.zero_grad()
        loss = loss_of(model, x)
        loss.backward()
        optimizer.step()
        return loss

    return Program(step, [(torch.randn(shape),) for _ in range(calls)], watch=[model])


def attention(model, x):
    query, key, value = model(x).chunk(3, -1)
    return F.scaled_dot_product_attention(query, key, value, dropout_p=0.3).pow(2).mean()


DRAWING = {
    "layers with dropout between": lambda: (
        nn.LSTM(4, 5, 2, dropout=0.3), lambda m, x: m(x)[0].pow(2).mean(), (3, 2, 4)
    ),
    "attention of a module": lambda: (
        nn.MultiheadAttention(8, 2, dropout=0.2, batch_first=True),
        lambda m, x: m(x, x, x)[0].pow(2).mean(), (3, 2, 8),
    ),
    "attention": lambda: (nn.Linear(8, 24), attention, (3, 2, 8)),
    "activations": lambda: (
        nn.Sequential(nn.Linear(8, 8), nn.RReLU(), nn.AlphaDropout(0.2), nn.FeatureAlphaDropout(0.2)),
        lambda m, x: m(x).pow(2).mean(), (3, 8),
    ),
}  # fmt: skip


@pytest.mark.parametrize("program", DRAWING)
@differential()
def test_gradients_of_what_draws(program):
    return trained(*DRAWING[program]())


@differential()
def test_in_the_rounds_of_a_loop():
    layer = nn.GRU(4, 4)
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)

    def step(x):
        optimizer.zero_grad()
        hidden, t = x[0], 0
        while t < x.shape[0]:
            hidden = layer(x[t : t + 1] + hidden)[0][0]
            t += 1
        loss = hidden.pow(2).sum()
        loss.backward()
        optimizer.step()
        return loss

    return Program(step, [(torch.randn(3 + i % 5, 2, 4),) for i in range(30)], watch=[layer])


@differential()
def test_on_both_sides_of_a_branch():
    layer = nn.GRU(4, 4)
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)

    def step(x):
        optimizer.zero_grad()
        if x.sum() > 0:
            hidden = layer(x)[0]
        else:
            hidden = layer(x * 2)[0] * 0.5
        loss = hidden.pow(2).sum()
        loss.backward()
        optimizer.step()
        return loss

    return Program(step, [(torch.randn(3, 2, 4),) for _ in range(30)], watch=[layer])


@differential()
def test_second_gradients():
    layer = nn.RNN(4, 4)
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)

    def step(x):
        x = x.clone().requires_grad_()
        loss = layer(x)[0].pow(2).sum()
        (gradient,) = torch.autograd.grad(loss, x, create_graph=True)
        penalty = gradient.pow(2).sum() + loss
        optimizer.zero_grad()
        penalty.backward()
        optimizer.step()
        return penalty

    return Program(step, [(torch.randn(3, 2, 4),) for _ in range(8)], watch=[layer])


@differential()
def test_two_gradients_of_one_call():
    weight = torch.randn(3, 3, requires_grad=True)

    def step(x):
        weight.grad = None
        y = torch.logcumsumexp(weight * x, 0)
        y.sum().backward(retain_graph=True)
        (y * y).sum().backward()
        return weight.grad

    return Program(step, [(torch.randn(3, 3),) for _ in range(8)], watch=[weight])


@pytest.mark.parametrize("others", [0, 3])
@differential()
def test_backward_outside(others):
    """What autograd keeps of a call must stay as it was when the graph runs again."""
    layer = nn.GRU(4, 4)
    kept = []

    def forward(x):
        return layer(torch.tanh(x) * 2)[0].pow(2).sum()

    def convert(_):
        converted = torchjanus.function(forward)
        return outside(converted), converted

    def outside(forward):
        def step(x):
            kept.append(forward(x))
            if len(kept) <= others:
                return None
            for parameter in layer.parameters():
                parameter.grad = None
            kept.pop(0).backward()
            return [parameter.grad for parameter in layer.parameters()]

        return step

    calls = [(torch.randn(3, 2, 4),) for _ in range(9)]
    return Program(outside(forward), calls, watch=[layer], convert=convert)


@differential()
def test_views_have_gradients_and_share_memory():
    def step(x):
        diagonal = torch.linalg.diagonal(x)
        halves = torch.hsplit(x, 2)
        return diagonal, halves, diagonal.sum() + halves[0].pow(2).sum()

    return Program(step, [(torch.randn(4, 4, requires_grad=True),) for _ in range(6)])


@differential(reasons=["operation_failed"])
def test_operators_that_give_other_sizes_than_torch_says():
    def step(a, b):
        return torch.linalg.lstsq(a, b, driver="gelsd").residuals.sum()

    calls = [(torch.randn(5, 3), torch.randn(5, 3)) for _ in range(6)]
    return Program(step, calls)
