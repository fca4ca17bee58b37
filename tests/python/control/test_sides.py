"""Pre-existing tensors that one side of a branch writes, against eager: where that side is not taken they
stay as they are, whatever else reads or gives them. And sides with layers in them, whose memory is planned before
they are taken."""

import random

from differential import Program, differential

import torch
from torch import nn


def buffers(count, size=6):
    return [torch.randn(size) for _ in range(count)]


def calls(count=14):
    """Both outcomes of `flag > 0`, in changing order."""
    return [(torch.randn(6), torch.tensor(float((index * 7) % 3 - 1))) for index in range(count)]


@differential()
def test_one_side_updates():
    a, b = buffers(2)

    def step(x, flag):
        if flag > 0:
            b.mul_(0.5).add_(x)
            a.add_(b, alpha=0.1)
        return a.sum()

    return Program(step, calls(), watch=[a, b])


@differential()
def test_each_side_updates_another():
    a, b = buffers(2)

    def step(x, flag):
        if flag > 0:
            a.add_(x)
        else:
            b.mul_(0.9).sub_(x)
        return (a - b).sum()

    return Program(step, calls(), watch=[a, b])


@differential()
def test_old_contents_are_read_behind():
    a, b = buffers(2)

    def step(x, flag):
        old = a + 1
        if flag > 0:
            a.mul_(2).add_(x)
        return old + a, old * b

    return Program(step, calls(), watch=[a, b])


@differential()
def test_contents_change_places():
    a, b = buffers(2)

    def step(x, flag):
        if flag > 0:
            kept = a.clone()
            a.copy_(b)
            b.copy_(kept)
        else:
            a.add_(x)
        return a - b

    return Program(step, calls(), watch=[a, b])


@differential()
def test_one_value_for_two_places():
    a, b = buffers(2)

    def step(x, flag):
        if flag > 0:
            a.mul_(0.5).add_(x)
            result = a
        else:
            result = x
        b.add_(result)
        return b.sum()

    return Program(step, calls(), watch=[a, b])


@differential()
def test_a_side_within_a_side():
    a, b = buffers(2)

    def step(x, flag):
        if flag > -0.5:
            a.add_(x)
            if flag > 0.5:
                b.mul_(a)
        return a, b.sum()

    return Program(step, calls(), watch=[a, b])


@differential()
def test_counts_and_tensors():
    a = torch.randn(6)
    state = {"count": 0}

    def step(x, flag):
        scale = 1.0
        if flag > 0:
            state["count"] += 1
            scale = 0.5
            a.add_(x, alpha=scale)
        a.mul_(0.99)
        return a.sum() * scale, state["count"]

    return Program(step, calls(), watch=[a, state])


@differential()
def test_gradients_of_the_side_that_was_taken():
    first, second = (torch.randn(6, requires_grad=True) for _ in range(2))
    optimizer = torch.optim.SGD([first, second], 0.1, momentum=0.9)

    def step(x, flag):
        if flag > 0:
            y = (x * first).tanh()
        else:
            y = (x + second).sigmoid() * x
        loss = y.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return Program(step, calls(20), watch=[first, second, optimizer])


@differential(hits=13)
def test_a_later_test_fails():
    a, b = buffers(2)

    def step(x, flag, limit):
        if flag > 0:
            a.add_(x)
            b.mul_(a)
        if limit > 0:
            return a.sum()
        raise ValueError("too much")

    given = [(*each, torch.tensor(1.0)) for each in calls(16)]
    given[11:11] = [(torch.randn(6), torch.tensor(1.0), torch.tensor(-1.0))]
    return Program(step, given, watch=[a, b])


def left_out(layers, batches, survives=0.6, optimizer=None):
    """A residual network whose layers are left out at random."""
    optimizer = optimizer or torch.optim.SGD(layers.parameters(), 0.05, momentum=0.9)

    def step(x):
        for layer in layers:
            if random.random() < survives:
                x = x + layer(x)
        loss = x.pow(2).mean() + sum(p.sum() for p in layers[0].parameters()) * 1e-3
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return Program(step, batches, watch=[layers, optimizer])


