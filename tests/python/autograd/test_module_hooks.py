"""Full backward hooks of modules, and those in front of their backward pass."""

import contextlib
import types
import warnings

import pytest
from differential import Program, differential
from hooked_training import batches, training

import torch
import torchjanus
from torch import nn


def network():
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 2))


@differential(hits=5, graphs=1)
def test_norms_of_each_layer():
    """The inputs of the first one need no gradients."""
    model, norms, order = network(), {}, []

    def watch(name):
        def hook(module, of_inputs, of_outputs):
            norms[name] = norms.get(name, 0.0) + of_outputs[0].norm().item()
            order.append((name, [None if g is None else tuple(g.shape) for g in of_inputs]))

        return hook

    for name, module in model.named_children():
        module.register_full_backward_hook(watch(name))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    return Program(
        training(model, optimizer), batches(), watch=[*model.parameters(), optimizer, norms, order]
    )


@differential(hits=5, graphs=1)
def test_gradients_are_replaced():
    model = network()
    model[2].register_full_backward_hook(lambda module, given, made: (given[0] * 0.5,))
    model[2].register_full_backward_hook(lambda module, given, made: (given[0].sign(),))
    model[4].register_full_backward_pre_hook(lambda module, made: (made[0].clamp(-1, 1),))
    model[4].register_full_backward_pre_hook(lambda module, made: None)
    optimizer = torch.optim.SGD(model.parameters(), 1e-2)
    return Program(training(model, optimizer), batches(), watch=[*model.parameters(), optimizer])


class Several(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4))

    def forward(self, x, scale, mask, note):
        y = x * self.weight * scale
        return y, y.sum(), (mask > 0).sum(), note


@differential(hits=5, graphs=1)
def test_several_inputs_and_outputs():
    """Some need no gradient, and one has none."""
    module, seen = Several(), []
    w = torch.randn(4, requires_grad=True)

    def hook(module, of_inputs, of_outputs):
        seen.append([None if g is None else g.clone() for g in (*of_inputs, *of_outputs)])

    module.register_full_backward_hook(hook)

    def step(x):
        w.grad = module.weight.grad = None
        y, _, count, note = module(x * w, 2.0, x, "note")
        (y * w).sum().backward()
        return count, note, w.grad

    return Program(step, batches(), watch=[module.weight, w, seen])


