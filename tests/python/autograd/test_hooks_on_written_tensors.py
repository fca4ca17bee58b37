"""Hooks and retained gradients of tensors that a Function takes, or that are written in place."""

import pytest
from differential import Program, differential
from torch.autograd import Function

import torch


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        return 3 * ctx.saved_tensors[0] * gradient


def tripled(gradient):
    return gradient * 3


def retained_behind_a_function(h):
    y = Square.apply(h)
    h.retain_grad()
    y.sum().backward()
    return h.grad


def retained_behind_a_function_and_more(h):
    y = Square.apply(h).exp()
    h.retain_grad()
    (y.sum() + h.sum()).backward()
    return h.grad


def hook_behind_a_function(h):
    kept = []
    y = Square.apply(h)
    h.register_hook(lambda gradient: kept.append(gradient * 1))
    y.sum().backward()
    return kept


def hook_behind_a_branch(h):
    y = h if h.sum() > 2 else h * 2
    h.register_hook(tripled)
    y.sum().backward()


def retained_before_it_is_written(h):
    h.retain_grad()
    h.mul_(2)
    h.square().sum().backward()
    return h.grad


def retained_before_an_item_is_set(h):
    h.retain_grad()
    h[0] = 0
    (h.square() * 3).sum().backward()
    return h.grad


def retained_before_a_view_is_written(h):
    h.retain_grad()
    q = h[:, :2]
    q.mul_(2)
    (h.sum() + q.square().sum()).backward()
    return h.grad


def view_retained_before_its_base_is_written(h):
    q = h[:, :2]
    q.retain_grad()
    h.mul_(2)
    (h.sum() + q.square().sum()).backward()
    return q.grad


def view_hooked_before_it_is_written(h):
    q = h[:, :2]
    q.register_hook(tripled)
    q.mul_(2)
    (h.sum() + q.sum()).backward()


def hook_after_a_view_is_written(h):
    q = h[:, :2]
    q.mul_(2)
    h.register_hook(tripled)
    (h.sum() + q.sum()).backward()


REFUSED = [
    *(retained_behind_a_function, retained_behind_a_function_and_more, hook_behind_a_function),
    *(hook_behind_a_branch, retained_before_it_is_written, retained_before_an_item_is_set),
    *(retained_before_a_view_is_written, view_retained_before_its_base_is_written),
    *(view_hooked_before_it_is_written, hook_after_a_view_is_written),
]


def retained_before_a_function(h):
    h.retain_grad()
    Square.apply(h).sum().backward()
    return h.grad


def retained_after_it_is_written(h):
    h.mul_(2)
    h.retain_grad()
    h.square().sum().backward()
    return h.grad


def hooks_around_a_write(h):
    h.register_hook(tripled)
    h.mul_(2)
    h.register_hook(lambda gradient: gradient * 5)
    h.square().sum().backward()


def hook_before_a_view_is_written(h):
    h.register_hook(tripled)
    q = h[:, :2]
    q.mul_(2)
    (h.sum() + q.square().sum()).backward()


CONVERTED = [
    *(retained_before_a_function, retained_after_it_is_written, hooks_around_a_write),
    hook_before_a_view_is_written,
]


def program(use):
    weight = torch.ones(4, 3, requires_grad=True)

    def step(x):
        weight.grad = None
        return use(weight * x)

    return Program(step, [(torch.rand(4, 3),) for _ in range(6)], watch=[weight])


@pytest.mark.parametrize("use", REFUSED, ids=lambda use: use.__name__)
def test_hooks_that_eager_moves_or_calls_on_other_ways(use):
    @differential(reasons=["hook"])
    def test():
        return program(use)

    test()


@pytest.mark.parametrize("use", CONVERTED, ids=lambda use: use.__name__)
def test_hooks_that_stay_where_they_are(use):
    @differential()
    def test():
        return program(use)

    test()
