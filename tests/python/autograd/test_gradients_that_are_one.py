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


def three_layers(step):
    """Runs `step(model, x, gradients)`, whose gradients have the same shapes but are different tensors."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[torch.nn.Linear(3, 3) for _ in range(3)])

    def f(x):
        gradients = torch.autograd.grad(model(x).pow(2).mean(), list(model.parameters()))
        return step(model, x, gradients)

    return Program(f, [(torch.randn(4, 3),) for _ in range(6)], watch=[model])


def clamp(model, x, gradients):
    with torch.no_grad():
        for p, g in zip(model.parameters(), gradients, strict=True):
            g.clamp_(-1, 1)
            p.sub_(0.1 * g)


def multiply(model, x, gradients):
    for g in gradients:
        g.mul_(0.5)
    return gradients


def multiply_all(model, x, gradients):
    torch._foreach_mul_(gradients, 0.5)
    return gradients


def clip(model, x, gradients):
    for p, g in zip(model.parameters(), gradients, strict=True):
        p.grad = g
    return torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)


def add_second(model, x, gradients):
    second = torch.autograd.grad(model(x * 2).mean(), list(model.parameters()))
    for a, b in zip(gradients, second, strict=True):
        a.add_(b)
    return gradients


@pytest.mark.parametrize("step", [clamp, multiply, multiply_all, clip, add_second])
def test_gradients_of_parameters_alike_are_written(step):
    @differential()
    def test():
        return three_layers(step)

    test()


def joined(a, b):
    return torch.cat([a, b]).pow(2).sum()


def added_to_itself(a, b):
    return (a + a).sum() + (b + b).sum()


def behind_a_view(a, b):
    return (a.view(2, 1) * 2).sum() + b.mean()


@pytest.mark.parametrize("loss", [joined, added_to_itself, behind_a_view])
def test_gradients_that_share_no_element_are_written(loss):
    @differential()
    def test():
        def f(a, b):
            of_a, of_b = torch.autograd.grad(loss(a, b), (a, b))
            of_a.mul_(0.5)
            of_b.add_(1)
            return of_a + 0, of_b + 0

        return Program(f, leaves(6))

    test()


def seed_itself(x):
    seed = torch.ones(3)
    (g,) = torch.autograd.grad(x + 1, x, seed)
    g.mul_(2)
    return seed


def view_of_the_seed(x):
    seed = torch.ones(3)
    (g,) = torch.autograd.grad(x.view(3, 1).clone(), x, seed.view(3, 1))
    g.mul_(2)
    return seed


def seed_written(x):
    seed = torch.ones(3)
    (g,) = torch.autograd.grad(x + 1, x, seed)
    seed.mul_(2)
    return g


def two_behind_a_branch(x):
    y, z = x * 1, x * 2
    w = y if x.sum() > 0 else y + 1
    of_y, of_z = torch.autograd.grad((w + z).exp().sum(), (y, z))
    of_y.mul_(2)
    return of_y, of_z


def of_sum(x):
    (g,) = torch.autograd.grad(x.sum(), x)
    g.mul_(2)
    return g


def of_sum_of_a_view(x):
    (g,) = torch.autograd.grad((x.view(3, 1) + 1).sum(), x)
    g.mul_(2)
    return g


def of_expanded_seed(x):
    (g,) = torch.autograd.grad(x + 1, x, torch.ones(1).expand(3))
    g.mul_(2)
    return g


ANOTHER_TENSOR = [seed_itself, view_of_the_seed, seed_written, two_behind_a_branch]
ONE_ELEMENT = [of_sum, of_sum_of_a_view, of_expanded_seed]


@pytest.mark.parametrize("f", [*ANOTHER_TENSOR, *ONE_ELEMENT], ids=lambda f: f.__name__)
def test_written_gradients_that_are_another_tensor_or_one_element(f):
    @differential(reasons=["unsupported_tensor"])
    def test():
        return Program(f, [(torch.randn(3, requires_grad=True),) for _ in range(6)])

    test()


def of_number(x):
    (g,) = torch.autograd.grad(x.sum() * 2, x, torch.tensor(3.0))
    return g


def of_new_seed(x):
    (g,) = torch.autograd.grad(x + 1, x, torch.ones(3))
    g.mul_(2)
    return g


def of_product(x):
    seed = torch.ones(3)
    (g,) = torch.autograd.grad(x * 2, x, seed)
    g.mul_(2)
    return g, seed


@pytest.mark.parametrize("f", [of_number, of_new_seed, of_product], ids=lambda f: f.__name__)
def test_gradients_from_a_seed_that_are_its_alone(f):
    @differential()
    def test():
        return Program(f, [(torch.randn(3, requires_grad=True),) for _ in range(6)])

    test()


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale, gradients):
        ctx.gradients = gradients
        return x * scale

    @staticmethod
    def backward(ctx, gradient):
        return ctx.gradients(gradient)


class Handed(torch.autograd.Function):
    """Its gradient is the one that it is given."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        return x + y

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient * 2
        return gradient, gradient


def handed_on(a, b):
    return torch.autograd.grad((Handed.apply(a) * b).sum(), (a, b))


def one_of_two(a, b):
    return torch.autograd.grad((Handed.apply(a) + Handed.apply(b)).exp().sum(), (a, b))


def twice_the_same(a, b):
    return torch.autograd.grad(Sum.apply(a, b).exp().sum(), (a, b))


def handed_on_from_a_sum(a, b):
    return torch.autograd.grad(Handed.apply(a).sum() + b.exp().sum(), (a, b))


def handed_on_from_the_seed(a, b):
    seed = torch.ones(2)
    (gradient,) = torch.autograd.grad(Handed.apply(a), a, seed)
    return gradient, seed


HANDED = {
    handed_on: [],
    one_of_two: ["unsupported_tensor"],
    twice_the_same: ["unsupported_tensor"],
    handed_on_from_a_sum: ["unsupported_tensor"],
    handed_on_from_the_seed: ["unsupported_tensor"],
}


@pytest.mark.parametrize("gradients", HANDED, ids=lambda f: f.__name__)
def test_written_gradients_of_a_function(gradients):
    @differential(reasons=HANDED[gradients])
    def test():
        def f(a, b):
            first, second = gradients(a, b)
            first.mul_(3)
            return first, second

        return Program(f, leaves(6))

    test()


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
