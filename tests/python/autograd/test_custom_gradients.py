"""Differential programs: gradients that go through the program's own code, Functions and hooks.
PYTEST_DONT_REWRITE"""

from types import SimpleNamespace

import pytest
import torch.nn.functional as F
from differential import Program, differential
from random_programs import Shown
from torch.autograd import Function
from torch.autograd.function import once_differentiable

import torch
from torch import nn


class Square(Function):
    """With a gradient that is not its derivative, so that whose it is shows."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * x * factor

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        assert ctx.needs_input_grad[0]
        return gradient * 3 * x * ctx.factor, None


class Rounded(Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        return gradient.clamp(-0.5, 0.5)


class Reversed(Function):
    @staticmethod
    def forward(x, scale):
        return x.view_as(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.scale = inputs[1]

    @staticmethod
    def backward(ctx, gradient):
        return -ctx.scale * gradient, None


class Halves(Function):
    @staticmethod
    def forward(ctx, x, y):
        total, index = x + y, (x > y)
        ctx.mark_non_differentiable(index)
        ctx.set_materialize_grads(False)
        return total, x * y, index

    @staticmethod
    def backward(ctx, of_total, of_product, of_index):
        if of_product is None:
            return of_total, None
        return of_total * 0.5 + of_product, of_product


class Attention(Function):
    """Written out by hand, as in many libraries."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return x.mm(weight.t()) + bias

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        return gradient.mm(weight), gradient.t().mm(x), gradient.sum(0)


def batches(count=10):
    return [(torch.randn(5, 4), i) for i in range(count)]


def trained(use):
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 3))
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)

    def step(x, i):
        optimizer.zero_grad()
        loss = use(model, x, i)
        loss.backward()
        optimizer.step()
        return loss

    return Program(step, batches(), watch=[model])


def squared(model, x, i):
    return Square.apply(model(x), 0.5).mean()


def twice_in_a_row(model, x, i):
    return Reversed.apply(Square.apply(model[0](x), 2.0), 0.3).sum() + model(x).mean()


def rounded(model, x, i):
    return F.mse_loss(Rounded.apply(model(x) * 4) / 4, torch.ones(5, 3))


def with_varying_numbers(model, x, i):
    return Square.apply(Reversed.apply(model(x), i * 0.1), i + 1).mean()


def several_results(model, x, i):
    hidden = model[0](x)
    total, product, larger = Halves.apply(hidden, hidden * 2)
    return (total + product).sum() + larger.sum()


def one_result_unused(model, x, i):
    hidden = model[0](x)
    total, _, _ = Halves.apply(hidden, hidden.detach())
    return total.pow(2).sum()


def written_by_hand(model, x, i):
    return Attention.apply(x, model[0].weight, model[0].bias).pow(2).mean()


def several_uses(model, x, i):
    hidden = Square.apply(model[0](x), 1.0)
    return (hidden + Reversed.apply(hidden, 2.0) * hidden).mean()


def kept_under_a_name(model, x, i):
    return KEPT(model[0](x), 1.0).mean() + KEPT(x, 2.0).mean()


KEPT = Square.apply  # in C since torch 2.15: bound to its class
USES = [
    *(squared, twice_in_a_row, rounded, with_varying_numbers, several_results),
    *(one_result_unused, written_by_hand, several_uses, kept_under_a_name),
]


@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
def test_functions_in_training(use):
    @differential(hits=5)
    def program():
        return trained(use)

    program()


@differential(hits=5)
def test_function_without_gradient():
    weight = torch.randn(4, 3, requires_grad=True)

    def step(x, i):
        with torch.no_grad():
            y = Square.apply(x @ weight, 2.0)
        return y + Rounded.apply(x.detach()).sum()

    return Program(step, batches(), watch=[weight])


@differential(hits=5)
def test_gradients_by_grad():
    weight = torch.randn(4, 3, requires_grad=True)

    def step(x, i):
        hidden = x @ weight
        y = Square.apply(hidden, 2.0)
        of_hidden, of_weight = torch.autograd.grad(y.mean(), [hidden, weight])
        return of_hidden * 1.0, of_weight * 1.0

    return Program(step, batches(), watch=[weight])


@differential(hits=5)
def test_two_backwards():
    weight = torch.randn(4, 3, requires_grad=True)

    def step(x, i):
        loss = Square.apply(x @ weight, 2.0).mean()
        loss.backward(retain_graph=True)
        loss.backward()
        return loss

    return Program(step, batches(), watch=[weight])


