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


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.bool])
@differential(graphs=1, tolerance=1e-14)
def test_exponent_of_integers(dtype):
    """The logarithm of the base has the precision of the result."""

    def step(base, w):
        return base**w

    base = torch.arange(1, 5).to(dtype)
    return backward_outside(step, [(base, torch.rand(4).requires_grad_()) for _ in range(6)])
