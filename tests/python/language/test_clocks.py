"""Clocks: what is between two readings is done there. PYTEST_DONT_REWRITE"""

import time
from types import SimpleNamespace

from differential import Program, differential

import torch
import torchjanus
from torch import nn


def numbered_batches(count=12):
    return [(torch.randn(5, 4), i) for i in range(count)]


@differential(hits=8, graphs=1)
def test_clocks():
    meter = SimpleNamespace(total=0.0, count=0, last=None, started=time.time())

    def step(x, i):
        start = time.perf_counter()
        y = x * 2
        elapsed = time.perf_counter() - start
        meter.count += 1
        meter.last = 0.0 * (time.monotonic() + time.process_time())
        late = time.time() < meter.started or time.time_ns() <= 0
        return y, elapsed >= 0, late

    return Program(step, numbered_batches(), watch=[meter.count])


def test_what_is_between_two_clocks():
    """Programs measure by them: the work between two readings is done there, in any order of data."""
    model, x = nn.Linear(4, 4), torch.ones(3, 4)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    @torchjanus.function
    def step():
        start = time.perf_counter()
        loss = model(x).pow(2).sum()
        forward = time.perf_counter()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        end = time.perf_counter()
        return forward - start, end - forward

    for _ in range(6):
        step()
    assert step.stats()["hits"] >= 2
    before, forward, update, after = step.graph().split("python_draw")
    assert "linear" not in before and "linear" in forward
    assert " mm " in update and " add " in update
    assert " mm " not in after and " add " not in after
