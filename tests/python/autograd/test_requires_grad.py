"""requires_grad of tensors that existed before the call, switched on and off in the step."""

import functools

import pytest
import torch.nn.functional as F
from differential import Program, differential

import torch
import torchjanus
from torch import nn


def network(inputs=4, outputs=1):
    return nn.Sequential(nn.Linear(inputs, 6), nn.Tanh(), nn.Linear(6, outputs))


@differential(hits=5, graphs=1)
def test_gan_freezes_its_critic():
    generator, critic = network(3, 4), network()
    slow = torch.optim.Adam(generator.parameters(), 1e-2)
    fast = torch.optim.Adam(critic.parameters(), 1e-2)

    def step(real, noise):
        fast.zero_grad()
        loss_critic = F.softplus(critic(generator(noise).detach())).mean()
        loss_critic = loss_critic + F.softplus(-critic(real)).mean()
        loss_critic.backward()
        fast.step()
        for p in critic.parameters():
            p.requires_grad_(False)
        slow.zero_grad()
        loss = F.softplus(-critic(generator(noise))).mean()
        loss.backward()
        slow.step()
        for p in critic.parameters():
            p.requires_grad_(True)
        return loss_critic, loss

    calls = [(torch.randn(5, 4), torch.randn(5, 3)) for _ in range(9)]
    return Program(step, calls, watch=[generator, critic, slow, fast])


@differential(hits=5)
def test_gan_leaves_its_critic_frozen():
    generator, critic = network(3, 4), network()
    slow = torch.optim.SGD(generator.parameters(), 1e-2)
    fast = torch.optim.SGD(critic.parameters(), 1e-2)

    def step(real, noise):
        critic.requires_grad_(True)
        fast.zero_grad()
        loss_critic = (critic(generator(noise).detach()) - critic(real)).mean()
        loss_critic.backward()
        fast.step()
        critic.requires_grad_(False)
        slow.zero_grad()
        loss = -critic(generator(noise)).mean()
        loss.backward()
        slow.step()
        return loss_critic.item(), loss.detach()

    calls = [(torch.randn(5, 4), torch.randn(5, 3)) for _ in range(9)]
    return Program(step, calls, watch=[generator, critic, slow, fast])


@differential(hits=4)
def test_wgan_with_gradient_penalty():
    generator, critic = network(3, 4), network()
    slow = torch.optim.RMSprop(generator.parameters(), 1e-2)
    fast = torch.optim.RMSprop(critic.parameters(), 1e-2)

    def step(real, noise, mix):
        for p in critic.parameters():
            p.requires_grad = True
        for _ in range(2):
            critic.zero_grad()
            with torch.no_grad():
                fake = generator(noise)
            between = (mix * real + (1 - mix) * fake).requires_grad_(True)
            gradients = torch.autograd.grad(
                critic(between).sum(), between, create_graph=True, retain_graph=True
            )[0]
            penalty = ((gradients.norm(2, dim=1) - 1) ** 2).mean()
            loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
            loss.backward()
            fast.step()
        for p in critic.parameters():
            p.requires_grad = False
        generator.zero_grad()
        loss_generator = -critic(generator(noise)).mean()
        loss_generator.backward()
        slow.step()
        return loss_generator

    calls = [(torch.randn(5, 4), torch.randn(5, 3), torch.rand(5, 1)) for _ in range(8)]
    return Program(step, calls, watch=[generator, critic, slow, fast])


