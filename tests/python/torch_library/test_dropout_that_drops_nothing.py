"""Dropout that drops nothing, always or in some runs: its result is its operand."""

import pytest
import torch.nn.functional as F
from differential import Program, differential

import torch
from torch import nn


@differential(graphs=1)
def test_dropout_that_drops_nothing():
    model = nn.Sequential(nn.Linear(4, 4), nn.AlphaDropout(0.5), nn.FeatureAlphaDropout(0.5)).eval()
    return Program(lambda x: model(x), [(torch.randn(5, 4),) for _ in range(5)])


DROPOUTS = {
    "not in training": lambda x: F.dropout(x, 0.5, training=False),
    "with probability 0": lambda x: F.dropout(x, 0.0),
    "of channels": lambda x: F.dropout1d(x, 0.0),
    "in place": lambda x: F.dropout(x, 0.5, training=False, inplace=True),
    "of nothing": lambda x: F.dropout(x[:0], 0.5),
}


@pytest.mark.parametrize("dropout", DROPOUTS)
@differential(graphs=1)
def test_dropout_that_gives_its_operand(dropout):
    """What is then written in place is the operand."""

    def step(x):
        y = x * 1
        z = DROPOUTS[dropout](y)
        z += 1
        return z is y, y, z.sum()

    return Program(step, [(torch.randn(3, 4, requires_grad=True),) for _ in range(6)])


@differential(hits=4)
def test_dropout_whose_probability_varies_and_is_sometimes_nothing():
    def step(x, p):
        z = F.dropout(x, p)
        z += 1
        return x, z

    chances = (0.1, 0.2, 0.3, 0.4, 0.0, 0.5, 0.6, 0.0, 0.7)
    return Program(step, [(torch.randn(3, 4), p) for p in chances])


def parameters(*shape, count=6, layout=lambda x: x):
    return [(layout(torch.randn(*shape)).requires_grad_(),) for _ in range(count)]


@differential(hits=5)
def test_dropout_that_drops_nothing_in_some_runs():
    """Its result is then its operand, and its gradient the one that came."""

    def step(p, drop):
        p.grad = None
        y = F.feature_alpha_dropout(p, **drop)
        y.atan().sum().backward()
        return y.detach()

    chances = [0.0, 0.5, 0.0, 0.5, 0.0, 0.3, 0.2, 0.0, 0.5, 0.1]
    drops = [{"p": p, "training": True} for p in chances]
    ps = parameters(3, 4, 2, 2, count=len(drops))
    return Program(step, [(p, drop) for (p,), drop in zip(ps, drops, strict=True)])
