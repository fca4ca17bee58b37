"""Gradients of gradients outside of a converted function: they are computed from what the function saw,
although it draws other numbers and overwrites what it read each time."""

import random
import time
import weakref

import numpy as np
import pytest
import torch.nn.functional as F
from differential import Program, differential

import torch
import torchjanus
from torch import nn


class Programs:
    """Each method is a program over `self`'s state; made anew for each run."""

    def __init__(self):
        torch.manual_seed(3)
        self.buffer = torch.zeros(4, dtype=torch.float64)
        self.norm = nn.BatchNorm1d(4).double()
        self.w = nn.Parameter(torch.randn(4, dtype=torch.float64))
        self.x = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)

    def dropout(self, x):
        return F.dropout(x, 0.4) ** 3

    def draws(self, x):
        return x**2 * torch.rand(6, 4).double() + torch.randn_like(x) * x.exp()

    def draws_that_others_depend_on(self, x):
        scale = torch.rand(4).double()
        return (x * scale).sin() * scale.cos()

    def buffer_written_in_place(self, x):
        y = x + self.buffer
        with torch.no_grad():
            self.buffer.add_(1)
        return y**3

    def buffer_read_before_and_after(self, x):
        y = x + self.buffer
        self.buffer.mul_(0.5).add_(1)
        return (y**2).sum(1, keepdim=True) * (x + self.buffer).cos()

    def batch_norm(self, x):
        return self.norm(x) ** 3

    def batch_norm_and_dropout_of_a_parameter(self, x):
        return F.dropout(self.norm(x * self.w), 0.3).tanh()

    def draws_that_do_not_matter(self, x):
        noise = torch.rand(3) * 2
        noise += 1
        return F.dropout(x, 0.5) ** 2

    def penalised(self, x):
        return F.dropout(x * self.w, 0.3) ** 2


NAMES = [name for name in vars(Programs) if not name.startswith("_")]


def observe(name, converted):
    """Three orders of gradients of several calls, the state and the generator after each."""
    programs = Programs()
    step = getattr(programs, name)
    f = torchjanus.function(step) if converted else step
    torch.manual_seed(11)
    leaves = [programs.x, programs.w]
    observed = []
    for _ in range(7):
        result = f(programs.x)
        again = f(programs.x)  # changes the state that the first call read
        first = torch.autograd.grad(
            (result * again).sum(), leaves, create_graph=True, allow_unused=True
        )
        penalty = sum((g**2).sum() for g in first if g is not None)
        second = torch.autograd.grad(penalty, leaves, create_graph=True, allow_unused=True)
        if "norm" not in name:  # eager's third order of batch norm is wrong (finite differences)
            sum((g**2).sum() for g in second if g is not None).backward()
        observed.append(
            [
                result, again, *first, *second, programs.x.grad, programs.buffer.clone(),
                programs.norm.running_mean.clone(), torch.get_rng_state(),
            ]
        )  # fmt: skip
        programs.x.grad = programs.w.grad = None
    if converted:
        stats = f.stats()
        assert stats["hits"] >= 10, stats
    return observed


@pytest.mark.parametrize("name", NAMES)
def test_three_orders_outside(name):
    for expected, actual in zip(observe(name, False), observe(name, True), strict=True):
        for one, other in zip(expected, actual, strict=True):
            assert (one is None) == (other is None)
            if one is not None:
                torch.testing.assert_close(other, one, rtol=1e-9, atol=1e-9)


def test_first_order_alone_is_as_before():
    programs = Programs()
    f = torchjanus.function(programs.buffer_written_in_place)
    for i in range(7):
        (gradient,) = torch.autograd.grad(f(programs.x).sum(), programs.x)
        torch.testing.assert_close(gradient, 3 * (programs.x.detach() + i) ** 2)
    assert f.stats()["hits"] == 4


def test_freed_gradients_stay_freed():
    programs = Programs()
    f = torchjanus.function(programs.dropout)
    for _ in range(6):
        result = f(programs.x).sum()
    result.backward()
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(result, programs.x, create_graph=True)


class Tree:
    def __init__(self, height):
        self.value = height * 0.5 + 0.25
        self.offset = torch.full((3,), 0.1 * height, dtype=torch.float64)
        self.children = [Tree(height - 1) for _ in range(2)] if height > 0 else []


def recursion(w):
    def go(node, x):
        for child in node.children:
            x = x + go(child, x * w)
        return torch.tanh(x * node.value + node.offset)

    return go


def recursion_that_draws(w):
    def go(node, x):
        for child in node.children:
            x = x + go(child, F.dropout(x * w, 0.3))
        return torch.tanh(x * node.value)

    return go


def recursion_that_writes(w):
    def go(node, x):
        node.count = len(node.children) + 1
        for child in node.children:
            x = x + go(child, x * w) * child.count
        return torch.tanh(x * node.value)

    return go


def loop_over_objects(w):
    def step(node, x):
        for child in node.children:
            x = torch.tanh(x * w * child.value)
        return x * w

    return step


def branch_that_draws(w):
    def step(node, x):
        noise = torch.rand(3, dtype=w.dtype)
        x = torch.tanh(x * w)
        if x.sum() > 0:
            x = F.dropout(x, 0.4) * torch.rand(3, dtype=w.dtype)
        return x * w * noise

    return step


def branch_that_draws_of_python(w):
    def step(node, x):
        x = torch.tanh(x * w)
        if x.sum() > 0:
            x = x * random.random() + np.random.rand()
        return x * w * w

    return step


