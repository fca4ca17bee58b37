"""Tensors that came out of a branch or loop, where a gradient needs them, and are then changed in place."""

import math

import pytest
from differential import Program, differential

import torch
import torchjanus


def backward_inside(change):
    def f(x, n):
        y = change(x, n)
        y.add_(1)
        y.sum().backward()
        return y.detach()

    return f


def program(function, behind=lambda y: y):
    """Runs `behind` of what the function gives, which alone is converted. Of what is raised the first words
    count: which of several operators made a tensor is not known."""

    def step_with(function):
        def step(x, n):
            try:
                return behind(function(x, n))
            except RuntimeError as error:
                return str(error)[:80]

        return step

    def convert(_):
        converted = torchjanus.function(function)
        return step_with(converted), converted

    calls = [(torch.randn(2, 2, requires_grad=True), i % 3 + 1) for i in range(12)]
    return Program(step_with(function), calls, convert=convert)


def saved_on_one_side(x, n):
    return x.exp() if n > 1 else x * 2


def saved_where_the_contents_say(x, n):
    y = x * 2
    if x.sum() > 0:
        y = y.exp()
    return y


def saved_in_the_other_case(x, n):
    y = x.exp()
    if x.sum() > 0:
        y = y * 3
    return y


def saved_by_a_loop(x, n):
    y = x * 2
    for _ in range(n):
        y = torch.sigmoid(y)
    return y


def saved_by_an_operator_of_torch(x, n):
    y = x + 3 * torch.eye(2)
    for _ in range(n):
        y = torch.linalg.inv(y)
    return y


def saved_by_a_while(x, n):
    y = x * 2
    while y.sum() < 6:
        y = y.exp()
    return y


def saved_in_front_of_a_loop(x, n):
    y = x.exp()
    for _ in range(n - 1):
        y = y * 2
    return y


def saved_in_both(x, n):
    y = x * 2
    if x.sum() > -100:
        for _ in range(n):
            y = torch.sigmoid(y).view(2, 2)
    return y


RAISE = {
    saved_on_one_side: "branch_changed",
    saved_where_the_contents_say: "autograd",
    saved_in_the_other_case: "branch_changed",
    saved_by_a_loop: "autograd",
    saved_by_an_operator_of_torch: "autograd",
    saved_by_a_while: "dynamic_control",
    saved_in_front_of_a_loop: "autograd",
    saved_in_both: "autograd",
}


@pytest.mark.parametrize("change", RAISE, ids=lambda f: f.__name__)
def test_what_a_gradient_needs(change):
    @differential(reasons=[RAISE[change]])
    def test():
        return program(backward_inside(change))

    test()


def nothing_saved_by_a_branch(x, n):
    y = x * 2
    if x.sum() > 0:
        y = y * 3
    return y


def operands_saved_by_a_loop(x, n):
    y = x * 2
    for _ in range(n):
        y = y * x
    return y


def result_replaced(x, n):
    y = x * 2
    for _ in range(n):
        y = torch.sigmoid(y) + 1
    return y


@pytest.mark.parametrize(
    "change",
    [nothing_saved_by_a_branch, operands_saved_by_a_loop, result_replaced],
    ids=lambda f: f.__name__,
)
def test_what_no_gradient_needs(change):
    @differential()
    def test():
        return program(backward_inside(change))

    test()


def changed_outside(change):
    def behind(y):
        y.add_(1)
        y.sum().backward()
        return y.detach()

    return program(change, behind)


def saved_in_a_branch_of_a_loop(x, n):
    y = x * 2
    for _ in range(n):
        y = y.tanh() if y.sum() > 0 else y * 2
    return y


def saved_by_some_iterations(x, n):
    y = x * 2
    for _ in range(n - 1):
        y = y.tanh()
    return y


@pytest.mark.parametrize(
    "change",
    [
        *RAISE,
        saved_in_a_branch_of_a_loop,
        saved_by_some_iterations,
        nothing_saved_by_a_branch,
        operands_saved_by_a_loop,
        result_replaced,
    ],
    ids=lambda f: f.__name__,
)
def test_results_that_are_changed_outside(change):
    @differential(hits=1)
    def test():
        return changed_outside(change)

    test()


@pytest.mark.parametrize("order", [1, 2, 3, 0.5, math.inf])
@pytest.mark.parametrize("norm", [torch.norm, torch.linalg.vector_norm])
def test_norms_that_are_changed_outside(norm, order):
    @differential()
    def test():
        return changed_outside(lambda x, n: norm(x, order))

    test()


@pytest.mark.parametrize("order", [1, 2])
def test_norms_that_are_changed(order):
    @differential(reasons=["autograd"])
    def test():
        return program(backward_inside(lambda x, n: torch.linalg.vector_norm(x, order)))

    test()


def test_the_quotient_of_normalize_is_changed():
    """Its division saves only what it divides."""

    @differential()
    def test():
        return program(backward_inside(lambda x, n: torch.nn.functional.normalize(x)))

    test()
