"""Leaves that are written where autograd does not see it, through a view that it knows."""

import pytest
from backward_outside import backward_outside
from differential import Program, differential

import torch

VIEWS = {
    "slice": lambda w: w[0:2],
    "view": lambda w: w.view(-1),
    "flatten": lambda w: w.flatten(),
    "transposed": lambda w: w.view(2, 2).t(),
    "element": lambda w: w[0],
    "view of a view": lambda w: w[1:].view(3)[:2],
}


def scale(p):
    p.mul_(2)


def scale_data(p):
    p.data.mul_(2)


def scale_detached(p):
    p.detach().mul_(2)


def write_part(p):
    p.unsqueeze(-1)[..., 0] = 5


WRITES = [scale, scale_data, scale_detached, write_part]


def leaves(count=6):
    return [(torch.randn(4).requires_grad_(),) for _ in range(count)]


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("view", VIEWS)
@differential(hits=3, graphs=1)
def test_gradient_through_a_written_view(view, write):
    def step(w):
        p = VIEWS[view](w)
        with torch.no_grad():
            write(p)
        (p * p).sum().backward()
        return w.grad + 0, w.detach().clone()

    return Program(step, leaves())


@differential(hits=3, graphs=1)
def test_other_view_and_leaf_after_the_write():
    def step(w):
        p, q = w[0:3], w[1:]
        with torch.no_grad():
            p.mul_(3)
        (p.sum() * (q * q).sum() + w.prod()).backward()
        return w.grad + 0

    return Program(step, leaves())


@differential(hits=3)
def test_written_on_one_side_of_a_branch():
    def step(w, x):
        p = w[0:2]
        with torch.no_grad():
            if x.sum() > 0:
                p.mul_(3)
        (p * p).sum().backward()
        return w.grad + 0

    calls = [(w, x) for (w,), x in zip(leaves(8), torch.randn(8, 3).abs(), strict=True)]
    for _, x in calls[::2]:
        x.neg_()
    return Program(step, calls)


@differential(hits=3)
def test_written_in_a_loop():
    def step(w):
        p = w[0:2]
        total = 0
        for _ in range(3):
            with torch.no_grad():
                p.mul_(1.5)
            total = total + p.sum()
        total.backward()
        return w.grad + 0

    return Program(step, leaves())


@differential(hits=3, graphs=1)
def test_leaf_that_was_detached():
    """What it was detached from holds the same, and has no gradient."""

    def step(x):
        w = x * 2
        leaf = w.detach().requires_grad_()
        p = leaf[0:2]
        with torch.no_grad():
            p.add_(1)
        (p * p * w[0]).sum().backward()
        return leaf.grad, w

    return Program(step, [(torch.randn(4),) for _ in range(6)])


@differential(reasons=["autograd"])
def test_gradient_due_outside():
    def step(w):
        p = w[0:2]
        with torch.no_grad():
            p.mul_(2)
        return (p * p).sum()

    return backward_outside(step, leaves())
