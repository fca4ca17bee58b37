"""In-place operators whose gradient needs what they overwrite: autograd keeps a copy for them."""

import pytest
from differential import Program, differential
from torch.nn import functional as F

import torch


def changed(operator):
    def step(x):
        z = operator(x * 1.5)
        z.sum().backward()
        return z, x.grad

    return Program(step, [(torch.rand(3, 4).sub(0.4).requires_grad_(),) for _ in range(6)])


def written_after_use(y):
    use = y.cos()
    return y.sin_() + use


def written_result(y):
    return F.elu(y, inplace=True).add_(1)


def view_saved(y):
    view = y[:2]
    used = view * view
    y.add_(1)
    return used.sum() + y.sum()


def written_row(y):
    y[0].cosh_()
    return y


KEPT = {
    "cosh": lambda y: y.cosh_(),
    "pow": lambda y: y.pow_(2),
    "div": lambda y: y.div_(y.detach() + 3),
    "clamp_min": lambda y: y.clamp_min_(0.1),
    "cumprod": lambda y: y.cumprod_(1),
    "leaky_relu": lambda y: F.leaky_relu(y, 0.2, inplace=True),
    "elu": lambda y: F.elu(y, 0.7, inplace=True),
    "celu": lambda y: F.celu(y, 2.0, inplace=True),
    "silu": lambda y: F.silu(y, inplace=True),
    "mish": lambda y: F.mish(y, inplace=True),
    "a slope of nothing": lambda y: F.leaky_relu(y, 0.0, inplace=True),
    "one after the other": lambda y: F.elu(y.cosh_(), inplace=True),
    "a row": written_row,
}


@pytest.mark.parametrize("operator", KEPT)
@differential(graphs=1)
def test_operand_that_is_kept(operator):
    return changed(KEPT[operator])


LOST = {
    "no derivative of this form": lambda y: y.asinh_(),
    "a result that is saved": written_result,
    "a view of what is saved": view_saved,
    "both operands": lambda y: y.mul_(y),
    "used by another operator": written_after_use,
    "a negative slope": lambda y: F.leaky_relu(y, -0.1, inplace=True),
    "a negative alpha": lambda y: F.elu(y, -1.0, inplace=True),
    "a negative alpha of celu": lambda y: F.celu(y, -1.0, inplace=True),
    "negative slopes that are drawn": lambda y: F.rrelu(y, -0.3, -0.1, inplace=True),
}


@pytest.mark.parametrize("operator", LOST)
@differential(reasons=["autograd"])
def test_operand_that_is_lost(operator):
    """backward() raises."""
    return changed(LOST[operator])
