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
