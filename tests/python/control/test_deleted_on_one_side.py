"""A variable that one side of a branch deletes, in statements that begin where it was set before."""

import pytest

import torch
import torchjanus


def in_python(tensor):
    return float(tensor.numpy().sum())


def one_sets_one_deletes(x, i, maybe):
    y = x.tanh() + 1
    if i == 0:
        maybe = y * 2
    elif i == 2:
        del maybe
    z = in_python(y)
    t = (y + z) * 3
    try:
        return t, maybe.sum().item()
    except UnboundLocalError:
        return t, None


def one_deletes(x, i, maybe):
    y = x.tanh() + 1
    if i == 1:
        del maybe
    z = in_python(y)
    t = (y + z) * 3
    try:
        return t, maybe * 1
    except UnboundLocalError:
        return t, None


def all_delete(x, i, maybe):
    y = x.tanh() + 1
    if i % 2:
        del maybe
    else:
        y = y * 2
        del maybe
    z = in_python(y)
    t = (y + z) * 3
    try:
        return t, maybe
    except UnboundLocalError:
        return t, None


@pytest.mark.parametrize("program", [one_sets_one_deletes, one_deletes, all_delete])
def test_deleted_in_cut_function(program):
    f = torchjanus.function(program)
    for i in range(40):
        x = torch.full((3,), float(i), dtype=torch.float64)
        expected = program(x, i % 4, torch.zeros(3, dtype=torch.float64))
        actual = f(x, i % 4, torch.zeros(3, dtype=torch.float64))
        torch.testing.assert_close(actual, expected, rtol=1e-9, atol=1e-9)
    assert f.stats()["hits"] + sum(part["hits"] for part in f.stats().get("parts", [])) >= 10
