"""Gradients that eager gives as one tensor, checks of a Function's backward, and slopes that are infinite."""

import math

import pytest
import torch.nn.functional as F
from differential import Program, differential

import torch


def leaves(n):
    return [
        (torch.randn(2, requires_grad=True), torch.randn(2, requires_grad=True)) for _ in range(n)
    ]


@differential(reasons=["unsupported_tensor"])
def test_two_gradients_that_are_one_tensor():
    def f(a, b):
        of_a, of_b = torch.autograd.grad(((a + b) ** 2).sum(), (a, b))
        of_a.mul_(0.5)
        of_b.mul_(0.5)
        return of_a, of_b

    return Program(f, leaves(6))


@differential()
def test_two_gradients_that_are_two():
    def f(a, b):
        of_a, of_b = torch.autograd.grad((a * b).sum(), (a, b))
        return of_a.mul(0.5), of_b, of_a is of_b

    return Program(f, leaves(6))


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale, gradients):
        ctx.gradients = gradients
        return x * scale

    @staticmethod
    def backward(ctx, gradient):
        return ctx.gradients(gradient)


def doubled(gradient):
    gradient.mul_(2)
    return gradient, None, None


GRADIENTS = {
    "of a number": (lambda g: (g * 2, g, None), "would_raise"),
    "too many": (lambda g: (g * 2, None, None, g), "would_raise"),
    "changed in place": (doubled, "unsupported_tensor"),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_a_function(name):
    gradients, reason = GRADIENTS[name]

    @differential(reasons=[reason])
    def test():
        def f(x):
            y = Scaled.apply(x, 2, gradients)
            y.sum().backward()
            return y.detach()

        return Program(f, [(torch.randn(2, requires_grad=True),) for _ in range(6)])

    test()


@differential()
def test_more_than_needed_that_are_none():
    def f(x):
        y = Scaled.apply(x, 2, lambda g: (g * 2, None, None, None, None))
        y.sum().backward()
        return x.grad + 0

    return Program(f, [(torch.randn(2, requires_grad=True),) for _ in range(6)])


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "Adagrad"])
@differential()
def test_versions_of_fused_updates(kind):
    """Torch's kernels count no write: a loss of before can still be differentiated."""
    w = torch.ones(3, requires_grad=True)
    options = {"momentum": 0.9} if kind == "SGD" else {}
    optimizer = getattr(torch.optim, kind)([w], lr=0.1, fused=True, **options)

    def step(g):
        w.grad = g * 1
        optimizer.step()

    return Program(step, [(torch.randn(3),) for _ in range(7)], watch=[w, optimizer])


SLOPES = {
    "prelu": lambda x, w: F.prelu(x, w),
    "xlogy": lambda x, w: torch.xlogy(x, w - w),
}


@pytest.mark.parametrize("name", SLOPES)
@pytest.mark.parametrize("weight", [0.25, math.inf])
@differential(tolerance=1e-9)
def test_infinite_slopes(name, weight):
    def f(x, w, factor):
        (SLOPES[name](x, w) * factor).sum().backward()
        return x.grad + 0, w.grad + 0

    calls = []
    for _ in range(6):
        x = torch.tensor([math.inf, 5.0, -3.0, 0.0], requires_grad=True)
        w = torch.tensor([weight], requires_grad=True)
        calls.append((x, w, torch.tensor([1.0, 0.0, 1.0, 0.0])))
    return Program(f, calls)
