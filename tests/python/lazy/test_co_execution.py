"""Converted functions that stay imperative: Python runs them, their operators run as graphs."""

import numpy
import pytest

import torch
import torchjanus
from torch import nn


def without_source(text, **names):
    """The function `step` of a text that nobody can read again."""
    exec(text, names)
    return names["step"]


def state_of(function):
    return torchjanus.stats(function)["co_execution"]["state"]


TRAINING = """
def step(x, y):
    optimizer.zero_grad()
    loss = ((model(x).tanh() - y) ** 2).mean()
    loss.backward()
    optimizer.step()
    return loss.detach()
"""


def make_step():
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 4)).double()
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    return without_source(TRAINING, model=model, optimizer=optimizer), model


def test_a_step_without_source():
    (eager, eager_model), (step, model) = make_step(), make_step()
    converted = torchjanus.function(step)
    for _ in range(40):
        x, y = torch.randn(8, 6).double(), torch.randn(8, 4).double()
        torch.testing.assert_close(converted(x, y), eager(x, y), rtol=1e-10, atol=1e-12)
    assert state_of(converted) == "co-executed"
    assert "co-executed" in torchjanus.explain(converted)
    for one, other in zip(model.parameters(), eager_model.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


def test_numpy_in_the_middle():
    weights = [torch.randn(5, 5, requires_grad=True) for _ in range(2)]

    def step(x):
        hidden = (x @ weights[0]).tanh()
        largest = numpy.abs(hidden.detach().numpy()).max(axis=1)
        scaled = hidden / torch.from_numpy(numpy.array(largest[:, None] + 1))
        return ((scaled @ weights[1]) ** 2).sum()

    converted = torchjanus.function(step)
    for _ in range(40):
        x = torch.randn(7, 5)
        gradients = torch.autograd.grad(converted(x), weights)
        expected = torch.autograd.grad(step(x), weights)
        for one, other in zip(gradients, expected, strict=True):
            torch.testing.assert_close(one, other)


def test_exceptions_are_the_programs_own():
    step = without_source(
        """
def step(x):
    kept.append(1)
    y = x * 2 + 1
    for _ in range(8):
        y = y * 0.5 + x
    if len(kept) % 5 == 0:
        raise KeyError(len(kept))
    return y + missing if len(kept) % 7 == 0 else y
""",
        kept=[],
    )
    converted = torchjanus.function(step)
    raised = []
    for _ in range(35):
        try:
            converted(torch.ones(3))
        except (KeyError, NameError) as error:
            raised.append(str(error))
    assert raised.count("name 'missing' is not defined") == 4
    assert [each for each in raised if each.isdigit()] == [str(n) for n in range(5, 36, 5)]


@pytest.mark.parametrize("switch", ["lazy", "interception"])
def test_switched_off(switch):
    step, _ = make_step()
    converted = torchjanus.function(step)
    with torchjanus.options.without(switch):
        for _ in range(40):
            converted(torch.randn(8, 6).double(), torch.randn(8, 4).double())
    assert state_of(converted) == "undecided"


def test_operators_that_differ_from_call_to_call():
    step = without_source("""
def step(x):
    for _ in range(9):
        x = x * 2 - x
    return x
""")
    converted = torchjanus.function(step)
    for size in range(2, 60):
        assert torch.equal(converted(torch.ones(size)), torch.ones(size))
    told = torchjanus.stats(converted)["co_execution"]
    assert told["state"] == "eager"
    assert told["why_not"] == "its operators differ from call to call"


def test_what_the_function_kept_can_be_read_after_it():
    step = without_source(
        """
def step(x):
    for i in range(9):
        x = x.sin() + i
    kept.append(x)
""",
        kept=(kept := []),
    )
    converted = torchjanus.function(step)
    for _ in range(20):
        converted(torch.ones(4))
    assert all(torch.equal(each, kept[0]) for each in kept)
