"""Parameters that a gradient comes to in some iterations of a loop only, and loops that are left early: eager leaves
None as the `.grad` of what no iteration has used, and the optimizer passes it over."""

import pytest
from differential import Program, differential

import torch
from torch import nn


def calls(count=30):
    """A tensor, and two numbers of iterations that vary."""
    return [(torch.randn(6, 4), 2 + (i * 7) % 4, 1 + (i * 5) % 3) for i in range(count)]


def trained(loss_of, calls_of=calls, make=torch.optim.SGD, **options):
    """A step of a model of two layers, `a` and `b`, of which `b` is used in some iterations."""
    model = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.Linear(4, 4)})
    optimizer = make(model.parameters(), lr=0.01, **options)

    def step(*arguments):
        optimizer.zero_grad()
        loss = loss_of(model, *arguments)
        loss.backward()
        missing = model["b"].weight.grad is None
        optimizer.step()
        return loss.item(), missing

    return Program(step, calls_of(), watch=[model, optimizer])


def used_in_some_iterations(model, x, n, m):
    h = x[0]
    for t in range(n):
        h = torch.tanh(model["a"](h) + x[t])
        if x[t, 0] > 0.9:
            h = h + model["b"](h)
    return h.sum()


def used_before_it_is_left(model, x, n, m):
    h = model["a"](x[0])
    for t in range(n):
        if x[t, 1] > 0.3:
            break
        h = torch.tanh(model["b"](h) + x[t])
    return h.sum()


def used_where_it_is_not_left(model, x, n, m):
    h = model["a"](x[0])
    for t in range(n):
        h = torch.tanh(model["a"](h) + x[t])
        if x[t, 1] > 0.5:
            break
    else:
        h = h + model["b"](h)
    return h.sum()


def returned_from_two_loops(model, x, n, m):
    h = x[0]
    for t in range(n):
        for k in range(m + 1):
            h = torch.tanh(model["a"](h) + x[t])
            if h.sum() > 1.0:
                return h.sum() * (k + 1)
        if h.max() < 0.2:
            return model["b"](h).sum()
    return h.mean()


def handed_from_one_to_the_other(model, x, n, m):
    """What is reached goes from one value to another in each iteration."""
    first, second, third = x[0], x[1], model["a"](x[2])
    for t in range(n):
        if x[t, 0] > 0:
            first = first + model["b"](x[t])
        first, second, third = torch.tanh(third), first * 0.5, second + x[t]
    return second.sum() + third.sum() + model["a"](x[0]).sum()


def detached_in_some_iterations(model, x, n, m):
    h = model["b"](x[0])
    for t in range(n):
        if x[t, 0] > 0.2:
            h = h.detach() + model["a"](x[t])
        h = torch.tanh(h)
    return h.sum() + model["a"](x[0]).sum()


def skipped_iterations(model, x, n, m):
    total = torch.zeros(4)
    for t in range(n):
        y = torch.tanh(model["b"](x[t]))
        if y.sum() < 0.4:
            continue
        total += y
        total[0] += y[1]
    return total.sum() + model["a"](x[0]).sum()


def inner_loop_of_some_iterations(model, x, n, m):
    h = model["a"](x[0])
    for t in range(n):
        if x[t, 2] > 0.5:
            for k in range(m):
                h = torch.tanh(model["b"](h) + x[k])
    return h.sum()


def loops_in_a_row(model, x, n, m):
    h = x[0]
    for t in range(n):
        if x[t, 0] > 0.8:
            h = h + model["b"](x[t])
    g = model["a"](x[1])
    for t in range(m):
        g = torch.tanh(g + h) if x[t, 1] > 0 else g * 0.5
    return g.sum()


def until_the_data_say(model, x, n, m):
    h, k = model["a"](x[0]), 0
    while True:
        k += 1
        if x[k % 6, 0] > 0.7 or k > n:
            break
        h = torch.tanh(model["b"](h) * 1.3 + x[k % 6])
    return h.sum() * k


LOSSES = [
    used_in_some_iterations,
    used_before_it_is_left,
    used_where_it_is_not_left,
    returned_from_two_loops,
    handed_from_one_to_the_other,
    detached_in_some_iterations,
    skipped_iterations,
    inner_loop_of_some_iterations,
    loops_in_a_row,
    until_the_data_say,
]


