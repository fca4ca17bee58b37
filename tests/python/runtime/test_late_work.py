"""Code that works with tensors only after many calls, as a loop that fills a buffer before it trains."""

import numpy as np
import pytest

import torch
import torchjanus
from torch import nn


def runs(calls, begins):
    """The step's results against eager's, and its counters."""
    torch.manual_seed(0)
    layers = nn.Linear(3, 2), nn.Linear(3, 2)
    layers[1].load_state_dict(layers[0].state_dict())
    buffers: tuple[list, list] = ([], [])

    def step_of(layer, buffer):
        def step(number):
            buffer.append(number)
            if len(buffer) < begins:
                return None
            x = torch.full((4, 3), float(number))
            loss = layer(x).square().mean()
            layer.zero_grad()
            loss.backward()
            with torch.no_grad():
                for parameter in layer.parameters():
                    parameter -= 1e-6 * parameter.grad
            return loss.detach()

        return step

    eager = step_of(layers[0], buffers[0])
    converted = torchjanus.function(step_of(layers[1], buffers[1]))
    with torchjanus.options.without("background", "lazy"):
        for number in range(calls):
            expected, actual = eager(number), converted(number)
            if expected is None:
                assert actual is None
            else:
                torch.testing.assert_close(expected, actual, rtol=1e-5, atol=0)
    assert buffers[0] == buffers[1]
    return torchjanus.stats(converted)


def test_work_that_comes_late():
    stats = runs(500, 160)
    assert stats["state"] == "graph"
    assert stats["hits"] > 50


def test_looks_become_rare():
    stats = runs(3000, 5000)
    assert stats["state"] == "imperative"
    assert stats["profiled"] < 20
    assert {reason["code"] for reason in stats["reasons"]} == {"no_tensor_work"}


def is_being_measured(simulated):
    """A function in the middle of its measurement, for which all others wait."""
    converted = torchjanus.function(lambda x: torch.tanh(x @ x.t()).sum())
    simulated(1.0, 1.0)
    with torchjanus.options.without("background", "lazy"):
        for _ in range(30):
            converted(torch.randn(4, 4))
    assert not torchjanus.stats(converted)["speed"]["decided"]
    return converted


@pytest.mark.parametrize("waits", [False, True])
def test_a_cut_function_is_measured_anew(simulated, waits):
    """Before it has graphs, its cuts cost something and bring nothing."""
    other = is_being_measured(simulated) if waits else None
    simulated(1.5, 1)
    kept = []

    def step(x, number):
        kept.append(np.sort(np.array([number, 1])))  # not converted
        if number < 300:
            return None
        y = torch.tanh(x @ x.t()) * 2
        return (y - y.mean()).square().sum()

    converted = torchjanus.function(step)
    with torchjanus.options.without("background", "lazy"):
        for number in range(900):
            if number == 300:
                simulated(0.5, 1)
            x = torch.randn(4, 4)
            expected, actual = step(x, number), converted(x, number)
            assert (expected is None) == (actual is None)
            if expected is not None:
                torch.testing.assert_close(expected, actual)
    (part,) = [part for part in torchjanus.stats(converted)["parts"] if part["hits"]]
    assert part["hits"] > 100
    del other


def test_graphs_without_tensor_work_do_not_decide(simulated):
    """Graphs of code that has met no tensor so far may lose their trial before the training begins."""
    simulated(1.5, 1)

    def step_of(total):
        def step(x, number):
            np.sort(np.array([number, 1]))  # not converted
            if number % 20 == 19:
                total.mul_(0.5)
            if number < 300:
                return None
            return (torch.tanh(x @ x.t()) * total).square().sum()

        return step

    totals = torch.ones((), dtype=torch.float64), torch.ones((), dtype=torch.float64)
    eager, converted = step_of(totals[0]), torchjanus.function(step_of(totals[1]))
    hits = []
    with torchjanus.options.without("background", "lazy"):
        for number in range(900):
            if number == 300:
                simulated(0.5, 1)
            x = torch.randn(4, 4, dtype=torch.float64)
            torch.testing.assert_close(eager(x, number), converted(x, number))
            hits.append(sum(part["hits"] for part in torchjanus.stats(converted).get("parts", [])))
    assert totals[0] == totals[1]
    assert 0 < hits[299] < 150, "the trial was not lost before the training began"
    assert hits[-1] > hits[299] + 100
