"""Leaves that a run makes and gives, as each iteration of a script's loop leaves them in its variables."""

from differential import Program, differential

import torch
from torch import nn


def inputs(count=8):
    return [(torch.randn(3, 2),) for _ in range(count)]


@differential(hits=5)
def test_result_that_is_a_leaf():
    def step(x):
        leaf = (x * 2).requires_grad_()
        return leaf, leaf.detach() + 1

    return Program(step, inputs())


@differential(hits=5)
def test_view_of_a_parameter():
    weight = torch.randn(3, 2)

    def step(x):
        leaf = weight.detach().requires_grad_()
        (slope,) = torch.autograd.grad((leaf * x).sin().sum(), leaf)
        weight.sub_(slope, alpha=0.1)
        return leaf, slope

    return Program(step, inputs(), watch=[weight])


@differential(hits=5)
def test_what_was_freed_depends_on_it():
    def step(x):
        leaf = x.clone().requires_grad_()
        loss = leaf.square().sum()
        (slope,) = torch.autograd.grad(loss, leaf)
        return leaf, loss, slope

    return Program(step, inputs())


@differential(hits=5)
def test_leaf_that_an_object_holds():
    class Sampler:
        def __init__(self):
            self.place = torch.zeros(3, 2, requires_grad=True)

        def step(self, x):
            (slope,) = torch.autograd.grad((self.place - x).square().sum(), self.place)
            self.place = (self.place - 0.1 * slope).detach().requires_grad_()
            return slope

    sampler = Sampler()
    return Program(sampler.step, inputs(), watch=[sampler])


@differential(hits=5)
def test_result_of_another_leaf():
    net = nn.Linear(2, 2)

    def step(x):
        leaf = x.clone().requires_grad_()
        net.zero_grad()
        net(x).sum().backward()
        return leaf, net(x).sum()

    return Program(step, inputs(), watch=[net])


@differential(hits=5)
def test_on_one_side_of_a_branch():
    def step(x):
        leaf = x * 1.5
        if x.sum() > 0:
            leaf = (x * 2).requires_grad_()
        else:
            leaf = (x * 3).requires_grad_()
        return leaf

    return Program(step, inputs(16))


@differential(reasons=["autograd"])
def test_gradient_that_is_due_to_it():
    def step(x):
        leaf = x.clone().requires_grad_()
        return leaf, leaf.square().sum()

    return Program(step, inputs())


@differential(hits=5)
def test_gradient_that_it_has():
    def step(x):
        leaf = x.clone().requires_grad_()
        leaf.square().sum().backward()
        return leaf, leaf.grad, leaf.grad[0]

    return Program(step, inputs())


@differential(hits=5)
def test_adversarial_example():
    net, state = nn.Linear(2, 2), {}

    def step(x):
        changed = x.clone().detach().requires_grad_()
        for _ in range(3):
            changed.grad = None
            loss = net(changed).square().sum()
            loss.backward()
            changed = (changed + 0.1 * changed.grad.sign()).detach().requires_grad_()
        state["changed"], state["loss"] = changed, loss
        return changed

    return Program(step, inputs(), watch=[net, state])


@differential(reasons=["unknown_callable"])
def test_parameter():
    def step(x):
        return x.tanh(), nn.Parameter(x * 2)

    return Program(step, inputs())
