"""Assignments to the attribute `data` of tensors: other memory, the same tensor."""

import copy

from differential import Program, differential

import torch
from torch import nn


def layers(count=2):
    return [nn.Linear(3, 3) for _ in range(count)]


def inputs(count=10):
    return [(torch.randn(2, 3),) for _ in range(count)]


@differential(hits=6, graphs=1)
def test_moving_average():
    net, mean = layers()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)

    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().mean() + mean(x).detach().mean()
        loss.backward()
        optimizer.step()
        for current, average in zip(net.parameters(), mean.parameters(), strict=True):
            average.data = average.data * 0.9 + current.data * 0.1
        return loss, mean(x).detach()

    return Program(step, inputs(), watch=[net, mean])


@differential(hits=6, graphs=1)
def test_views_of_before_are_variables_still():
    net, mean = layers()

    def average(old, new):
        return new if old is None else old * 0.9 + 0.1 * new

    def step(x):
        for current, smooth in zip(net.parameters(), mean.parameters(), strict=True):
            old, new = smooth.data, current.data
            smooth.data = average(old, new)
        return mean(x).detach() + old.sum()

    return Program(step, inputs(), watch=[net, mean])


@differential(hits=6, graphs=1)
def test_update_of_ones_own():
    (net,) = layers(1)

    def step(x):
        net.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        for parameter in net.parameters():
            parameter.data = parameter.data - 0.1 * parameter.grad
        return loss

    return Program(step, inputs(), watch=[net])


@differential(hits=6, graphs=1)
def test_sharpness_aware_update():
    """The parameter goes back onto the copy that the optimizer's state holds."""
    (net,) = layers(1)
    state = {parameter: {} for parameter in net.parameters()}
    base = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)

    def loss_of(x):
        loss = net(x).square().mean()
        loss.backward()
        return loss

    def step(x):
        loss = loss_of(x)
        with torch.no_grad():
            for p in net.parameters():
                state[p]["old"] = p.data.clone()
                p.add_(p.grad, alpha=0.05)
        net.zero_grad()
        loss_of(x)
        with torch.no_grad():
            for p in net.parameters():
                p.data = state[p]["old"]
        base.step()
        net.zero_grad()
        return loss

    return Program(step, inputs(), watch=[net, state, base])


@differential(hits=5)
def test_memory_that_somebody_else_has():
    """What an earlier state_dict holds must not change."""
    (net,) = layers(1)
    kept = []

    def step(x):
        net.weight.data = net.weight.data * 0.9
        return net(x).detach()

    calls = inputs(16)
    calls[8:8] = [lambda: kept.append(net.state_dict())]
    return Program(step, calls, watch=[net, kept])


@differential(hits=5)
def test_memory_that_was_written_before():
    """Who has the memory that the weight leaves sees what was written there."""
    (net,) = layers(1)
    kept = [net.weight.data]

    def step(x):
        net.weight.data.mul_(1.5)
        with torch.no_grad():
            net.weight.add_(1)
        net.weight.data = net.weight.data * 0.5
        with torch.no_grad():
            net.weight.sub_(0.5)
        return net(x).detach()

    calls = inputs(12)
    calls[6:6] = [lambda: kept.append(net.weight.data)]
    return Program(step, calls, watch=[net, kept])


@differential(hits=5)
def test_tensor_that_is_handed_out_as_well():
    """The two share memory from then on, also in what is written later."""
    (net,) = layers(1)

    def step(x):
        new = net.weight.data * 0.9
        net.weight.data = new
        with torch.no_grad():
            net.weight += 1
        new.mul_(1.1)
        return new, new[0], net(x).detach()

    return Program(step, inputs(), watch=[net])


@differential(hits=5)
def test_twice():
    (net,) = layers(1)

    def step(x):
        first = net.weight.data * 0.9
        net.weight.data = first
        net.weight.data.add_(1)
        net.weight.data = net.weight.data - 0.8
        first.mul_(2)
        return first, net(x).detach()

    return Program(step, inputs(), watch=[net])


