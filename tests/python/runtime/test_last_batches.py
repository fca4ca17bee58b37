"""The last batch or slice of an epoch is shorter: it costs one more graph, and no bailout for ever."""

import pytest
from differential import Program, differential

import torch
import torchjanus
from torch import nn


@differential(graphs=3, aborts=1, hits=45)
def test_last_slice_that_is_shorter():
    def evaluate(start):
        part = images[start : start + 10]
        return (part * 2).sum().item(), len(part), part.argmax(1)

    images = torch.randn(53, 4)
    return Program(evaluate, [(start,) for _ in range(9) for start in range(0, 53, 10)])


def test_last_slice_that_is_shorter_does_not_abort_for_ever():
    def evaluate(images, start):
        return (images[start : start + 10] * 2).sum().item()

    f = torchjanus.function(evaluate)
    sets = [torch.randn(53, 4), torch.randn(47, 4)]
    for _ in range(4):
        for images in sets:
            for start in range(0, len(images), 10):
                f(images, start)
    seen = f.stats()
    for _ in range(4):
        for images in sets:
            for start in range(0, len(images), 10):
                assert f(images, start) == pytest.approx(evaluate(images, start), rel=1e-4)
    assert f.stats()["generated"] == seen["generated"]
    assert f.stats()["hits"] - seen["hits"] == f.stats()["calls"] - seen["calls"], f.stats()


@differential(graphs=3, hits=26)
def test_last_batch_that_is_smaller():
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss

    sizes = [8, 8, 8, 8, 8, 3] * 5
    return Program(step, [(torch.randn(size, 4),) for size in sizes], watch=[model, optimizer])
