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


def scaled(x, how):
    return x * 2 if how == "twice" else x * 3


def test_what_is_pending_waits_where_no_graph_runs():
    """A call that fits no graph is noted with what is pending; one that runs as a graph makes it run."""
    x = torch.randn(4, 4, dtype=torch.float64)
    in_python, as_graph = torchjanus.function(scaled), torchjanus.function(scaled)
    for _ in range(6):
        in_python(x, "twice")
        as_graph(x, "twice")
    for _ in range(60):  # whose graphs are made ever less often
        in_python(x, object())
    before = [torchjanus.stats(each) for each in (in_python, as_graph)]
    _core.testing.let_times_decide(False)  # what is measured begins when nothing is pending
    try:
        with torchjanus.lazy():
            for _ in range(3):  # the first calls run at once
                in_python(x * 5, object())
            torchjanus.synchronize()
            pending = x * 5
            result = in_python(pending, object())
            assert _core.is_pending(pending)
            assert _core.is_pending(result)
            twice = as_graph(pending, "twice")
            assert not _core.is_pending(pending)
            assert not _core.is_pending(result)
            assert result.equal(x * 5 * 3)
            assert twice.equal(x * 5 * 2)
    finally:
        _core.testing.let_times_decide(True)
    after = [torchjanus.stats(each) for each in (in_python, as_graph)]
    assert after[0]["misses"] == before[0]["misses"] + 4
    assert after[1]["hits"] == before[1]["hits"] + 1
