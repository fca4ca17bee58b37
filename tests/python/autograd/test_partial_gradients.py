"""torch.autograd.grad frees what lies on its way, and nothing else: results whose gradients go another way, and what
is computed of what it was asked for, have their gradients still."""

import pytest
from differential import Program, default_dtype, differential
from torch.nn import functional as F

import torch
import torchjanus
from torch import nn


def beside_the_way(a, b, x):
    y = (b * x).exp()
    (g,) = torch.autograd.grad((a * y).sum(), [a])
    return g, y


def behind_the_way(a, b, x):
    p = (a * x).exp()
    (g,) = torch.autograd.grad((p * p).sum(), [p])
    return g, p


def beside_and_behind(a, b, x):
    p, y = (a * x).exp(), (b * x).exp()
    (g,) = torch.autograd.grad((p * y).tanh().sum(), [p])
    return g, (p + 1) * y


def of_what_a_branch_gives(a, b, x):
    p, y = (a, b * x) if x.sum() > 0 else ((a * x).exp(), (b * x).tanh())
    (g,) = torch.autograd.grad((p * p * 2).sum(), [p])
    return g, y


PARTLY_FREED = {
    f.__name__: f
    for f in (beside_the_way, behind_the_way, beside_and_behind, of_what_a_branch_gives)
}


def on_the_way(a, b, x):
    z = ((a * x).exp() * b).tanh()
    (g,) = torch.autograd.grad(z.sum(), [a])
    return g, z


def on_the_way_under_what_keeps_nothing(a, b, x):
    loss = ((a * x).exp() * b).tanh().sum() + 1
    (g,) = torch.autograd.grad(loss, [a])
    return g, loss


def all_ways(a, b, x):
    loss = ((a * x).exp() * b).sum()
    ga, gb = torch.autograd.grad(loss, [a, b])
    return ga + gb, loss


FREED = {f.__name__: f for f in (on_the_way, on_the_way_under_what_keeps_nothing, all_ways)}


def program(f):
    a, b = (torch.randn(3, 3, requires_grad=True) for _ in range(2))

    def step(x):
        return f(a, b, x)

    return Program(step, [(torch.randn(3, 3),) for _ in range(10)], watch=[a, b])


def with_backward_outside(f, convert):
    """What is seen of the results' gradients, which are due outside of the step."""
    a, b = (torch.randn(3, 3, requires_grad=True) for _ in range(2))
    seen = []
    step = convert(lambda x: f(a, b, x))
    for _ in range(10):
        result = step(torch.randn(3, 3))[1]
        try:
            result.sum().backward()
            seen.append("went through")
        except RuntimeError as error:
            seen.append(str(error))
        seen += [None if leaf.grad is None else leaf.grad.clone() for leaf in (a, b)]
    return seen, step


@pytest.mark.parametrize("name", [*PARTLY_FREED, *FREED])
def test_gradients_of_results(name):
    f = (PARTLY_FREED | FREED)[name]
    with default_dtype(torch.float64):
        torch.manual_seed(7)
        expected, _ = with_backward_outside(f, lambda step: step)
        torch.manual_seed(7)
        actual, step = with_backward_outside(f, torchjanus.function)
    assert step.stats()["hits"] > 0, step.stats()["reasons"]
    for one, other in zip(expected, actual, strict=True):
        if isinstance(one, torch.Tensor):
            torch.testing.assert_close(one, other)
        else:
            assert one == other


@pytest.mark.parametrize("name", [*PARTLY_FREED, *FREED])
@differential(hits=5)
def test_results(name):
    return program((PARTLY_FREED | FREED)[name])


@differential(reasons=["autograd"])
def test_a_result_that_is_freed_on_one_of_its_ways():
    """Its backward() raises, but not before the other way has had its gradient."""
    return program(half_freed)


def half_freed(a, b, x):
    loss = (a * x).tanh().sum() + (b * x).exp().sum()
    (g,) = torch.autograd.grad(loss, [a])
    return g, loss


@pytest.mark.parametrize("second", [True, False])
@differential(hits=5, graphs=1)
def test_adapted_weights_without_second_derivatives(second):
    """Each iteration takes gradients of what the iteration before has computed, whose own is due at the end."""
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(x, y):
        optimizer.zero_grad()
        weights = list(model.parameters())
        for _ in range(3):
            loss = F.mse_loss(F.linear(x, *weights).tanh(), y)
            gradients = torch.autograd.grad(loss, weights, create_graph=second)
            weights = [w - 0.1 * g for w, g in zip(weights, gradients, strict=True)]
        loss = F.mse_loss(F.linear(x, *weights), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    batches = [(torch.randn(4, 3), torch.randn(4, 2)) for _ in range(10)]
    return Program(step, batches, watch=[model])


@differential(reasons=["autograd"])
def test_a_second_gradient_through_what_the_first_freed():
    def step(a, x):
        p = (a * x).exp()
        loss = (p * p).sum()
        torch.autograd.grad(loss, [p])
        try:
            loss.backward()
        except RuntimeError as error:
            return str(error)[:30]

    a = torch.randn(3, requires_grad=True)
    return Program(step, [(a, torch.randn(3)) for _ in range(6)])


@differential()
def test_gradients_of_what_no_result_with_a_gradient_comes_from():
    """Parts of a cut function give several results; backward() may come from one of them only."""
    first, second = torch.nn.Linear(4, 3), torch.nn.Linear(4, 3)

    def parts(x):
        return first(x), second(x).mean()

    converted = torchjanus.function(parts)

    def step(f, x):
        for each in (*first.parameters(), *second.parameters()):
            each.grad = None
        hidden, loss = f(x)
        loss.backward()
        return [each.grad is None for each in (*first.parameters(), *second.parameters())]

    return Program(
        lambda x: step(parts, x), [(torch.randn(2, 4),) for _ in range(6)],
        convert=lambda _: (lambda x: step(converted, x), converted),
    )  # fmt: skip


HEADS = {
    "both": lambda hidden, b, c: ((hidden @ b).sigmoid(), (hidden @ c).square()),
    "with the features": lambda hidden, b, c: (hidden, (hidden @ b).tanh(), (hidden @ c).exp()),
    "shared": lambda hidden, b, c: ((hidden @ b).tanh(), (hidden @ b @ c).tanh()),
}


@pytest.mark.parametrize("orders", [1, 2])
@pytest.mark.parametrize("number", [0, 1, -1])
@pytest.mark.parametrize("heads", HEADS)
@differential(hits=3)
def test_penalty_of_one_of_several_heads(heads, number, orders):
    """Parameters of the other heads have no gradient, with which an optimizer would decay them."""
    a, b, c = leaves = [torch.randn(3, 3, requires_grad=True) for _ in range(3)]

    def net(x):
        return HEADS[heads](torch.tanh(x @ a), b, c)

    def step(f, x):
        for leaf in leaves:
            leaf.grad = None
        x = x.detach().requires_grad_()
        y = f(x)[number]
        for _ in range(orders):
            (y,) = torch.autograd.grad(y.square().sum(), x, create_graph=True)
        y.square().sum().backward()
        return [x.grad, *(leaf.grad for leaf in leaves)]

    converted = torchjanus.function(net)
    return Program(
        lambda x: step(net, x),
        [(torch.randn(4, 3),) for _ in range(6)],
        convert=lambda _: (lambda x: step(converted, x), converted),
    )