@differential(hits=5, graphs=1)
def test_hooks_within_hooks():
    """A module and one inside it; the outer one has a hook of its results as well."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, x):
            return x + self.inner(x).tanh()

    model, order = nn.Sequential(nn.Linear(4, 4), Block(), nn.Linear(4, 1)), []

    def watch(name):
        return lambda module, given, made: order.append((name, given[0].sum(), made[0].sum()))

    model[1].register_full_backward_hook(watch("block"))
    model[1].inner.register_full_backward_hook(watch("inner"))
    model[1].register_forward_hook(lambda module, given, made: made * 2)
    optimizer = torch.optim.SGD(model.parameters(), 1e-2)
    return Program(
        training(model, optimizer), batches(), watch=[*model.parameters(), optimizer, order]
    )


@differential(hits=5)
def test_beside_the_hook_of_a_parameter():
    """It only computes with the gradient: no order shows."""
    model, norms = network(), []
    model[2].register_full_backward_hook(lambda module, given, made: norms.append(made[0].norm()))
    model[0].weight.register_hook(lambda gradient: gradient * 0.5)
    model[4].weight.register_hook(lambda gradient: torch.clamp(gradient, -1, 1))
    optimizer = torch.optim.SGD(model.parameters(), 1e-2)
    return Program(
        training(model, optimizer), batches(), watch=[*model.parameters(), optimizer, norms]
    )


@differential(reasons=["hook"])
def test_beside_the_hook_of_a_parameter_that_sees_it():
    model, state = network(), {"factor": 1.0}

    def hook(module, given, made):
        state["factor"] *= 0.5

    model[2].register_full_backward_hook(hook)
    model[0].weight.register_hook(lambda gradient: gradient * state["factor"])
    optimizer = torch.optim.SGD(model.parameters(), 1e-2)
    return Program(
        training(model, optimizer), batches(), watch=[*model.parameters(), optimizer, state]
    )


@pytest.mark.parametrize("kind", ["default", "nested", "global"])
@differential(reasons=["hook"])
def test_beside_the_hook_of_a_parameter_that_may_see_it(kind):
    model = network()
    model[2].register_full_backward_hook(lambda module, given, made: None)
    factors = [0.5]
    hooks = {
        "default": lambda gradient, by=factors: gradient * by[0],
        "nested": lambda gradient: sum(gradient * i for i in range(3)),
        "global": lambda gradient: FACTORS[0] * gradient,
    }
    model[0].weight.register_hook(hooks[kind])
    optimizer = torch.optim.SGD(model.parameters(), 1e-2)
    return Program(training(model, optimizer), batches(), watch=[*model.parameters(), optimizer])


FACTORS = [0.5]


@differential(hits=5)
def test_without_gradients():
    model, seen = network(), []
    model[0].register_full_backward_hook(lambda module, given, made: seen.append(made))

    def step(x):
        with torch.no_grad():
            return model(x)

    return Program(step, batches(), watch=[seen])


def hook_that_warns(module, given, made):
    warnings.warn("here", stacklevel=1)
    warnings.warn("at the call of backward", stacklevel=6)


@pytest.mark.parametrize("way", ["method", "function"])
def test_warnings_name_the_line_of_eager(way):
    """torch warns of the first layer, whose inputs need no gradients."""

    def warned(convert):
        torch.manual_seed(0)
        model = network()
        model[0].register_full_backward_hook(hook_that_warns)

        def step(x):
            loss = model(x).square().sum()
            if way == "method":
                loss.backward()
            else:
                torch.autograd.backward(loss)

        def outer(x):
            step(x)

        run = torchjanus.function(outer) if convert else outer
        seen = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(6):
                run(torch.ones(2, 4))
                seen.append([(each.filename, each.lineno, str(each.message)) for each in caught])
                caught.clear()
        if convert:
            assert run.stats()["hits"] > 0
        return seen

    assert warned(convert=True) == warned(convert=False)


def hooked(hook, *, tail=None):
    """A step of a module with this hook, and what to watch."""
    torch.manual_seed(1)
    layer, order = nn.Linear(4, 3), []
    layer.register_full_backward_hook(lambda module, given, made: hook(module, order))

    def step(x):
        layer.zero_grad()
        y = layer(x.requires_grad_())
        loss = y.square().sum() if tail is None else tail(y)
        loss.backward()
        return loss.detach()

    return Program(step, batches(), watch=[*layer.parameters(), order])


@differential(hits=0, reasons=["autograd"])
def test_a_hook_reads_the_grad_of_a_leaf():
    """Eagerly the leaf has got it by then, and in a graph only when the whole pass is known."""

    def look(module, order):
        order.append(None if module.weight.grad is None else module.weight.grad.sum().item())

    return hooked(look)


@differential(hits=0, reasons=["autograd"])
def test_a_hook_drops_the_grad_of_a_leaf():
    def drop(module, order):
        module.weight.grad = None

    return hooked(drop)


@differential(hits=0, reasons=["autograd"])
def test_a_hook_makes_the_step_of_the_optimizer():
    layer = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)

    def hook(module, given, made):
        optimizer.step()
        optimizer.zero_grad()

    layer.register_full_backward_hook(hook)

    def step(x):
        loss = layer(x.requires_grad_()).square().sum()
        loss.backward()
        return loss.detach()

    return Program(step, batches(), watch=[*layer.parameters(), optimizer])


@differential(reasons=["unsupported_tensor"])
def test_the_output_is_changed_in_place():
    """Eager raises, as it is a view that a Function gave."""

    def changed(y):
        with contextlib.suppress(RuntimeError):
            y.add_(1)
        return (y * 2).square().sum()

    return hooked(lambda module, order: order.append(1), tail=changed)


@differential(hits=0, reasons=["autograd"])
def test_no_gradient_on_the_way_to_another_hook():
    """It is called all the same, and parameters below get zeros."""
    first, second, order = nn.Linear(4, 4), nn.Linear(4, 2), []
    first.register_full_backward_hook(lambda module, given, made: order.append(len(made)))
    second.register_full_backward_hook(lambda module, given, made: (None,))

    def step(x):
        first.zero_grad()
        second.zero_grad()
        loss = second(first(x.requires_grad_())).square().sum()
        loss.backward()
        return loss.detach()

    return Program(step, batches(), watch=[*first.parameters(), *second.parameters(), order])


settings = types.ModuleType("settings")


@differential(hits=0, reasons=["hook"])
def test_hooks_share_a_variable_of_a_module():
    settings.factor = 1.0
    layer = nn.Linear(4, 3)

    def change(module, given, made):
        settings.factor = settings.factor * 0.5 + 0.3

    layer.register_full_backward_hook(change)
    layer.weight.register_hook(lambda gradient: gradient * settings.factor)

    def step(x):
        layer.zero_grad()
        loss = layer(x.requires_grad_()).square().sum()
        loss.backward()
        return loss.detach()

    return Program(step, batches(), watch=[*layer.parameters()])