@differential(hits=5)
def test_tensors_made_in_the_run():
    def step(x):
        a, b = x * 2, x + 1
        a.data = b
        b.add_(1)
        return a, b

    return Program(step, inputs())


@differential(hits=5)
def test_constants():
    (net,) = layers(1)

    def step(x):
        net.bias.data = torch.tensor([1.0, 2.0, 3.0])
        net.weight.data = net.weight.data.clone()
        with torch.no_grad():
            net.bias += 1
        return net(x).detach()

    return Program(step, inputs(), watch=[net])


@differential(hits=6, graphs=2)
def test_in_a_branch():
    net, mean = layers()

    def step(x):
        if x.sum() > 0:
            mean.weight.data = mean.weight.data * 0.5 + net.weight.data
        return mean(x).sum().detach()

    return Program(step, inputs(16), watch=[mean])


@differential(hits=6)
def test_every_other_call():
    net, mean = layers()

    class Trainer:
        def __init__(self):
            self.calls = 0

        def step(self, x):
            self.calls += 1
            if self.calls % 3 == 0:
                for a, b in zip(mean.parameters(), net.parameters(), strict=True):
                    a.data = a.data * 0.5 + b.data
            return mean(x).sum().detach()

    trainer = Trainer()
    return Program(trainer.step, inputs(20), watch=[mean, trainer])


@differential(hits=6)
def test_gradient_behind():
    (net,) = layers(1)

    def step(x):
        net.zero_grad()
        net.weight.data = net.weight.data * 0.5 + 1
        loss = net(x).square().sum()
        loss.backward()
        return loss

    return Program(step, inputs(), watch=[net])


@differential(hits=6)
def test_network_copied_in_between():
    net = nn.Linear(3, 3)
    holder = [net]

    def step(x):
        holder[0].weight.data = holder[0].weight.data * 0.9
        return holder[0](x).detach()

    calls = inputs(16)
    calls[8:8] = [lambda: holder.__setitem__(0, copy.deepcopy(holder[0]))]
    return Program(step, calls, watch=[holder])


@differential(reasons=["heap_write"])
def test_memory_of_another_tensor():
    one, other = layers()

    def step(x):
        one.weight.data = other.weight.data
        return one(x)

    return Program(step, inputs(8), watch=[one, other])


@differential(reasons=["heap_write"])
def test_another_size():
    weight = torch.ones(3)

    def step(x):
        weight.data = torch.cat((weight.data, x[0]))
        return weight.sum()

    return Program(step, inputs(8), watch=[weight])


@differential(reasons=["heap_write"])
def test_another_order_in_memory():
    (net,) = layers(1)

    def step(x):
        net.weight.data = (net.weight.data * 0.9).t()
        return net(x)

    return Program(step, inputs(8), watch=[net])


@differential(reasons=["unsupported_tensor"])
def test_view_of_the_memory_of_before_is_shown():
    (net,) = layers(1)

    def step(x):
        before = net.weight.data
        net.weight.data = before * 0.9
        return before, net(x).detach()

    return Program(step, inputs(8), watch=[net])


@differential(reasons=["autograd"])
def test_data_that_becomes_a_gradient():
    (net,) = layers(1)

    def step(x):
        new = net.weight.data * 0.9
        net.weight.grad = new
        net.weight.data = new
        return net(x).detach()

    return Program(step, inputs(8), watch=[net])


@differential(reasons=["autograd"])
def test_gradient_of_what_was_computed_before():
    """Autograd keeps the leaf, not what it held."""
    weight, x = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)

    def step(y):
        weight.grad = x.grad = None
        loss = (weight * x * y[0]).sum()
        weight.data = weight.data * 0.9
        loss.backward()
        return loss

    return Program(step, inputs(8), watch=[weight, x])