@pytest.mark.parametrize("loss", LOSSES)
@differential(hits=20, graphs=4)
def test_some_iterations_use_a_parameter(loss):
    return trained(loss)


@pytest.mark.parametrize("loss", LOSSES[:5])
@differential(hits=12)
def test_with_states_of_the_optimizer(loss):
    return trained(loss, lambda: calls(45), torch.optim.Adam, weight_decay=0.1)


@differential(hits=10)
def test_nothing_to_do_without_an_iteration_that_counts():
    """backward() raises where no iteration made anything that requires a gradient."""

    def loss(model, x, n, m):
        total = x.sum() * 0
        for t in range(n):
            if x[t, 0] > 0.3:
                total = total + model["b"](x[t]).sum()
        return total

    return trained(loss, lambda: calls(40))


@differential(hits=8)
def test_asked_for_in_an_iteration():
    """Whether the sum so far requires a gradient depends on all iterations before."""
    layer = nn.Linear(4, 4)

    def step(x, n, m):
        total, seen = x.sum(0), 0
        for t in range(n):
            total = total + (layer(x[t]) if x[t, 0] > 0.5 else x[t])
            if total.requires_grad:
                seen += 1
        loss = total.sum() + layer(x[0]).sum()
        layer.zero_grad()
        loss.backward()
        return seen, loss.item()

    return Program(step, calls(), watch=[layer])


@differential(hits=8)
def test_asked_for_behind_the_loop():
    layer = nn.Linear(4, 4)

    def step(x, n, m):
        total = x.sum(0)
        for t in range(n):
            total = total + (layer(x[t]) if x[t, 0] > 0.9 else x[t])
        seen = total.requires_grad
        loss = total.sum() + layer(x[0]).sum()
        layer.zero_grad()
        loss.backward()
        return seen, loss.item()

    return Program(step, calls(), watch=[layer])


@differential(hits=20, graphs=2)
def test_gradients_of_many_layers():
    """Those that are used in the same iterations share what tells whether they are."""
    layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(4))
    optimizer = torch.optim.SGD(layers.parameters(), 0.01, momentum=0.9)

    def step(x, n, m):
        h = x[0]
        for t in range(n):
            for k, layer in enumerate(layers):
                if x[t, k] > 0.4:
                    h = torch.tanh(h + layer(h))
        loss = (h + layers[0](x[1])).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return Program(step, calls(40), watch=[layers])


@differential(hits=20, graphs=2)
def test_a_range_from_its_end():
    def step(x, n, m):
        h = torch.zeros(4)
        for t in reversed(range(n)):
            h = torch.tanh(x[t] + h) * (t + 1)
        for t in reversed(range(m, n + 2, 2)):
            h = h + x[t % 6] * t
        return h, [t for t in reversed(range(n))]

    return Program(step, calls())


@differential(hits=5)
def test_a_range_from_its_end_that_is_known():
    def step(x):
        h = torch.zeros(4)
        for t in reversed(range(len(x))):
            h = torch.tanh(x[t] + h) * (t + 1)
        return h

    return Program(step, [(x,) for x, _, _ in calls(10)])


def added_up(h, n):
    c = h
    for _ in range(n):
        c = c + h
    return c


def through_tanh(h, n):
    c = h
    for _ in range(n):
        c = c.tanh()
    return c


def nested(h, n):
    c = h
    if h[0, 0] > 0:
        for _ in range(n):
            c = c * 2
    return c


def chosen(h, n):
    return h if h[0, 0] > 0 else h * 2


def gradients_of(made, loss):
    weight = torch.ones(3, 3, requires_grad=True)

    def step(x, n):
        h = weight * x
        c = made(h, n)
        return torch.autograd.grad(loss(h, c), [h, c], allow_unused=True)

    return Program(step, [(torch.randn(3, 3), i % 3) for i in range(24)])


def of_the_other(h, c):
    return h.square().sum()


def of_both(h, c):
    return h.square().sum() + (c * 3).sum()


def of_the_result(h, c):
    return (c * 3).sum()


@pytest.mark.parametrize("loss", [of_the_other, of_both, of_the_result], ids=lambda f: f.__name__)
@pytest.mark.parametrize("made", [added_up, through_tanh, nested, chosen], ids=lambda f: f.__name__)
def test_a_tensor_that_is_another_one_in_some_runs(made, loss):
    """What comes to the one is the gradient of both."""

    @differential(hits=5)
    def test():
        return gradients_of(made, loss)

    test()
