"""Several results of a graph of which one lies on the way of another's gradient: the caller hooks it, keeps
its gradient, or asks for the gradient with respect to it."""

import pytest
from differential import Program, differential

import torch
import torchjanus
from torch import nn


def looked_at(outputs, use, parameters, sizes=(2, 3)):
    """`use` gets what `outputs(x)` gives, which alone is converted; the parameters' gradients count as well."""

    def step_with(function):
        def step(x):
            for parameter in parameters:
                parameter.grad = None
            return use(function(x))

        return step

    def convert(step):
        converted = torchjanus.function(outputs)
        return step_with(converted), converted

    calls = [(torch.randn(*sizes),) for _ in range(8)]
    return Program(step_with(outputs), calls, watch=[parameters], convert=convert)


def last(results):
    results[-1].sum().backward()


def retained(results):
    for result in results:
        result.retain_grad()
    results[-1].square().sum().backward()
    return [result.grad for result in results]


def first_retained(results):
    results[0].retain_grad()
    results[-1].square().sum().backward()
    return results[0].grad


def hooked(results):
    results[1].register_hook(lambda gradient: gradient * 3)
    sum(result.sum() * (i + 1) for i, result in enumerate(results)).backward()


def unhooked(results):
    sum(result.sum() * (i + 1) for i, result in enumerate(results)).backward()


def gradients(results):
    return torch.autograd.grad(results[-1].square().sum(), results[:-1])


def hooked_in_between(results):
    results[-1].sum().backward(retain_graph=True)
    results[0].register_hook(lambda gradient: gradient * 2)
    results[1].sum().backward(retain_graph=True)
    results[-1].sum().backward()


def penalty(results):
    """The gradient with respect to a result is differentiated again, as in WGAN-GP."""
    (gradient,) = torch.autograd.grad(results[-1].square().sum(), results[0], create_graph=True)
    results[1].retain_grad()
    (gradient.square().sum() + results[1].sum()).backward()
    return gradient.detach(), results[1].grad


def penalty_of_the_last(results):
    (gradient,) = torch.autograd.grad(results[-1].square().sum(), results[0], create_graph=True)
    gradient.square().sum().backward()
    return gradient.detach()


USES = [last, retained, first_retained, hooked, unhooked, gradients, hooked_in_between, penalty]


@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
@differential(hits=4, graphs=1)
def test_chain(use):
    layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))

    def outputs(x):
        a = layers[0](x).tanh()
        b = layers[1](a).tanh() + a
        return a, b, layers[2](b).tanh() + a * b

    return looked_at(outputs, use, list(layers.parameters()))


@pytest.mark.parametrize("use", [last, retained, hooked, hooked_in_between])
@differential(hits=4, graphs=1)
def test_states_of_a_recurrent_cell(use):
    cell = nn.LSTMCell(3, 4)

    def outputs(x):
        hidden = memory = torch.zeros(2, 4)
        steps = []
        for row in x:
            hidden, memory = cell(row, (hidden, memory))
            steps.append(hidden)
        return memory, hidden, torch.stack(steps)

    return looked_at(outputs, use, list(cell.parameters()), (5, 2, 3))


@pytest.mark.parametrize("use", [last, retained, gradients])
@differential(hits=3, graphs=2)
def test_branch_behind_a_result(use):
    layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(2))

    def outputs(x):
        a = layers[0](x)
        if a.sum() > 0:
            return a, layers[1](a).tanh()
        return a, a * 2

    return looked_at(outputs, use, list(layers.parameters()))


@pytest.mark.parametrize("use", [last, hooked_in_between, first_retained])
@differential(hits=4, graphs=1)
def test_the_program_detaches_the_result_itself(use):
    layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(2))

    def outputs(x):
        a = layers[0](x)
        b = a * a.detach()
        return a, b, layers[1](b) * a.detach() + a

    return looked_at(outputs, use, list(layers.parameters()))


@differential(hits=4, graphs=1)
def test_dropout_in_front_of_a_result():
    layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(2))

    def outputs(x):
        a = nn.functional.dropout(layers[0](x), 0.5)
        return a, a.exp(), nn.functional.dropout(layers[1](a), 0.5)

    return looked_at(outputs, penalty_of_the_last, list(layers.parameters()))


@differential(hits=4)
def test_hook_behind_a_cut():
    """The segments of a cut step hand their variables on in the same way."""
    weight = torch.randn(3, 3, requires_grad=True)

    def step(x):
        weight.grad = None
        hidden = x @ weight
        loss = (hidden * 2).tanh().sum()
        loss.backward(retain_graph=True)
        hidden.register_hook(lambda gradient: gradient * 10)
        loss.backward()
        return loss.detach()

    return Program(step, [(torch.randn(2, 3),) for _ in range(24)], watch=[weight])