@differential(hits=5)
def test_python_in_backward():
    log = SimpleNamespace(calls=0, norms=[])
    weight = torch.randn(4, 3, requires_grad=True)

    class Logged(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            log.calls += 1
            log.norms.append(gradient.norm().item())
            return gradient * 2

    def step(x, i):
        log.calls = 0
        loss = Logged.apply(x @ weight).pow(2).sum()
        before = log.calls
        loss.backward()
        return loss, before, log.calls

    return Program(step, batches(), watch=[weight, log])


@differential(reasons=["autograd"])
def test_gradient_due_outside():
    weight = torch.randn(4, 3, requires_grad=True)

    def step(x, i):
        return Square.apply(x @ weight, 2.0).mean()

    return Program(step, batches(), watch=[weight])


@differential(reasons=["autograd"])
def test_saved_tensor_changed_in_place():
    weight = torch.randn(4, 3, requires_grad=True)

    def step(x, i):
        hidden = x @ weight
        y = Square.apply(hidden, 2.0)
        hidden.add_(1)
        y.sum().backward()
        return y

    return Program(step, batches(), watch=[weight])


@differential(reasons=["autograd"])
def test_function_that_writes_its_argument():
    class Doubled(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    weight = torch.randn(4, 3, requires_grad=True)

    def step(x, i):
        y = Doubled.apply(x @ weight)
        y.sum().backward()
        return y

    return Program(step, batches(), watch=[weight])


# --- hooks --------------------------------------------------------------------------------------


@differential(hits=5)
def test_hook_that_changes_a_gradient():
    weight = torch.randn(4, 3, requires_grad=True)

    def step(x, i):
        hidden = x @ weight
        hidden.register_hook(lambda gradient: gradient.clamp(-0.1, 0.1))
        hidden.register_hook(lambda gradient: gradient * (i + 1))
        loss = hidden.pow(2).sum()
        loss.backward()
        return loss

    return Program(step, batches(), watch=[weight])


@differential(hits=5)
def test_hook_that_only_looks():
    weight = torch.randn(4, 3, requires_grad=True)
    norms = []

    def step(x, i):
        hidden = torch.tanh(x @ weight)
        handle = hidden.register_hook(lambda gradient: norms.append(gradient.norm().item()))
        other = hidden * 2
        removed = other.register_hook(lambda gradient: gradient * 100)
        removed.remove()
        other.sum().backward()
        handle.remove()
        return other

    return Program(step, batches(), watch=[weight, norms])


@differential(hits=4)
def test_numbers_of_handles():
    """Hooks that the program registers later are kept under the numbers that follow."""
    weight = torch.randn(4, 3, requires_grad=True)
    kind = torch.utils.hooks.RemovableHandle
    first = kind.next_id

    def step(x, i):
        hidden = x @ weight
        handle = hidden.register_hook(lambda gradient: gradient * 2)
        hidden.retain_grad()
        hidden.sum().backward()
        return handle.id - first

    shown = Shown(lambda: {"handles": kind.next_id - first})
    return Program(step, batches(), watch=[weight, shown])


@differential(hits=5)
def test_kept_gradient():
    weight = torch.randn(4, 3, requires_grad=True)

    def step(x, i):
        hidden = x @ weight
        hidden.retain_grad()
        before = hidden.grad is None
        hidden.pow(2).sum().backward()
        return before, hidden.grad * 1.0

    return Program(step, batches(), watch=[weight])


@differential(reasons=["hook"])
def test_hook_on_what_was_used():
    weight = torch.randn(4, 3, requires_grad=True)

    def step(x, i):
        hidden = x @ weight
        y = hidden * 2
        hidden.register_hook(lambda gradient: gradient * 10)
        y.sum().backward()
        return y

    return Program(step, batches(), watch=[weight])


@differential(hits=5)
def test_detached_in_place():
    weight = torch.randn(4, 3, requires_grad=True)

    def step(x, i):
        hidden = x @ weight
        hidden.detach_()
        loss = (hidden * weight.sum()).sum()
        loss.backward()
        return loss, hidden

    return Program(step, batches(), watch=[weight])


class SavesItsResult(Function):
    @staticmethod
    def forward(ctx, x):
        result = x.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, gradient):
        (result,) = ctx.saved_tensors
        return gradient * result


@differential(hits=2)
def test_a_saved_result_that_is_written_in_place():
    weight = torch.randn(4, 3, requires_grad=True)

    def step(x, writes):
        hidden = SavesItsResult.apply(x @ weight)
        if writes:
            hidden.mul_(2)
        hidden.sum().backward()
        return hidden

    calls = [(torch.randn(5, 4), i in (5, 7)) for i in range(10)]
    return Program(step, calls, watch=[weight])
