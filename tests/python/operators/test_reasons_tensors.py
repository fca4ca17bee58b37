"""Reasons of tensors, their memory and gradients, and of the modes of torch."""
# ruff: noqa: F401  (the statements use them)

import copy

import pytest
from refusals import Refused, check_refusal

import torch
from torch import nn


class Plain:
    pass


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 2 * x * gradient


class Materializing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(0)
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Listing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return [x * 2]

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class OneOfTwo(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        first, second = x * 2, x * 3
        ctx.mark_non_differentiable(second)
        return first, second

    @staticmethod
    def backward(ctx, gradient, other):
        return gradient


def double(x):
    return x * 2


def space():
    holder = torch.ones(2)
    hooked = nn.Parameter(torch.ones(2))
    hooked.register_hook(lambda gradient: gradient * holder)
    holder.grad = torch.ones(2)
    return {
        **globals(),
        "buffer": torch.ones(2),
        "holder": holder,
        "hooked": hooked,
        "materializing": Materializing.forward,
        "param": nn.Parameter(torch.ones(2)),
    }


CASES = {
    "autograd": [
        Refused(
            "with torch.no_grad(): v = w[:1]\nv.grad", "the .grad of a view taken without gradients"
        ),
        Refused("(w * 2).grad", "the .grad of a tensor that is not a leaf"),
        Refused("w.grad = torch.ones(2, 2)[0]", "the assignment of a view to .grad"),
        Refused("w.grad = w * 2", "a .grad that requires a gradient itself"),
        Refused("w.grad = buffer", "an existing tensor becomes a .grad", at_entry=True),
        Refused("w.sum().backward(create_graph=True)", "backward() with create_graph or inputs"),
        Refused("torch.autograd.grad(w.sum(), w, is_grads_batched=True)", "batched gradients"),
        Refused(
            "torch.autograd.grad((w * 2).sum(), [w, param], allow_unused=True, materialize_grads=True)",
            "materialized zero gradients",
        ),
        Refused(
            "torch.autograd.backward([w.sum()], create_graph=True)",
            "these arguments of torch.autograd.backward",
        ),
        Refused(
            "w2 = w * 2; s = w2.sum(); w2.add_(1); torch.autograd.grad(s, w2)",
            "the gradient of a tensor that was changed in place",
        ),
        Refused("with torch.no_grad(): w.backward()", "a gradient of a leaf"),
        Refused("Listing.apply(w)", "the results of a Function"),
        Refused(
            "a = w * 2; a.register_hook(lambda g: torch.ones(3)); a.sum().backward()",
            "a gradient of another shape or dtype",
        ),
        Refused(
            "torch.autograd.grad(Square.apply(w).sum(), w, create_graph=True)",
            "create_graph through a Function or a hook",
        ),
        Refused(
            "a = w * 2; a.retain_grad(); a.sum().backward(retain_graph=True); a.sum().backward()",
            "a kept gradient that is added to",
        ),
        Refused("w.sum().backward(retain_graph=x.sum() > 0)", "a flag of backward()"),
        Refused("copy.deepcopy(holder)", "a copy of a tensor that has a gradient"),
        Refused(
            "Materializing.apply(w).sum().backward()",
            "set_materialize_grads()",
            helper="materializing",
        ),
        Refused("OneOfTwo.apply(w)[0].sum().backward()", "zeros for an output without a gradient"),
        Refused(
            "y = Square.apply(w); y.sum().backward(); y.sum().backward()",
            "a second backward through a Function or a hook",
        ),
        Refused(
            "a = w * 2; a.retain_grad(); a.sum().backward()\nreturn a",
            "a result whose gradient is kept",
            at_entry=True,
        ),
        Refused(
            "v = x * 2\nu = v[:1]\nv.mul_(w)\nreturn u, v",
            "a result is a view made without gradients",
            at_entry=True,
        ),
        Refused(
            "h = w * x\nv = h[:1]\nreturn h, v, (v * 2).exp()",
            "a result is a view on the way of another result's gradient",
            at_entry=True,
        ),
        Refused(
            "buffer.mul_(w)", "becomes part of autograd's graph by a write in place", at_entry=True
        ),
        Refused(
            "with torch.no_grad(): w.add_(1)\nreturn w * 2",
            "results depend on a leaf that is written in the same run",
            at_entry=True,
        ),
    ],
    "expression": [
        Refused("x.sum()[...] = 1", "a whole index of a 0-d tensor"),
        Refused("x += Plain()", "in-place operator of a tensor and an object"),
        Refused("x[torch.tensor([0])] = 'a'", "assignment at a tensor index"),
    ],
    "heap_write": [
        Refused("buffer.data = w * 2", "it is set to what requires a gradient"),
        Refused("w.data = 3", "it is set to what is no tensor"),
        Refused("buffer[:1].data = x[:1] * 2", "the tensor is a view, or no leaf"),
    ],
    "hook": [
        Refused(
            "torch.autograd.grad((hooked * hooked).sum(), hooked, create_graph=True)",
            "a leaf (under create_graph)",
        ),
        Refused(
            "Square.apply(hooked).sum().backward()",
            "a leaf (beside a Function or a hook of another tensor)",
        ),
        Refused("torch.ones(2, requires_grad=True).register_hook(double)", "a leaf"),
    ],
    "mode_active": [
        Refused("with torch.autocast('cuda', enabled=False): pass", "autocast of another device"),
        Refused(
            "with torch.inference_mode(): y = x * 2\ny.requires_grad_()",
            "requires_grad after inference mode",
        ),
        Refused(
            "with torch.inference_mode(): y = x * 2\ny.data = x * 3",
            "the attribute data of a tensor of inference mode",
        ),
    ],
    "unsupported_argument": [
        Refused("torch.tensor([float(x[0])] * 300)", "torch.tensor of a list of this kind"),
        Refused(
            "torch.utils.checkpoint.checkpoint(double, x, use_reentrant=False, debug=True)",
            "with the argument debug",
        ),
        Refused("torch.tensor([x, x])", "torch.tensor of data of this kind"),
    ],
    "unsupported_tensor": [
        Refused(
            "torch.cholesky_solve(torch.eye(2), torch.eye(2)).is_contiguous()",
            "the strides of a tensor",
        ),
        Refused("torch.nonzero(x.sum())", "nonzero of a tensor without dimensions"),
        Refused("x.expand(2, 2).add_(1)", "an in-place write through the view"),
        Refused("x.t_()", "_ of a tensor"),
        Refused("x.sum_to_size(2)", "sum_to_size gives a view of all"),
        Refused("return torch.unsqueeze(input=x, dim=0)", "a result is a view", at_entry=True),
    ],
}


@pytest.mark.parametrize(
    ("code", "case"),
    [
        pytest.param(code, case, id=case.statement)
        for code, cases in CASES.items()
        for case in cases
    ],
)
def test_statement_gives_its_reason(code, case):
    check_refusal(case, code, space)
