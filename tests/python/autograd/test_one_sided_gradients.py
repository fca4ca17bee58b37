"""Tensors that require a gradient on one side of a branch only, against eager: blocks that are skipped, experts that
the data choose, heads that are frozen. What the program sees of it (`requires_grad`, `grad_fn`, the error of a
`backward()` that has nothing to do, `.grad` that stays None) is as in eager."""

import copy
import random

import pytest
from differential import Program, differential

import torch
from torch import nn


def batches(count=24, rows=5, size=4):
    return [(torch.randn(rows, size),) for _ in range(count)]


def signed(count=24, size=4):
    """Both outcomes of `x.sum() > 0`, in changing order."""
    signs = [1.0 if (index * 7) % 5 in (0, 3) else -1.0 for index in range(count)]
    return [(torch.rand(size) * sign,) for sign in signs]


def layer(size=4):
    return nn.Linear(size, size)


def learn_from(loss, *modules):
    for module in modules:
        module.zero_grad()
    loss.backward()


@differential(hits=16, graphs=2)
def test_stochastic_depth_without_a_stem():
    blocks = nn.ModuleList(layer() for _ in range(4))
    head = layer()
    optimizer = torch.optim.SGD([*blocks.parameters(), *head.parameters()], 0.1)

    def step(x):
        h = x
        for block in blocks:
            if random.random() < 0.5:
                h = h + torch.relu(block(h))
        loss = head(h).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item(), [p.grad is None for p in blocks.parameters()]

    return Program(step, batches(), watch=[blocks, head])


@differential(hits=12)
def test_all_blocks_may_be_skipped():
    blocks = nn.ModuleList(layer() for _ in range(2))
    optimizer = torch.optim.SGD(blocks.parameters(), 0.1)

    def step(x):
        h = x
        for block in blocks:
            if random.random() < 0.5:
                h = h + block(h)
        loss = h.square().mean()
        optimizer.zero_grad()
        if loss.requires_grad:
            loss.backward()
        optimizer.step()
        return loss.item()

    return Program(step, batches(30), watch=[blocks])


@differential(hits=8)
def test_backward_raises_where_nothing_requires_a_gradient():
    block = layer()

    def step(x):
        h = block(x) if x.sum() > 0 else x
        loss = (h * 2).square().mean()
        block.zero_grad()
        loss.backward()
        return loss.item()

    return Program(step, signed(), watch=[block])


@differential(hits=16, graphs=3)
def test_experts():
    experts = nn.ModuleList(layer() for _ in range(3))
    gate = layer()
    optimizer = torch.optim.SGD([*experts.parameters(), *gate.parameters()], 0.1, momentum=0.9)

    def step(x):
        scores = gate(x).mean(0).softmax(0)
        out = torch.zeros_like(x)
        for index, expert in enumerate(experts):
            if scores[index] > 0.25:
                out = out + expert(x) * scores[index]
        loss = (out - x).square().mean() + scores.square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return Program(step, batches(30), watch=[experts, gate])


@differential(hits=16)
def test_experts_without_a_gate_that_learns():
    first, second = layer(), layer()

    def step(x):
        if x.sum() > 0:
            y = first(x)
        elif x[0] < -0.5:
            y = second(x)
        else:
            y = x
        for module in (first, second):
            module.zero_grad()
        loss = y.square().sum()
        if loss.requires_grad:
            loss.backward()
        return loss.item(), first.weight.grad is None, second.weight.grad is None

    return Program(step, signed(30), watch=[first, second])


@differential(hits=16)
def test_flags_are_seen():
    block = layer()

    def step(x):
        h = block(x) if x.sum() > 0 else x * 2
        g = torch.tanh(h)
        return h.requires_grad, g.requires_grad, (g > 0).requires_grad, g.detach().requires_grad

    return Program(step, signed(), watch=[block])


@differential(hits=16)
def test_flags_of_two_branches():
    first, second = layer(), layer()

    def step(x):
        a = first(x) if x.sum() > 0 else x
        b = x.exp() if x[0].abs() > 0.5 else second(x)
        return (a + b).requires_grad, a.requires_grad and b.requires_grad, (a * b).sum().item()

    return Program(step, signed(30), watch=[first, second])