def loop_that_draws(w):
    def step(node, x):
        while x.abs().sum() < 5:
            x = x * (1 + w * w * torch.rand(3, dtype=w.dtype)) + 0.1
        return x * w

    return step


def grow(node):
    """What a run has read is another by the time its gradients are asked for."""
    node.value += 1
    node.offset = node.offset + 1
    if node.children:
        grow(node.children[0])
    node.children[1:] = [Tree(1)]


REPEATED = [
    recursion,
    recursion_that_draws,
    recursion_that_writes,
    loop_over_objects,
    branch_that_draws,
    branch_that_draws_of_python,
    loop_that_draws,
]


@pytest.mark.parametrize("make", REPEATED)
def test_three_orders_of_what_is_repeated(make):
    observed = []
    for converted in (False, True):
        torch.manual_seed(3)
        random.seed(3)
        np.random.seed(3)
        w = torch.randn(3, dtype=torch.float64, requires_grad=True)
        step = make(w)
        if converted:
            step = torchjanus.function(step)
        for i in range(10):
            root = Tree(1 + i % 3)
            result = step(root, torch.randn(3, dtype=w.dtype)).square().sum()
            grow(root)
            (first,) = torch.autograd.grad(result, w, retain_graph=True, create_graph=True)
            assert first.requires_grad and not first.is_leaf
            (second,) = torch.autograd.grad(first.norm(), w, create_graph=True)
            (second.square().sum() + result).backward()
            drawn = (torch.get_rng_state(), random.random(), np.random.rand())
            observed.append((converted, [result, first, second, w.grad, *drawn]))
            w.grad = None
        if converted:
            assert step.stats()["hits"] >= 4, step.stats()
    eager, graphs = ([one for one in observed if one[0] == kind] for kind in (False, True))
    for (_, expected), (_, actual) in zip(eager, graphs, strict=True):
        torch.testing.assert_close(actual, expected)


def test_what_a_recursion_read_is_not_to_be_changed():
    """As in eager, where a gradient needs it."""
    w = torch.randn(3, dtype=torch.float64, requires_grad=True)

    def go(node, x):
        for child in node.children:
            x = x + go(child, x * w)
        return torch.tanh(x * w * node.offset)

    step = torchjanus.function(go)
    for i in range(8):
        root = Tree(1 + i % 3)
        result = step(root, torch.randn(3, dtype=w.dtype)).sum()
    assert step.stats()["hits"] >= 4
    root.children[0].offset += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(result, w, create_graph=True)


def test_objects_that_a_recursion_read_are_freed_with_its_gradient():
    w = torch.randn(3, dtype=torch.float64, requires_grad=True)
    step = torchjanus.function(recursion(w))
    for i in range(8):
        root = Tree(1 + i % 3)
        result = step(root, torch.randn(3, dtype=w.dtype)).sum()
    assert step.stats()["hits"] >= 4
    child = weakref.ref(root.children[0])
    result.backward()
    del root
    assert child() is None


def test_gradients_that_clocks_decide():
    """They are eager's, and require a gradient; only who differentiates them is told."""
    w = torch.randn(3, dtype=torch.float64, requires_grad=True)

    def step(x):
        x = torch.tanh(x * w)
        if x.sum() > 0:
            x = x * (1 + 0 * time.time())
        return x * w

    f = torchjanus.function(step)
    for _ in range(10):
        x = torch.randn(3, dtype=w.dtype)
        expected = torch.autograd.grad(step(x).square().sum(), w)
        given = torch.autograd.grad(f(x).square().sum(), w, create_graph=True)
        torch.testing.assert_close(given, expected)
    assert f.stats()["hits"] >= 4
    with pytest.raises(RuntimeError, match="second gradient"):
        given[0].sum().backward()


DRAWING = {
    "alpha_dropout": lambda w: F.alpha_dropout(w, 0.5, training=True),
    "rrelu": lambda w: F.rrelu(w, training=True),
    "gamma": lambda w: torch._standard_gamma(w.exp()),
}


@pytest.mark.parametrize("name", DRAWING)
def test_gradients_of_opaque_draws(name):
    """They are eager's; only who differentiates them is told."""
    w = torch.randn(20, dtype=torch.float64, requires_grad=True)
    f = torchjanus.function(lambda: DRAWING[name](w))
    for seed in range(8):
        torch.manual_seed(seed)
        (expected,) = torch.autograd.grad(DRAWING[name](w).sum(), w)
        torch.manual_seed(seed)
        (given,) = torch.autograd.grad(f().sum(), w, create_graph=True)
        torch.testing.assert_close(given, expected)
    assert f.stats()["hits"] >= 2
    with pytest.raises(RuntimeError, match="second gradient"):
        given.square().sum().backward()


@differential(hits=2)
def test_more_than_one_kernel_for_rows_and_points():
    """A second gradient of a layer norm: a group that is cut, with its rows on both sides."""

    def step(a):
        a = a.clone().requires_grad_()
        normed = F.layer_norm(a, (4,))
        terms = [
            normed,
            torch.where(normed > 0, normed, -normed),
            a[..., ::2].contiguous(),
            normed.transpose(-1, -2).contiguous(),
        ]
        loss = sum((term.tanh() * 1.3).pow(2).sum() for term in terms)
        (gradient,) = torch.autograd.grad(loss, a, create_graph=True)
        return torch.autograd.grad((gradient * gradient).sin().sum(), a)[0]

    return Program(step, [(torch.randn(2, 3, 6, 4, dtype=torch.float64),) for _ in range(5)])
