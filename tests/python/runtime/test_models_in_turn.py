"""A function whose models and optimizers go, one after the other: each gets a graph of its own."""

import gc

import torch
import torchjanus
from torch import nn


def trained(step, *, models, steps):
    """Trains new models, one after the other; all losses."""
    losses = []
    for seed in range(models):
        torch.manual_seed(seed)
        model = nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
        for _ in range(steps):
            losses.append(step(model, optimizer, torch.randn(4, 3)).detach().clone())
        del model, optimizer
        gc.collect()
    return losses


def step(model, optimizer, x):
    optimizer.zero_grad()
    loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    return loss


def test_each_model_has_a_graph():
    converted = torchjanus.function(step)
    mine = trained(converted, models=5, steps=40)
    for one, other in zip(mine, trained(step, models=5, steps=40), strict=True):
        torch.testing.assert_close(one, other)
    stats = converted.stats()
    assert stats["state"] == "graph" and stats["hits"] > 150, stats["reasons"]


def test_there_is_no_limit_to_models_whose_graphs_paid():
    converted = torchjanus.function(step)
    trained(converted, models=40, steps=36)
    stats = converted.stats()
    assert stats["state"] == "graph" and stats["generated"] > 32, stats["reasons"]


class Holder:
    pass


def test_graphs_that_never_pay_come_to_an_end():
    holder = Holder()

    def step(x):
        return holder.scaled(x).sum()

    def made(scale):
        return lambda x: x * scale

    converted = torchjanus.function(step)
    for i in range(60):
        holder.scaled = made(torch.ones(3) * i)
        assert torch.equal(converted(torch.ones(3)), torch.tensor(3.0 * i))
    stats = converted.stats()
    assert stats["generated"] < 16
    assert "no longer exist" in str(stats["reasons"])
