"""Gradients that are held elsewhere too, while a branch decides what `.grad` is. What is added to a gradient in place
shows wherever that very tensor is held, and nowhere else."""

import pytest
from differential import Program, differential

import torch
from torch import nn


class Log:
    def __init__(self):
        self.last = None
        self.all = []


def calls(count=28):
    """Sums on both sides of 0, in changing order, and numbers that count."""
    signs = [1.0 if (index * 7) % 5 in (0, 3) else -1.0 for index in range(count)]
    return [(torch.rand(3) * sign + 0.01, index) for index, sign in enumerate(signs)]


def learn(weight, x):
    (weight * x).sum().backward()


def kept_then_cleared(w, v, log, x, k):
    learn(w, x)
    log.all.append(w.grad)
    if k % 4 == 3:
        w.grad = None


def cleared_by_the_data(w, v, log, x, k):
    learn(w, x)
    log.last = w.grad
    if x.sum() > 0:
        w.grad = None


def anew_then_cleared(w, v, log, x, k):
    w.grad = None
    learn(w, x)
    log.last = w.grad
    if x.sum() > 0:
        w.grad = None


def replaced(w, v, log, x, k):
    w.grad = None
    learn(w, x)
    log.last = w.grad
    if x.sum() > 0:
        w.grad = x * 2


def replaced_by_number(w, v, log, x, k):
    w.grad = None
    learn(w, x)
    log.last = w.grad
    if k % 4 == 3:
        w.grad = w.grad * 0.5


def shared_by_two(w, v, log, x, k):
    w.grad = v.grad = None
    learn(w, x)
    learn(v, x)
    if k % 3 == 0:
        v.grad = w.grad


def shared_by_two_where_the_data_say(w, v, log, x, k):
    w.grad = v.grad = None
    learn(w, x)
    learn(v, x)
    if x.sum() > 0:
        v.grad = w.grad


def swapped(w, v, log, x, k):
    w.grad = v.grad = None
    learn(w, x)
    learn(v, x * 2)
    if x.sum() > 0:
        w.grad, v.grad = v.grad, w.grad


def set_to_itself(w, v, log, x, k):
    log.last = w.grad
    w.grad = log.last
    if x.sum() > 0:
        w.grad = x * 2


def chosen(w, v, log, x, k):
    w.grad = None
    learn(w, x)
    log.last = w.grad if x.sum() > 0 else x * 2


def kept_where_there_is_one(w, v, log, x, k):
    w.grad = None
    if x.sum() > 0:
        learn(w, x)
    log.last = w.grad
    if w.grad is not None:
        log.all = [w.grad]


def view_of_it_is_kept(w, v, log, x, k):
    w.grad = None
    learn(w, x)
    log.last = w.grad[:2]
    if x.sum() > 0:
        w.grad = None


def view_of_one_that_may_be_missing(w, v, log, x, k):
    w.grad = None
    if x.sum() > 0:
        learn(w, x)
        log.last = w.grad[1:]


def cleared_with_others(w, v, log, x, k):
    learn(w, x)
    learn(v, x)
    log.all = [each.grad for each in (w, v)]
    if x.sum() > 0:
        for each in (w, v):
            each.grad = None


def cleared_and_added_to(w, v, log, x, k):
    w.grad = None
    learn(w, x)
    log.last = w.grad
    if x.sum() > 0:
        w.grad = None
    learn(w, x)


def in_a_nested_branch(w, v, log, x, k):
    w.grad = None
    learn(w, x)
    log.last = {"gradient": w.grad}
    if x.sum() > 0:
        if x[0] > 0.5:
            w.grad = None
        else:
            w.grad = w.grad + 1


@differential(hits=8)
@pytest.mark.parametrize(
    "step",
    [
        kept_then_cleared,
        cleared_by_the_data,
        anew_then_cleared,
        replaced,
        replaced_by_number,
        swapped,
        chosen,
        kept_where_there_is_one,
        view_of_it_is_kept,
        view_of_one_that_may_be_missing,
        cleared_with_others,
        cleared_and_added_to,
        in_a_nested_branch,
    ],
)
def test_held_gradient(step):
    return program(step)


@differential(reasons=["autograd"])
@pytest.mark.parametrize("step", [shared_by_two, shared_by_two_where_the_data_say, set_to_itself])
def test_gradient_that_two_may_have(step):
    return program(step)


def program(step):
    w, v = nn.Parameter(torch.randn(3)), nn.Parameter(torch.randn(3))
    log = Log()

    def add():
        for each in (w, v):
            if each.grad is not None:
                each.grad += 1

    return Program(
        lambda x, k: step(w, v, log, x, k),
        [each for call in calls() for each in (call, add)],
        watch=[w, v, log],
    )


@differential(hits=20, graphs=2)
@pytest.mark.parametrize("how", ["cleared", "clipped"])
def test_gradient_that_nobody_holds(how):
    """The branch stays one of the graph."""
    w = nn.Parameter(torch.randn(3))

    def step(x, k):
        w.grad = None
        learn(w, x)
        norm = w.grad.norm()
        if x.sum() > 0:
            w.grad = None if how == "cleared" else w.grad * 0.5
        return norm

    return Program(step, calls(), watch=[w])


@differential(reasons=["autograd"])
def test_decay_added_where_gradients_are_recorded():
    w = torch.randn(4, requires_grad=True)

    def step(x):
        w.grad = None
        (w * x).sum().backward()
        w.grad += 0.1 * w

    return Program(step, [(torch.randn(4),) for _ in range(8)], watch=[w])


@differential(hits=4)
def test_decay_added_where_no_gradients_are_recorded():
    w = torch.randn(4, requires_grad=True)

    def step(x):
        w.grad = None
        (w * x).sum().backward()
        with torch.no_grad():
            w.grad += 0.1 * w

    return Program(step, [(torch.randn(4),) for _ in range(8)], watch=[w])
