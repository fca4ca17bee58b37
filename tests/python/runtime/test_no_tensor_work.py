"""Functions that do nothing with tensors, or nothing at first: they stay imperative for that reason, or wait."""

import gc

from differential import Program, differential

import torch
import torchjanus
from torch import nn


def test_loop_without_tensors_is_disabled_for_that_reason():
    def count(names, n):
        k = 0
        for i in range(n):
            names.append(str(i))
            k = max(k, len(names[-1]))
        return k

    f = torchjanus.function(count)
    for _ in range(130):
        assert f([], 12) == 2
    stats = f.stats()
    assert stats["state"] == "imperative"
    assert {reason["code"] for reason in stats["reasons"]} == {"no_tensor_work"}, stats


def test_part_with_one_operator_says_that_it_has_one():
    def step(x):
        y = x * 2
        gc.collect(0)
        return (y.sin() + y.cos()).exp()

    f = torchjanus.function(step)
    for _ in range(12):
        f(torch.ones(3))
    (whole,) = f.stats()["parts"]
    (reason,) = whole["parts"][0]["reasons"]
    assert reason["code"] == "no_tensor_work"
    assert reason["sentence"].endswith("but for 1, too few for a graph of their own")


@differential(hits=3)
def test_loop_that_warms_up_without_tensors():
    model = nn.Linear(4, 3)

    def step(i, seen):
        if i > 30:
            return model(torch.ones(2, 4) * i)
        return {str(i): i}[str(i)] + len(sorted(seen, key=str))

    return Program(step, [(i, [1, 2]) for i in range(150)], watch=[model])
