"""Hooks that parameters and other leaves have had since before the step."""

import pytest
from differential import Program, differential

import torch
import torchjanus
from torch import nn


def network():
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))


def batches(count):
    return [(torch.randn(5, 4),) for _ in range(count)]


def training(model, optimizer):
    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    return step


@differential(hits=5, graphs=1)
def test_gradients_are_clamped():
    model = network()
    for p in model.parameters():
        p.register_hook(lambda g: torch.clamp(g, -0.5, 0.5))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    return Program(training(model, optimizer), batches(8), watch=[model, optimizer])


@differential(hits=5, graphs=1)
def test_rows_are_frozen():
    embedding, head = nn.Embedding(7, 4), nn.Linear(4, 2)
    mask = torch.ones(7, 1)
    mask[:3] = 0
    embedding.weight.register_hook(lambda g: g * mask)
    optimizer = torch.optim.SGD([*embedding.parameters(), *head.parameters()], 0.1)

    def step(words):
        optimizer.zero_grad()
        loss = head(embedding(words).mean(1)).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    calls = [(torch.randint(7, (5, 3)),) for _ in range(8)]
    return Program(step, calls, watch=[embedding, head, optimizer])


@differential(hits=5)
def test_two_hooks_one_of_which_gives_nothing():
    w = torch.ones(3, requires_grad=True)
    seen = []
    w.register_hook(lambda g: seen.append(g.sum().item()))
    w.register_hook(lambda g: g * 2)

    def step(x):
        w.grad = None
        (w * x).sum().backward()
        return w.grad.clone()

    return Program(step, [(torch.randn(3),) for _ in range(8)], watch=[w, seen])


@differential(hits=5)
def test_used_twice_and_accumulated():
    w = torch.ones(3, requires_grad=True)
    w.register_hook(lambda g: g.sign())

    def step(x):
        y = (w * x).sum() + (w * w * x).sum()
        y.backward(retain_graph=True)
        first = w.grad.clone()
        y.backward()
        return first, w.grad.clone()

    return Program(step, [(torch.randn(3),) for _ in range(8)], watch=[w])


@differential(hits=5)
def test_hook_in_autograd_grad():
    w, v = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    w.register_hook(lambda g: g * 3)
    v.register_hook(lambda g: g + 1)

    def step(x):
        return torch.autograd.grad((w * v * x).sum(), [w, v])

    return Program(step, [(torch.randn(3),) for _ in range(8)], watch=[w, v])


@differential(hits=5)
def test_after_the_accumulation():
    model = network()

    def clamp(p):
        p.grad.clamp_(-0.5, 0.5)

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(clamp)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    return Program(training(model, optimizer), batches(8), watch=[model, optimizer])


@differential(hits=5)
def test_after_the_accumulation_a_new_gradient():
    w = torch.ones(3, requires_grad=True)
    count = [0]

    def after(p):
        count[0] += 1
        p.grad = p.grad * 0.5 if count[0] < 5 else p.grad * 0.25

    w.register_post_accumulate_grad_hook(after)

    def step(x):
        (w * x).sum().backward()
        return w.grad.clone()

    return Program(step, [(torch.randn(3),) for _ in range(9)], watch=[w, count])


@differential(hits=5)
def test_gradient_due_outside():
    w = torch.ones(3, requires_grad=True)
    seen = []
    w.register_hook(lambda g: seen.append(g.clone()))

    def loss_of(x):
        return (w * w * x).sum()

    def outer(loss_of, x):
        loss = loss_of(x)
        loss.backward()
        return loss.detach()

    converted = torchjanus.function(loss_of)
    return Program(
        lambda x: outer(loss_of, x),
        [(torch.randn(3),) for _ in range(8)],
        watch=[w, seen],
        convert=lambda _: (lambda x: outer(converted, x), converted),
    )


@differential(hits=5)
def test_hooks_come_and_go():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    handles = []
    factor = [2.0]

    def register():
        handles.append(model[0].weight.register_hook(lambda g: g * factor[0]))

    def remove():
        handles.pop(0).remove()

    def change():
        factor[0] = 3.0

    calls = [*batches(5), register, *batches(5), register, *batches(5), change, *batches(2)]
    calls += [remove, *batches(5), remove, *batches(3)]
    return Program(training(model, optimizer), calls, watch=[model, optimizer])


@differential(hits=4)
def test_frozen_leaf_keeps_its_hook():
    w, v = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    w.register_hook(lambda g: g * 2)
    w.requires_grad_(False)

    def step(x):
        v.grad = None
        (w * v * x).sum().backward()
        return v.grad.clone()

    def thaw():
        w.requires_grad_(True)

    calls = [(torch.randn(3),) for _ in range(6)]
    return Program(step, [*calls, thaw, *calls], watch=[w, v])


@differential(reasons=["hook"])
def test_order_of_several_hooks():
    model = network()
    order = []
    for name, p in model.named_parameters():
        p.register_hook(lambda g, name=name: order.append(name))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    return Program(training(model, optimizer), batches(6), watch=[model, order])


@differential(reasons=["hook"])
def test_hooks_that_draw():
    w, v = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    for p in (w, v):
        p.register_hook(lambda g: g + torch.randn_like(g))

    def step(x):
        (w * v * x).sum().backward()

    return Program(step, [(torch.randn(3),) for _ in range(6)], watch=[w, v])


@differential(reasons=["hook"])
def test_hook_that_writes_the_gradient():
    w, v = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)

    def double(g):
        g.mul_(2)

    w.register_hook(double)

    def step(x):
        w.grad = v.grad = None
        (w + v + x).sum().backward()
        return w.grad.clone(), v.grad.clone()

    return Program(step, [(torch.randn(3),) for _ in range(6)], watch=[w, v])


@pytest.mark.parametrize("when", ["register_hook", "register_post_accumulate_grad_hook"])
@differential(reasons=["hook"])
def test_gradient_of_another_leaf(when):
    w, v = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    seen = []

    def look(_):
        seen.append(None if w.grad is None else w.grad.sum().item())

    getattr(v, when)(look)

    def step(x):
        w.grad = v.grad = None
        (w * v * x).sum().backward()

    return Program(step, [(torch.randn(3),) for _ in range(6)], watch=[w, v, seen])


@differential(reasons=["hook"])
def test_parameter_written_in_a_hook():
    w, v = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)

    def update(p):
        p.data.sub_(p.grad, alpha=0.1)
        p.grad = None

    for p in (w, v):
        p.register_post_accumulate_grad_hook(update)

    def step(x):
        (w * v * x).sum().backward()

    return Program(step, [(torch.randn(3),) for _ in range(6)], watch=[w, v])


@differential(hits=3)
def test_hook_that_fails():
    w = torch.ones(3, requires_grad=True)
    limit = [1e9]

    def check(g):
        if g.sum().item() > limit[0]:
            raise ValueError("too large")
        return g * 2

    w.register_hook(check)

    def step(x):
        w.grad = None
        (w * x).sum().backward()
        return w.grad.clone()

    def lower():
        limit[0] = 0.0

    calls = [(torch.rand(3),) for _ in range(7)]
    return Program(step, [*calls, lower, *calls[:3]], watch=[w])
