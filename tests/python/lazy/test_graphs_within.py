"""Graphs of converted functions whose gradients are asked for while operators are noted."""

import contextlib
import random

import pytest
from tree_programs import TreeRNN, tree

import torch
import torchjanus
from torchjanus import _core


def gradients(converted: bool, lazily: bool) -> list[list[torch.Tensor]]:
    torch.manual_seed(0)
    random.seed(0)
    model = TreeRNN().double()
    if converted:
        torchjanus.function(model, profile_runs=2)
    found = []
    for _ in range(8):
        node = tree(random.randrange(2, 7))
        model.zero_grad()
        with torchjanus.lazy() if lazily else contextlib.nullcontext():
            _, loss = model(node)
            (loss * 2).backward()
        found.append([each.grad.clone() for each in model.parameters()])
    if converted:
        stats = torchjanus.stats(model)
        assert stats["state"] == "graph" and stats["hits"] > 4, stats["reasons"]
    return found


@pytest.mark.parametrize("lazily", [False, True])
def test_gradients_of_a_recursion(lazily):
    """The module calls itself by its own name; its gradients are written element by element."""
    torch.testing.assert_close(gradients(True, lazily), gradients(False, False))


@pytest.mark.parametrize("loss", ["mse_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss"])
def test_losses_print_no_warning(loss, capfd):
    """The forms that write into given memory resize it for what they reduce afterwards."""
    with torchjanus.options.without("kernels"), torchjanus.lazy():
        for _ in range(8):
            x = torch.rand(8, 1, requires_grad=True)
            value = getattr(torch.nn.functional, loss)(x * 2, torch.ones(8, 1))
            value.backward()
            assert value.item() >= 0
    assert "resized" not in capfd.readouterr().err


def scaled(x):
    return x * 2


def test_what_is_pending_waits_where_no_graph_runs():
    """A call that Python runs is noted with what is pending; one that runs as a graph makes it run."""
    in_python = torchjanus.function(scaled, profile_runs=1000)
    as_graph = torchjanus.function(scaled)
    x = torch.randn(4, 4, dtype=torch.float64)
    for _ in range(6):
        as_graph(x)
    before = torchjanus.stats(as_graph)
    assert before["state"] == "graph"
    with torchjanus.lazy():
        for _ in range(3):  # the first calls run at once
            in_python(x * 5)
        torchjanus.synchronize()
        pending = x * 5
        result = in_python(pending)
        assert _core.is_pending(pending)
        assert _core.is_pending(result)
        twice = as_graph(pending)
        assert not _core.is_pending(pending)
        assert not _core.is_pending(result)
        assert result.equal(x * 5 * 2)
        assert twice.equal(x * 5 * 2)
    assert torchjanus.stats(in_python)["profiled"] == 4
    assert torchjanus.stats(as_graph)["hits"] == before["hits"] + 1
