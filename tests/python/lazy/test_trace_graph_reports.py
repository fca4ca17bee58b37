"""What reports tell of the TraceGraph of a co-executed function."""

import random

import pytest

import torch
import torchjanus
from torch import nn
from torchjanus import _core

SOURCE = """
def odd(x):
    for step in random.choices(steps, k=6):
        x = step(x)
    return model(x).square().mean().item()
"""
STEPS = [torch.sin, torch.cos, torch.exp, lambda x: x * 0.5 - 1, lambda x: x.relu() + x.abs()]


@pytest.fixture(autouse=True)
def _merging():
    torchjanus.options.trace_graph = True
    _core.testing.let_times_decide(False)
    yield
    torchjanus.options.trace_graph = False
    _core.testing.let_times_decide(True)


def converted(steps):
    """A function without source, which stays imperative."""
    made = {"random": random, "steps": steps, "model": nn.Linear(4, 4).double()}
    exec(SOURCE, made)
    return torchjanus.function(made["odd"])


def called_until(step, is_enough):
    """Calls the function until its reports tell so; kernels are compiled meanwhile."""
    for _ in range(5000):
        step(torch.ones(2, 4, dtype=torch.float64) / 2)
        told = torchjanus.stats(step)["co_execution"]["trace_graph"]
        if is_enough(told):
            break
    assert is_enough(told), told
    return told


def test_a_function_with_several_paths():
    random.seed(0)
    steps = STEPS[:3]
    step = converted(steps)
    told = called_until(step, lambda told: told["calls"] > 40)
    assert told["traces"] >= 4
    steps += STEPS[3:]  # what comes now is not in the graph
    told = called_until(step, lambda told: told["graphs"] > 1 and told["misses"] > 0)
    assert told["branches"] > 0
    assert told["operators"] > 0
    assert told["misses"] >= sum(told["missing"].values()) > 0
    assert any(what.startswith("aten::") for what in told["missing"])
    text = torchjanus.explain(step)
    assert f"TraceGraph: {told['traces']} traces, {told['operators']} operators" in text
    assert f"{told['calls']} operators ran in {told['graphs']} TraceGraphs" in text


def test_it_is_not_named_where_nothing_is_merged():
    torchjanus.options.trace_graph = False
    step = converted(STEPS)
    for _ in range(60):
        step(torch.ones(2, 4, dtype=torch.float64))
    assert torchjanus.stats(step)["co_execution"]["trace_graph"]["graphs"] == 0
    assert "TraceGraph" not in torchjanus.explain(step)