@differential()
def test_layers_left_out():
    layers = nn.ModuleList(
        nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 6))
        for _ in range(4)
    )
    return left_out(layers, [(torch.randn(5, 6),) for _ in range(24)])


@differential(hits=34)
def test_layers_that_are_hardly_ever_taken():
    layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(5))
    return left_out(layers, [(torch.randn(5, 6),) for _ in range(40)], survives=0.15)


@differential()
def test_layers_that_draw():
    layers = nn.ModuleList(nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.4)) for _ in range(3))
    return left_out(layers, [(torch.randn(5, 6),) for _ in range(20)])


@differential()
def test_convolutions_left_out():
    layers = nn.ModuleList(
        nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()) for _ in range(3)
    )
    return left_out(layers, [(torch.randn(2, 4, 5, 5),) for _ in range(20)])


@differential(hits=15)
def test_batches_of_other_sizes():
    layers = nn.ModuleList(nn.Sequential(nn.Linear(6, 6), nn.Tanh()) for _ in range(3))
    sizes = [4, 4, 4, 4, 7, 4, 7, 7, 5, 4, 7, 5, 1, 4, 2, 7, 5, 4, 7, 4]
    return left_out(layers, [(torch.randn(size, 6),) for size in sizes])


@differential(hits=12)
def test_products_on_both_sides():
    a, b = (torch.randn(6, 6, requires_grad=True) for _ in range(2))

    def step(x, flag):
        if flag > 0:
            y = (x @ a).t().contiguous()
        elif flag < 0:
            y = x @ b @ a
        else:
            y = b.t()[0] + x
        loss = (y * y).sum()
        loss.backward()
        return loss, y

    return Program(step, [(torch.randn(6, 6), flag) for _, flag in calls(18)], watch=[a, b])


@differential(hits=12)
def test_a_side_that_may_raise():
    table = torch.randn(4, 3, requires_grad=True)

    def step(index, flag):
        if flag > 0:
            y = torch.nn.functional.embedding(index, table) @ table.t()
        else:
            y = torch.ones(index.shape[0], 4) @ table @ table.t()
        y.sum().backward()
        return y

    given = [(torch.randint(0, 4, (5,)), flag) for _, flag in calls(16)]
    given[10] = (torch.full((5,), 9), torch.tensor(1.0))
    given[13] = (torch.full((5,), 9), torch.tensor(-1.0))
    return Program(step, given, watch=[table])


@differential()
def test_a_layer_left_out_keeps_its_old_gradient():
    layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(3))

    def step(x, flag):
        y = layers[0](x)
        if flag > 0:
            y = layers[1](y).relu()
        else:
            y = y + layers[2](y.tanh())
        y.mean().backward()
        return y.detach()

    return Program(step, [(torch.randn(4, 6), flag) for _, flag in calls(18)], watch=[layers])


# --- what one side gives lies in fewer places than it has elements -----------------------------------


@differential(graphs=1, hits=9)
def test_gradient_that_one_side_expands():
    """The gradient of a sum is one number, seen from everywhere; the other side has one of its own."""
    weight = torch.randn(6, requires_grad=True)

    def step(x, flag):
        weight.grad = None
        y = (x * weight).tanh()
        if flag > 0:
            y = y * weight.sum()
        y.sum().backward()
        return weight.grad.clone()

    return Program(step, calls(), watch=[weight])


@differential(graphs=1, hits=9)
def test_second_gradient_that_one_side_expands():
    weight = torch.randn(6, requires_grad=True)

    def step(x, flag):
        weight.grad = None
        y = (x * weight).tanh()
        if flag > 0:
            y = y * weight.sum()
        (first,) = torch.autograd.grad(y.sum(), weight, create_graph=True)
        (first.square().sum() + y.sum()).backward()
        return weight.grad.clone(), first.detach()

    return Program(step, calls(), watch=[weight])


@differential(hits=8)
def test_each_side_expands():
    rows = torch.randn(3, 6)

    def step(x, flag):
        if flag > 0:
            y = x.mean().expand(6)
        else:
            y = (x[:1] * 2).expand(6)
        if flag < 0:
            z = x.sum().expand(3, 6)
        else:
            z = (x * 2).expand(3, 6)
        return (rows * y + z).sum(0)

    return Program(step, calls())
