"""Operands for which eager has no derivative, or to which it gives no gradient."""

import pytest
from backward_outside import backward_outside
from differential import Program, differential
from torch.nn import functional as F

import torch
from torch import nn

OTHERS = {
    "remainder of a number": lambda x, i: 5 % x,
    "weights of classes": lambda x, i: F.cross_entropy(x, i, weight=x[0].abs()),
    "weights of positive classes": lambda x, i: F.binary_cross_entropy_with_logits(
        x, (x > 0).double(), pos_weight=x[0].abs()
    ),
    "weights of elements": lambda x, i: F.binary_cross_entropy(
        x.sigmoid(), (x > 0).double(), weight=x[0].abs()
    ),
    "running mean": lambda x, i: F.batch_norm(x, x.mean(0), torch.ones(4), training=False),
    "running variance": lambda x, i: F.batch_norm(x, torch.ones(4), x.var(0), training=False),
}


@pytest.mark.parametrize("name", OTHERS)
@differential(reasons=["autograd"])
def test_what_has_no_derivative(name):
    """Eager raises."""
    weight = nn.Parameter(torch.randn(4, 4))

    def step(x, i):
        weight.grad = None
        OTHERS[name](x * weight, i).sum().backward()

    return Program(step, [(torch.randn(4, 4), torch.randperm(4)) for _ in range(6)], watch=[weight])


@differential(hits=3)
def test_operands_that_get_no_gradient():
    w = nn.Parameter(torch.randn(6, 4))
    sign = nn.Parameter(torch.tensor([1.0, -1, 1, 1, -1, 1]))

    def step(x):
        w.grad = sign.grad = None
        loss = F.cosine_embedding_loss(w, x, sign, margin=0.2)
        loss = loss + F.hinge_embedding_loss(w[:, 0], sign)
        loss.backward()
        return loss.detach(), sign.grad is None

    return Program(step, [(torch.randn(6, 4),) for _ in range(6)], watch=[w, sign])


NORMS = {
    "norm": lambda w, order: torch.norm(w, p=order),
    "vector_norm": torch.linalg.vector_norm,
    "normalize": lambda w, order: F.normalize(w, p=order, dim=0),
    "dist": lambda w, order: torch.dist(w, w.detach() + 1, p=order),
}


def orders(kind):
    """Of order 0 a norm counts: it has no gradient, which differs from zeros."""
    return [
        (torch.rand(4).add(0.5).requires_grad_(), kind(n)) for n in (1, 2, 3, 4, 5, 6, 0, 2, 0, 3)
    ]


@pytest.mark.parametrize("kind", [int, float])
@pytest.mark.parametrize("name", NORMS)
@differential(hits=3, aborts=1)
def test_order_of_a_norm_that_becomes_0(name, kind):
    norm = NORMS[name]

    def step(w, order):
        return norm(w, order) * 2

    return backward_outside(step, orders(kind))


@differential(hits=3, aborts=1)
def test_order_of_a_norm_that_becomes_0_within_the_run():
    def step(w, order):
        torch.norm(w, p=order).backward()
        return w.grad is None

    return Program(step, orders(int))


@differential(hits=3, aborts=0)
def test_order_of_a_norm_that_becomes_0_without_gradients():
    def step(w, order):
        with torch.no_grad():
            return torch.norm(w, p=order)

    return Program(step, orders(int))


DRAWN_LIKE = {
    "randint_like": lambda w: torch.randint_like(w, 5),
    "randint_like between": lambda w: torch.randint_like(w, 2, 5),
    "rand_like": torch.rand_like,
    "full_like": lambda w: torch.full_like(w, 3.0),
}


@pytest.mark.parametrize("name", DRAWN_LIKE)
@differential(graphs=1)
def test_what_only_has_the_size_of_a_leaf(name):
    def step(w):
        made = DRAWN_LIKE[name](w)
        return made, made * w

    return backward_outside(step, [(torch.rand(4).requires_grad_(),) for _ in range(6)])


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.bool])
@differential(graphs=1, tolerance=1e-14)
def test_exponent_of_integers(dtype):
    """The logarithm of the base has the precision of the result."""

    def step(base, w):
        return base**w

    base = torch.arange(1, 5).to(dtype)
    return backward_outside(step, [(base, torch.rand(4).requires_grad_()) for _ in range(6)])
