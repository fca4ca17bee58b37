"""Hooks around step() of optimizers, of one or of all of them, are called as often as in eager."""

import pytest
import torch.nn.functional as F
from differential import Program, differential
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

import torch
from torch import nn

REGISTER = {
    "all, before": lambda optimizer: register_optimizer_step_pre_hook,
    "all, behind": lambda optimizer: register_optimizer_step_post_hook,
    "one, before": lambda optimizer: optimizer.register_step_pre_hook,
    "one, behind": lambda optimizer: optimizer.register_step_post_hook,
}


class Training:
    """A step, and hooks that change what it does."""

    def __init__(self):
        self.calls, self.seen = 0, []
        self.net = nn.Linear(5, 3)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1, momentum=0.9)

    def halve(self, optimizer, args, kwargs):
        self.calls += 1
        with torch.no_grad():
            for each in self.net.parameters():
                each.grad.mul_(0.5)

    def look(self, optimizer, args, kwargs):
        """NumPy can't be in a graph."""
        self.seen.append(float(self.net.weight.grad.numpy().sum()))

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = F.mse_loss(self.net(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def program(self, register, hook, after):
        """The hook is registered after so many calls, and removed before the last ones."""
        calls = [(torch.randn(4, 5), torch.randn(4, 3)) for _ in range(after + 14)]
        handles = []
        calls.insert(len(calls) - 5, lambda: handles.pop().remove())
        calls.insert(after, lambda: handles.append(REGISTER[register](self.optimizer)(hook)))
        return Program(self.step, calls, watch=[self.net, self.optimizer.state, self.seen])


@pytest.mark.parametrize("register", REGISTER)
@differential(hits=5)
def test_hook_that_computes(register):
    training = Training()
    program = training.program(register, training.halve, after=0)
    program.watch.append(training)
    return program


@pytest.mark.parametrize("register", REGISTER)
@differential(hits=5)
def test_hook_that_computes_is_registered_late(register):
    training = Training()
    return training.program(register, training.halve, after=6)


@pytest.mark.parametrize("register", REGISTER)
@differential(reasons=["unknown_callable"], hits=5)
def test_hook_that_looks(register):
    training = Training()
    return training.program(register, training.look, after=6)
