"""Reasons of branches with sides of different kinds, and of tests of loops that do more than test."""
# ruff: noqa: F401  (the statements use them)

import warnings
from collections import OrderedDict

import pytest
from refusals import Refused, check_followed, check_refusal

import torch


def varying():
    """Tensors whose sum goes both ways about 0, and ends below it, where gradients are enabled."""
    return [torch.ones(2) * factor for factor in (1, -1, 2, -2, 1, -1, 3, -3)]


def space():
    return dict(globals())


SIDES = [
    Refused(
        "if x.sum() > 0: v = [x]\nelse: v = (x,)\nreturn v",
        "the variable v: containers of different classes",
    ),
    Refused(
        "if x.sum() > 0: v = {1: x}\nelse: v = OrderedDict({1: x})\nreturn v",
        "the variable v: dicts of different classes",
    ),
    Refused(
        "d = {1: x}\nif x.sum() > 0: v = d\nelse: v = {1: x * 2}\nreturn v[1]",
        "the variable v: two dicts",
    ),
    Refused(
        "if x.sum() > 0: torch.set_grad_enabled(False)\n"
        "else: torch.set_grad_enabled(True)\n"
        "return w * 2",
        "the grad mode or an autocast differs",
    ),
    Refused("if x.sum() > 0: w.grad = torch.ones(2)", "one side sets a .grad"),
    Refused(
        "w.grad = None\n(w * x).sum().backward()\ng = w.grad\n"
        "if x.sum() > 0: w.grad = x * 2\n"
        "return g",
        "a .grad is another tensor on one side",
    ),
    Refused(
        "if x.sum() > 0: warnings.warn('a', stacklevel=1)",
        "one side has a side effect that can't be conditional",
    ),
]

LOOPS = [
    Refused(
        "i = iter([x, x * 2, x * 3])\nn = x.sum()\nwhile n + next(i).sum() < 5: n = n + 1\nreturn n",
        "the test of a loop takes from an iterator",
    ),
    Refused(
        "l = []\nn = x.sum()\nwhile l.append(1) or n < 5: n = n + 1\nreturn n",
        "the test of the loop has a side effect",
    ),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", SIDES, ids=lambda case: case.sentence)
def test_branch_is_followed(case):
    check_followed(case, space, varying)


@pytest.mark.parametrize("case", LOOPS, ids=lambda case: case.sentence)
def test_loop_stays_in_python(case):
    check_refusal(case, "dynamic_control", space, varying)


def test_mode_that_outlives_the_call():
    case = Refused(
        "if x.sum() > 0: torch.set_grad_enabled(False)\n"
        "else: torch.set_grad_enabled(True)\n"
        "return w * 2",
        "the grad mode",
        at_entry=True,
    )
    check_refusal(case, "heap_write", space, varying)