@differential(hits=6)
def test_fine_tuning_by_turns():
    body, head = nn.Linear(4, 4), nn.Linear(4, 2)
    optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], 0.1, momentum=0.9)

    def step(x, y, tunes_body):
        for p in body.parameters():
            p.requires_grad = tunes_body
        optimizer.zero_grad()
        loss = F.cross_entropy(head(torch.tanh(body(x))), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    calls = [(torch.randn(5, 4), torch.randint(2, (5,)), i // 4 % 2 == 0) for i in range(16)]
    return Program(step, calls, watch=[body, head, optimizer])


@differential(hits=5)
def test_fast_gradient_sign():
    model = network(4, 3)

    def step(x, y):
        x.requires_grad = True
        loss = F.cross_entropy(model(x), y)
        model.zero_grad()
        loss.backward()
        return torch.clamp(x + 0.1 * x.grad.data.sign(), 0, 1).detach()

    calls = [(torch.rand(5, 4), torch.randint(3, (5,))) for _ in range(8)]
    return Program(step, calls, watch=[model])


@differential(hits=5)
def test_gradient_of_the_input_alone():
    model = network(4, 3).requires_grad_(False)

    def step(x):
        x.requires_grad_()
        gradient = torch.autograd.grad(model(x).square().sum(), x)[0]
        x.requires_grad_(False)
        return x - 0.1 * gradient

    return Program(step, [(torch.rand(5, 4),) for _ in range(8)], watch=[model])


@differential(hits=4)
def test_leaf_that_is_off_when_backward_comes():
    w, v = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)

    def step(x):
        y = (w * v * x).sum()
        w.requires_grad_(False)
        y.backward(retain_graph=True)
        first = v.grad.clone()
        w.requires_grad_(True)
        y.backward()
        return first, w.grad.sum()

    return Program(step, [(torch.randn(3),) for _ in range(8)], watch=[w, v])


@differential(hits=4)
def test_write_while_it_is_off():
    w = torch.ones(3, requires_grad=True)

    def step(x):
        w.grad = None
        y = (w + x).sum()
        w.requires_grad_(False)
        w.add_(0.5)
        z = (w * w).sum()
        w.requires_grad_(True)
        u = (w * w * x).sum()
        (y + u).backward()
        return y.detach(), z, w.grad.clone()

    return Program(step, [(torch.randn(3),) for _ in range(8)], watch=[w])


@differential(reasons=["autograd"])
def test_what_a_gradient_needs_is_written_while_it_is_off():
    w = torch.ones(3, requires_grad=True)

    def step(x):
        y = (w * w * x).sum()
        w.requires_grad_(False)
        w.add_(0.5)
        w.requires_grad_(True)
        y.backward()

    return Program(step, [(torch.randn(3),) for _ in range(6)], watch=[w])


@differential(hits=4)
def test_clone_used_before_and_after():
    w = torch.ones(3, requires_grad=True)

    def step(x):
        w.grad = None
        w.requires_grad_(False)
        off = (w * x).sum()
        flags = [off.requires_grad, w.requires_grad, w.is_leaf]
        w.requires_grad_(True)
        on = (w * x).sum()
        flags += [on.requires_grad, w.requires_grad]
        (on * off).backward()
        return flags, on.detach(), w.grad.sum()

    return Program(step, [(torch.randn(3),) for _ in range(8)], watch=[w])


@differential(hits=4)
def test_gradient_due_outside_of_a_frozen_critic():
    w, critic = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)

    def loss_of(x):
        critic.requires_grad_(False)
        loss = (w * critic * x).sum()
        critic.requires_grad_(True)
        return loss

    def outer(loss_of, x):
        loss = loss_of(x)
        loss.backward()
        return loss.detach()

    converted = torchjanus.function(loss_of)
    return Program(
        functools.partial(outer, loss_of),
        [(torch.randn(3),) for _ in range(8)],
        watch=[w, critic],
        convert=lambda _: (functools.partial(outer, converted), converted),
    )


@differential(reasons=["autograd"])
def test_result_depends_on_a_leaf_that_is_switched_on():
    w = torch.ones(3)

    def step(x):
        w.requires_grad_(True)
        return (w * x).sum()

    def reset():
        w.requires_grad_(False)

    calls = [(torch.randn(3),)]
    for _ in range(8):
        calls += [reset, (torch.randn(3),)]
    return Program(step, calls, watch=[w])


@differential(hits=3)
def test_branch_that_freezes():
    w, v = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)

    def step(x):
        w.grad = v.grad = None
        if x.sum() > 0:
            w.requires_grad_(False)
        loss = (w * v * x).sum()
        loss.backward()
        w.requires_grad_(True)
        return loss.detach(), w.grad is None

    return Program(step, [(torch.randn(3),) for _ in range(20)], watch=[w, v])


@differential(hits=3)
def test_both_sides_switch_and_switch_back():
    w, v = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)

    def step(x):
        w.grad = v.grad = None
        if x.sum() > 0:
            w.requires_grad_(False)
            y = (w * x).sum()
            w.requires_grad_(True)
        else:
            y = x.prod()
        loss = (w * v * x).sum() * y
        loss.backward()
        return loss.detach(), w.grad.sum()

    return Program(step, [(torch.randn(3),) for _ in range(20)], watch=[w, v])


@differential(hits=3)
def test_the_flag_changes_between_calls():
    w, v = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)

    def step(x):
        was = w.requires_grad
        w.requires_grad_(False)
        loss = (w * v * x).sum()
        loss.backward()
        w.requires_grad_(was)
        return was, loss.detach()

    def freeze():
        w.requires_grad_(False)

    def thaw():
        w.requires_grad_(True)

    calls = [(torch.randn(3),) for _ in range(6)] + [freeze]
    calls += [(torch.randn(3),) for _ in range(6)] + [thaw]
    calls += [(torch.randn(3),) for _ in range(4)]
    return Program(step, calls, watch=[w, v])


