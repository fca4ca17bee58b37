"""Operators in place, on what the step made and on its arguments, with the gradients through them."""

import pytest
import torch.nn.functional as F
from differential import Program, differential

import torch

IN_PLACE = {
    "add": lambda x, y: x.add_(y, alpha=2),
    "add number": lambda x, y: x.add_(1.5),
    "mul": lambda x, y: x.mul_(y),
    "div": lambda x, y: x.div_(y + 3),
    "pow": lambda x, y: x.pow_(2),
    "addcmul": lambda x, y: x.addcmul_(y, y, value=0.3),
    "addcdiv": lambda x, y: x.addcdiv_(y, y + 3, value=0.3),
    "lerp": lambda x, y: x.lerp_(y, 0.3),
    "lerp tensor": lambda x, y: x.lerp_(y, y.sigmoid()),
    "clamp": lambda x, y: x.clamp_(-0.5, 0.5),
    "clamp min": lambda x, y: x.clamp_min_(0.1),
    "relu": lambda x, y: x.relu_(),
    "leaky": lambda x, y: F.leaky_relu_(x, 0.1),
    "elu": lambda x, y: F.elu_(x),
    "silu": lambda x, y: F.silu(x, inplace=True),
    "hardtanh": lambda x, y: F.hardtanh_(x),
    "threshold": lambda x, y: F.threshold_(x, 0.1, 2.0),
    "exp": lambda x, y: x.exp_(),
    "tanh": lambda x, y: x.tanh_(),
    "sigmoid": lambda x, y: x.sigmoid_(),
    "sqrt": lambda x, y: x.abs_().sqrt_(),
    "neg": lambda x, y: x.neg_(),
    "masked_fill": lambda x, y: x.masked_fill_(y > 0, 2.0),
    "masked_fill tensor": lambda x, y: x.masked_fill_(y > 0, y.sum()),
    "fill": lambda x, y: x.fill_(2.0),
    "fill tensor": lambda x, y: x.fill_(y.sum()),
    "zero": lambda x, y: x.zero_(),
    "copy": lambda x, y: x.copy_(y),
    "copy broadcast": lambda x, y: x.copy_(y[0]),
    "index_add": lambda x, y: x.index_add_(0, torch.tensor([0, 2, 0]), y),
    "index_fill": lambda x, y: x.index_fill_(1, torch.tensor([0, 2]), 2.0),
    "index_copy": lambda x, y: x.index_copy_(0, torch.tensor([2, 0, 1]), y),
    "index_put": lambda x, y: x.index_put_((torch.tensor([0, 0]),), y[:2], accumulate=True),
    "scatter": lambda x, y: x.scatter_(1, torch.tensor([[0, 1], [2, 3], [0, 1]]), y[:, :2]),
    "scatter_add": lambda x, y: x.scatter_add_(1, torch.tensor([[0, 0], [2, 3], [0, 1]]), y[:, :2]),
    "setitem": lambda x, y: x.__setitem__((slice(None), 1), y[:, 0]),
    "setitem mask": lambda x, y: x.__setitem__(y > 0, 0.5),
    "tril": lambda x, y: x.tril_(),
    "triu": lambda x, y: x.triu_(1),
    "cumsum": lambda x, y: x.cumsum_(1),
    "baddbmm": lambda x, y: x.addmm_(y, y.t() @ y),
    "addmv": lambda x, y: x[:, 0].addmv_(y, y[0]),
    "renorm": lambda x, y: x.renorm_(2, 0, 0.5),
    "round": lambda x, y: x.round_(),
    "fmod": lambda x, y: x.fmod_(0.5),
    "remainder": lambda x, y: x.remainder_(0.5),
    "where": lambda x, y: x.copy_(torch.where(y > 0, x, y)),
    "view": lambda x, y: x.view(-1).mul_(2),
    "slice": lambda x, y: x[:, ::2].add_(1),
    "logical": lambda x, y: x.ge_(y),
    "xlogy": lambda x, y: x.abs_().xlogy_(y.abs()),
    "nan_to_num": lambda x, y: x.nan_to_num_(0.0),
    "swap": lambda x, y: x.copy_(x.flip(0)),
}


@pytest.mark.parametrize("name", IN_PLACE)
@pytest.mark.parametrize("place", ["made", "argument"])
@differential()
def test_in_place(name, place):
    write = IN_PLACE[name]

    def step(p, y):
        p.grad = None
        x = p * 1.5
        before = x.sum()
        write(x, y)
        x = x * 2
        loss = (x.pow(2).sum() + before) * 0.5
        loss.backward()
        return x.detach(), p.grad

    def on_argument(x, y):
        write(x, y)
        return x * 2

    if place == "argument":
        return Program(on_argument, [(torch.randn(3, 4), torch.randn(3, 4)) for _ in range(5)])
    return Program(
        step, [(torch.randn(3, 4).requires_grad_(), torch.randn(3, 4)) for _ in range(5)]
    )
