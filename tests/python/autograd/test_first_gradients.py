"""The first `.grad` of a leaf: a tensor of its own, unless eager keeps a view of another one's memory."""

from differential import Program, differential

import torch


def pairs(count=6):
    return [(torch.randn(2, 2), torch.randn(2, 2)) for _ in range(count)]


def leaves(*tensors):
    return [tensor.clone().requires_grad_() for tensor in tensors]


@differential()
def test_one_gradient_for_two_leaves():
    def step(a, b):
        x, y = leaves(a, b)
        (x + y).pow(2).sum().backward()
        return x.grad, y.grad

    return Program(step, pairs())


@differential()
def test_a_seed_is_copied():
    def step(a, b):
        (x,) = leaves(a)
        (x + 1).backward(b)
        return x.grad

    return Program(step, pairs())


@differential()
def test_a_result_as_seed_is_copied():
    def step(a, b):
        (x,) = leaves(a)
        seed = b * 2
        (x + 1).backward(seed)
        return x.grad, seed

    return Program(step, pairs())


@differential()
def test_a_spread_gradient_of_one_dimension():
    def step(a, b):
        (x,) = leaves(a.view(-1))
        x.sum().backward()
        x.grad[0] = 5
        return x.grad

    return Program(step, pairs())


@differential(hits=6)
def test_in_some_runs_only():
    def step(a, b):
        (x,) = leaves(a)
        y = x + 1 if a.sum() > 0 else b * 1
        if y.requires_grad:
            y.backward(b)
        return x.grad, b * 2

    return Program(step, pairs(12))


@differential(reasons=["unsupported_tensor"])
def test_a_view_of_a_seed_is_kept():
    def step(a, b):
        (x,) = leaves(a)
        (x + 1).view(4).backward(b.view(4))
        return x.grad

    return Program(step, pairs())


@differential(reasons=["unsupported_tensor"])
def test_a_view_of_the_same_shape_is_kept():
    def step(a, b):
        (x,) = leaves(a)
        x.view(2, 2).backward(b)
        return x.grad

    return Program(step, pairs())


@differential(reasons=["unsupported_tensor"])
def test_a_view_of_a_seed_is_written():
    def step(a, b):
        (x,) = leaves(a)
        seed = b * 2
        x.view(4).backward(seed.view(4))
        x.grad.zero_()
        return seed

    return Program(step, pairs())


@differential(reasons=["unsupported_tensor"])
def test_views_of_one_gradient_are_kept():
    def step(a, b):
        x, y = leaves(a, b)
        (x.view(4) + y.view(4)).pow(2).sum().backward()
        return x.grad, y.grad

    return Program(step, pairs())


@differential(reasons=["autograd"])
def test_a_parameter_keeps_a_view_of_a_seed():
    weight = torch.ones(2, 2, requires_grad=True)

    def step(a, b):
        weight.grad = None
        weight.view(4).backward(b.view(4))
        return a * 2

    return Program(step, pairs(), watch=[weight])


@differential()
def test_a_parameter_copies_a_seed():
    weight = torch.ones(2, 2, requires_grad=True)

    def step(a, b):
        weight.grad = None
        (weight + a).backward(b)
        return a * 2

    return Program(step, pairs(), watch=[weight])