@differential(hits=3)
def test_two_paths_lead_to_one_parameter():
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    held = [first, second]

    def step(x):
        held[0].weight.grad = held[1].weight.grad = None
        held[0].weight.requires_grad_(False)
        loss = (held[1](x) * held[0](x)).sum()
        loss.backward()
        held[0].weight.requires_grad_(True)
        return loss.detach(), held[1].weight.grad is None

    def tie():
        held[1] = first

    calls = (
        [(torch.randn(2, 3),) for _ in range(6)] + [tie] + [(torch.randn(2, 3),) for _ in range(6)]
    )
    return Program(step, calls, watch=[first, second])


@differential(hits=5)
def test_run_that_fails_after_a_switch():
    w = torch.ones(3, requires_grad=True)

    def step(x, rate):
        w.requires_grad_(False)
        y = (w * x).sum()
        if y.item() > rate:
            return y * 2
        w.requires_grad_(True)
        return y

    calls = [(torch.randn(3).abs(), 100.0) for _ in range(7)]
    calls += [(torch.randn(3).abs(), -1.0) for _ in range(4)]
    return Program(step, calls, watch=[w])


@differential(reasons=["would_raise"])
def test_integers_have_no_gradient():
    def step(x):
        x.requires_grad_()
        return x + 1

    return Program(step, [(torch.ones(3, dtype=torch.int64),) for _ in range(6)])


@differential(reasons=["autograd"])
def test_view_that_is_held():
    w = torch.ones(3)

    def step(x):
        part = w[:2]
        w.requires_grad_(True)
        y = (part * x[:2]).sum()
        flag = y.requires_grad, part.requires_grad
        w.requires_grad_(False)
        return flag

    return Program(step, [(torch.randn(3),) for _ in range(6)], watch=[w])


@pytest.mark.parametrize("method", ["detach_", "requires_grad_", "setter"])
@differential(hits=3)
def test_ways_to_switch_off(method):
    w, v = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)

    def step(x):
        if method == "detach_":
            w.detach_()
        elif method == "setter":
            w.requires_grad = False
        else:
            w.requires_grad_(requires_grad=False)
        loss = (w * v * x).sum()
        loss.backward()
        return loss.detach()

    return Program(step, [(torch.randn(3),) for _ in range(8)], watch=[w, v])


@differential(reasons=("autograd",))
def test_detach_of_a_view_of_before_the_call_raises():
    w = torch.ones(4).view(2, 2).requires_grad_()

    def step(x):
        (w * x).sum().backward()
        w.detach_()

    return Program(step, [(torch.randn(2, 2),) for _ in range(6)], watch=[w])


MAKERS = {
    "ones": lambda x: torch.ones(3, requires_grad=True),
    "zeros_like": lambda x: torch.zeros_like(x, requires_grad=True),
    "full": lambda x: torch.full((3,), 2.0, requires_grad=True),
    "randn": lambda x: torch.randn(3, requires_grad=True),
    "eye": lambda x: torch.eye(3, requires_grad=True),
    "tensor": lambda x: torch.tensor([1.0, x[0].item(), 3.0], requires_grad=True),
}


@pytest.mark.parametrize("name", MAKERS)
@differential(hits=3)
def test_leaf_that_is_made_with_requires_grad(name):
    def step(x):
        w = MAKERS[name](x)
        ((w + 1).square() * x).sum().backward()
        gradient = w.grad
        with torch.no_grad():
            w -= 0.1 * gradient
        return gradient, w.detach(), w.requires_grad

    return Program(step, [(torch.randn(3),) for _ in range(6)])


@differential(hits=3)
def test_leaf_that_is_made_with_requires_grad_in_a_loop():
    def step(x, iterations):
        total = torch.zeros(3)
        for _ in range(iterations):
            w = torch.ones(3, requires_grad=True)
            (w.square() * x).sum().backward()
            total = total + w.grad
        return total

    return Program(step, [(torch.randn(3), iterations) for iterations in (1, 2, 3, 4, 2, 5, 3, 6)])


@differential(reasons=["would_raise"])
def test_ints_that_are_made_with_requires_grad():
    def step(x):
        return torch.ones(3, dtype=torch.int64, requires_grad=True) + x

    return Program(step, [(torch.randn(3),) for _ in range(6)])


@differential(reasons=["autograd"])
def test_gradient_that_becomes_that_of_another_parameter():
    one, other = nn.Linear(3, 3), nn.Linear(3, 3)

    def step(x):
        one.zero_grad()
        one(x).sum().backward()
        other.weight.grad = one.weight.grad

    return Program(step, [(torch.randn(2, 3),) for _ in range(6)], watch=[one, other])
