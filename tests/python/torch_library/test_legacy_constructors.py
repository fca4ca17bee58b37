"""Tensors by legacy constructors: `Variable`, `x.new()`, `torch.FloatTensor`; what shares memory with what."""

import pytest
from differential import Program, differential
from torch.autograd import Variable

import torch
from torch import nn


def batches(count=8):
    return [(torch.randn(4, 3),) for _ in range(count)]


MADE = {
    "new of sizes": lambda x: x.new(4, 3).fill_(2.0) * x,
    "new of a size": lambda x: x.new(x.size()).zero_() + x,
    "new of data": lambda x: x.new([1.0, 2.0, 3.0]) * x,
    "new of nothing": lambda x: x.new().sum() + x.sum(),
    "new_tensor": lambda x: x.new_tensor([1.0, 2.0, 3.0]) * x,
    "Tensor of data": lambda x: torch.Tensor([1.0, 2, 3]) * x,
    "Tensor of rows": lambda x: torch.Tensor([[1, 2, 3], [4, 5, 6]])[1] * x,
    "Tensor of sizes": lambda x: torch.Tensor(4, 3).fill_(2) * x,
    "FloatTensor": lambda x: torch.FloatTensor([1, 2, 3]) * x,
    "DoubleTensor": lambda x: torch.DoubleTensor([1, 2, 3]) * x,
    "LongTensor": lambda x: x[torch.LongTensor([1, 2, 3])],
    "ByteTensor": lambda x: torch.ByteTensor([1, 2, 3]) * x,
    "FloatTensor of sizes": lambda x: torch.FloatTensor(4, 3).zero_() + x,
    "DoubleTensor of a tensor": lambda x: torch.DoubleTensor(x) * 2,
    "new of a tensor": lambda x: x.new(x * 2),
    "Variable": lambda x: Variable(x) * 2,
    "Variable itself": lambda x: Variable(x),
    "Variable of what is made": lambda x: Variable(torch.ones(3)) * x,
    "type name": lambda x: x * (2 if x.type() == "torch.DoubleTensor" else 3),
    "type by name": lambda x: (x * 2).type("torch.FloatTensor"),
    "type by class": lambda x: (x > 0).type(torch.FloatTensor) * 3,
    "type by another's": lambda x: (x > 0).type(x.type()) * 3,
    "type that it is": lambda x: x.type("torch.DoubleTensor") * 2,
}


@pytest.mark.parametrize("name", sorted(MADE))
@differential(hits=5, graphs=1)
def test_legacy_call(name):
    return Program(MADE[name], batches())


@differential(hits=5, graphs=1)
def test_variable_that_requires_a_gradient():
    def step(x):
        v = Variable(x * 1, requires_grad=True)
        (v * v).sum().backward()
        return v.grad

    return Program(step, batches())


@differential(hits=5, graphs=1)
def test_variable_shares_memory():
    def step(x):
        y = x * 2
        v = Variable(y)
        v.add_(1)
        return y, v

    return Program(step, batches())


ALIASES = {
    "Tensor": torch.Tensor,
    "DoubleTensor": torch.DoubleTensor,
    "new": lambda t: torch.ones(1).new(t),
}


@pytest.mark.parametrize("name", sorted(ALIASES))
@differential(hits=5, graphs=1)
def test_gradient_through_an_alias(name):
    w = torch.randn(3, requires_grad=True)

    def step(x):
        y = w * x
        alias = ALIASES[name](y)
        (alias * alias).sum().backward()
        return alias, y

    return Program(step, batches(), watch=[w])


@pytest.mark.parametrize("name", sorted(ALIASES))
@differential(hits=5, graphs=1)
def test_write_to_an_alias(name):
    w = torch.randn(3, requires_grad=True)

    def step(x):
        y = w * x
        ALIASES[name](y).mul_(w)
        y.sum().backward()
        return y

    return Program(step, batches(), watch=[w])


@pytest.mark.parametrize("name", sorted(ALIASES))
@differential(hits=5, graphs=1)
def test_alias_of_an_argument(name):
    def step(x):
        alias = ALIASES[name](x)
        alias.add_(1)
        return alias, alias.requires_grad

    return Program(step, batches())


@pytest.mark.parametrize("name", sorted(ALIASES))
@differential(hits=5, graphs=1)
def test_alias_of_a_parameter(name):
    weight = nn.Parameter(torch.randn(3))

    def step(x):
        alias = ALIASES[name](weight)
        (alias * x).sum().backward()
        return alias * 1

    return Program(step, batches(), watch=[weight])


@pytest.mark.parametrize("name", sorted(ALIASES))
@differential()
def test_alias_without_gradients(name):
    weight = nn.Parameter(torch.randn(3))

    def step(x):
        with torch.no_grad():
            of_leaf, of_result = ALIASES[name](weight), ALIASES[name](weight * x)
        return of_leaf.requires_grad, of_result.requires_grad, of_result * x

    return Program(step, batches(), watch=[weight])