@differential(hits=10)
@pytest.mark.parametrize("seen", ["is_leaf", "grad_fn"])
def test_leaf_or_not(seen):
    block = layer()

    def step(x):
        h = block(x) if x.sum() > 0 else x * 2
        is_seen = h.is_leaf if seen == "is_leaf" else x.grad_fn is None
        return is_seen, h.sum().item()

    return Program(step, signed(), watch=[block])


@differential(hits=10)
def test_result_with_a_gradient_in_some_runs():
    block = layer()

    def step(x):
        h = block(x) if x.sum() > 0 else x * 2
        return torch.tanh(h) * 3

    return Program(step, signed(), watch=[block])


@differential(hits=10)
def test_result_is_kept():
    block = layer()
    seen = []

    def step(x):
        h = x.clone()
        if x.sum() > 0:
            h = block(h)
        seen.append(h + 1)
        return len(seen)

    return Program(step, signed(), watch=[block, seen])


@differential(hits=10)
def test_side_without_gradients():
    block, head = layer(), layer()

    def step(x):
        if x.sum() > 0:
            with torch.no_grad():
                h = block(x)
        else:
            h = block(x)
        loss = (head(h.detach()) * h).sum() if x[0] > 0 else h.square().sum() + head(x).sum()
        learn_from(loss, block, head)
        return loss.item(), h.requires_grad, block.weight.grad is None, head.weight.grad is None

    return Program(step, signed(), watch=[block, head])


@differential(hits=10)
def test_side_that_detaches():
    block, head = layer(), layer()

    def step(x):
        h = torch.tanh(block(x))
        if x.sum() > 0:
            h = h.detach()
        loss = head(h).square().sum()
        learn_from(loss, block, head)
        return loss.item(), h.requires_grad, block.weight.grad is None

    return Program(step, signed(), watch=[block, head])


@differential(hits=10)
def test_written_in_place_behind():
    block, scale = layer(), nn.Parameter(torch.randn(4))

    def step(x):
        h = block(x) if x.sum() > 0 else x + 1
        h.add_(1)
        first = h.requires_grad
        h.mul_(scale)
        loss = h.square().sum()
        block.zero_grad()
        scale.grad = None
        loss.backward()
        return first, h.requires_grad, loss.item()

    return Program(step, signed(), watch=[block, scale])


@differential(hits=10)
def test_written_in_place_without_gradients():
    block = layer()

    def step(x):
        h = block(x) if x.sum() > 0 else x + 1
        with torch.no_grad():
            h.clamp_(-0.5, 0.5)
        return h.sum().item(), h.requires_grad

    return Program(step, signed(), watch=[block])


@differential(hits=10)
def test_requires_grad_is_asked_for():
    block = layer()

    def step(x):
        h = block(x) if x.sum() > 0 else x * 2
        if not h.requires_grad:
            h.requires_grad_()
        loss = h.square().sum()
        learn_from(loss, block)
        return loss.item()

    return Program(step, signed(), watch=[block])


@differential(hits=5)
def test_gradient_of_what_may_need_none():
    block = layer()

    def step(x):
        h = block(x) if x.sum() > 0 else x * 2
        (gradient,) = torch.autograd.grad(h.square().sum(), [block.weight], allow_unused=True)
        return gradient

    return Program(step, signed(), watch=[block])


@differential(hits=5)
@pytest.mark.parametrize("how", ["hook", "retain"])
def test_hooked(how):
    block, head = layer(), layer()

    def step(x):
        h = block(x) if x.sum() > 0 else x * 2
        if how == "hook":
            h.register_hook(lambda gradient: gradient * 2)
        else:
            h.retain_grad()
        loss = head(h).square().sum()
        learn_from(loss, block, head)
        return loss.item()

    return Program(step, signed()[1:], watch=[block, head])


class Doubled(torch.autograd.Function):
    needed = []

    @staticmethod
    def forward(ctx, x):
        ctx.factor = 2.0 if ctx.needs_input_grad[0] else 3.0
        return x * ctx.factor

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.factor


