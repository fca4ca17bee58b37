"""Graphs of converted functions whose gradients are asked for while operators are noted."""

import contextlib
import random

import pytest
from tree_programs import TreeRNN, tree

import torch
import torchjanus


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