@differential(hits=8)
def test_function_of_the_users():
    block, head = layer(), layer()

    def step(x):
        h = block(x) if x.sum() > 0 else x * 2
        loss = head(Doubled.apply(h)).square().sum()
        learn_from(loss, block, head)
        return loss.item()

    return Program(step, signed(), watch=[block, head])


@differential(hits=8)
def test_views_and_copies():
    block = layer()

    def step(x):
        h = block(x) if x.sum() > 0 else x * 2
        row = h[1:3]
        with torch.no_grad():
            part = h[:2]
        return row.requires_grad, part.requires_grad, row.sum().item(), part.sum().item()

    return Program(step, signed(), watch=[block])


@differential(reasons=["would_raise"])
def test_kept_gradient_of_what_has_none():
    def step(x):
        h = x * 2
        h.retain_grad()
        return h

    return Program(step, signed(6))


@differential(hits=13)
def test_deep_copy_raises_where_there_is_a_gradient():
    block = layer()

    def step(x):
        h = block(x) if x.sum() > 0 else x * 2
        try:
            copy.deepcopy(h)
        except RuntimeError:
            return "not a leaf"
        return "copied"

    return Program(step, signed(), watch=[block])


@differential(hits=8)
def test_numpy_raises_where_there_is_a_gradient():
    block = layer()

    def step(x):
        h = block(x) if x.sum() > 0 else x * 2
        h = h + 1
        return h.numpy().sum()

    return Program(step, signed(), watch=[block])


@differential(hits=10)
def test_in_a_loop():
    blocks = nn.ModuleList(layer() for _ in range(2))
    head = layer()

    def step(x, n):
        h = x
        for round in range(n):
            if h.sum() > 0:
                h = blocks[round % 2](h)
            h = h * 0.5
        loss = head(h).square().sum()
        learn_from(loss, blocks, head)
        return loss.item(), h.requires_grad

    calls = [(x, 2 + index % 3) for index, (x,) in enumerate(signed(30))]
    return Program(step, calls, watch=[blocks, head])


@differential(hits=16)
def test_collected_in_a_list():
    block, head = layer(), layer()

    def step(x):
        states = []
        h = x
        for _ in range(3):
            if random.random() < 0.5:
                h = torch.tanh(block(h))
            states.append(h)
        loss = head(torch.stack(states)).square().sum()
        learn_from(loss, block, head)
        return loss.item(), [s.requires_grad for s in states], block.weight.grad is None

    return Program(step, signed(30), watch=[block, head])


@differential(hits=10)
def test_collected_in_a_list_of_the_graph():
    block, head = layer(), layer()

    def step(x, n):
        states = []
        h = x
        for _ in range(n):
            if random.random() < 0.5:
                h = torch.tanh(block(h))
            states.append(h)
        loss = head(torch.stack(states)).square().sum()
        learn_from(loss, block, head)
        return loss.item(), states[-1].requires_grad, block.weight.grad is None

    calls = [(x, 2 + index % 4) for index, (x,) in enumerate(signed(40))]
    return Program(step, calls, watch=[block, head])


@differential(hits=10)
def test_penalty_that_only_some_runs_have():
    block = layer()

    def step(x):
        y = block(x.abs())
        penalty = torch.zeros(())
        if x.sum() > 0:
            penalty = penalty + block.weight.square().sum()
        block.zero_grad()
        (y.sum() + 0.1 * penalty).backward()
        return penalty.item(), penalty.requires_grad

    return Program(step, signed(), watch=[block])


@differential(hits=10)
def test_gradient_penalty():
    block = layer()

    def step(x):
        inner = (x.clone() if x.sum() > 0 else block(x)).square().sum() + block(x).sum()
        (gradient,) = torch.autograd.grad(inner, block.weight, create_graph=True)
        loss = gradient.square().sum() + inner
        learn_from(loss, block)
        return loss.item()

    return Program(step, signed(), watch=[block])


@differential(hits=10)
def test_clipped_and_updated_with_states():
    blocks = nn.ModuleList(layer() for _ in range(3))
    optimizer = torch.optim.Adam(blocks.parameters(), 0.01)

    def step(x):
        h = x
        for index, block in enumerate(blocks):
            if index == 1 or h[0] > 0:
                h = h + torch.tanh(block(h))
        loss = h.square().mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(blocks.parameters(), 0.5)
        optimizer.step()
        return loss.item()

    return Program(step, signed(40), watch=[blocks])


@differential(hits=10)
def test_frozen_by_a_flag():
    body, head = layer(), layer()

    def step(x, frozen):
        h = body(x)
        if frozen > 0:
            h = h.detach()
        h = torch.relu(h)
        loss = head(h).sum()
        body.zero_grad()
        learn_from(loss, head)
        return loss.item(), h.requires_grad

    calls = [(x, torch.tensor(float(i % 3 - 1))) for i, (x,) in enumerate(signed(30))]
    return Program(step, calls, watch=[body, head])


# --- in place ------------------------------------------------------------------------------------


@differential(hits=18, graphs=2)
def test_penalty_added_in_place():
    block = layer()
    optimizer = torch.optim.SGD(block.parameters(), 0.1)

    def step(x):
        total = torch.zeros(())
        if x.sum() > 0:
            total += block.weight.square().sum()
        loss = total * 0.1 + block(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item(), total.item()

    return Program(step, signed(), watch=[block])


@differential(hits=18, graphs=2)
def test_rows_written_in_place():
    blocks = nn.ModuleList(layer() for _ in range(2))

    def step(x):
        out = torch.zeros(2, 4)
        for index, block in enumerate(blocks):
            if x[index] > 0.3 or x.sum() < 0:
                out[index] = torch.relu(block(x))
        loss = out.sum() + blocks[0](x).sum()
        blocks.zero_grad()
        loss.backward()
        return loss.item()

    return Program(step, signed(), watch=[blocks])


@differential(hits=10)
def test_in_place_whether_it_requires_a_gradient():
    block = layer()

    def step(x):
        total = x * 2
        if x.sum() > 0:
            total += block(x)
        seen = total.requires_grad, total.is_leaf
        if total.requires_grad:
            block.zero_grad()
            total.sum().backward()
        return seen, total.sum().item()

    return Program(step, signed(), watch=[block])


@differential(hits=8)
def test_in_place_backward_without_anything_to_do():
    block = layer()

    def step(x):
        total = torch.zeros(4)
        if x.sum() > 0:
            total.add_(block(x))
        block.zero_grad()
        total.sum().backward()
        return total.sum().item()

    return Program(step, signed(), watch=[block])


@differential(hits=10)
def test_a_result_written_in_place():
    """What leaves the call shows whether it requires a gradient: the branch is followed."""
    block = layer()

    def step(x):
        total = torch.zeros(4)
        if x.sum() > 0:
            total += block(x)
        return total

    return Program(step, signed(), watch=[block])


@differential(hits=10)
def test_an_argument_written_in_place():
    block = layer()

    def step(x):
        with torch.no_grad():
            y = x * 1.0
        if x.sum() > 0:
            y *= block(x)
            y += 1
        else:
            y *= 2
        z = y[1:]
        loss = (z * block(x)[1:]).sum()
        block.zero_grad()
        loss.backward()
        return loss.item(), z.requires_grad

    return Program(step, signed(), watch=[block])


@differential(hits=8)
def test_in_place_in_iterations_of_a_loop():
    block = layer()

    def step(x, iterations):
        total = torch.zeros(())
        for t in range(iterations):
            if x[t % 4] > 0:
                total += block(x).sum() * 0.1
        loss = total + block(x).square().sum()
        block.zero_grad()
        loss.backward()
        return loss.item()

    calls = [(torch.randn(4), 2 + i % 4) for i in range(30)]
    return Program(step, calls, watch=[block])


@differential(hits=8)
def test_a_view_taken_before_what_is_written():
    block = layer()

    def step(x):
        total = torch.zeros(2, 4)
        row = total[0]
        if x.sum() > 0:
            total[0] += block(x)
        shown = row.requires_grad
        loss = (row * 2).sum() + block(x).sum()
        block.zero_grad()
        loss.backward()
        return loss.item(), shown

    return Program(step, signed(), watch=[block])
