"""What changes where a tensor looks, not what it holds: `t_()`, `transpose_()`, `squeeze_()`, `unsqueeze_()`; and
`detach_()`, which views refuse."""

import pytest
from differential import Program, differential
from torch.nn import functional as F

import torch
from torch import nn


@differential(hits=3)
def test_of_what_the_run_made():
    w = nn.Parameter(torch.randn(3, 4))

    def step(x):
        w.grad = None
        y = x.clone()
        same = y.t_()
        y.mul_(2)
        z = w * 2
        z.unsqueeze_(1).transpose_(0, 2)
        z.squeeze_(1).add_(1)
        (z * y).sum().backward()
        return y, same, z.detach(), y.stride(), z.shape

    return Program(step, [(torch.randn(3, 4),) for _ in range(6)], watch=[w])


@differential(hits=3)
def test_with_a_gradient_due_outside():
    w = nn.Parameter(torch.randn(3, 4))

    def step(x):
        return (w * x).t_(), (w + x).unsqueeze_(0), (w - x).swapaxes_(0, 1)

    return Program(step, [(torch.randn(3, 4),) for _ in range(6)], watch=[w])


@differential(reasons=["unsupported_tensor"])
def test_of_a_tensor_that_has_a_view():
    def step(x):
        y = x.clone()
        row = y[0]
        y.t_()
        y.add_(1)
        row.mul_(3)
        return y, row

    return Program(step, [(torch.randn(3, 4),) for _ in range(6)])


@differential(reasons=["unsupported_tensor"])
def test_of_a_view():
    def step(x):
        y = x.clone()
        part = y[:2]
        part.t_()
        part.mul_(3)
        return y, part

    return Program(step, [(torch.randn(3, 4),) for _ in range(6)])


@differential(reasons=["unsupported_tensor"])
def test_of_a_tensor_of_before_the_call():
    def step(x):
        x.t_()
        return x * 2

    return Program(step, [(torch.randn(3, 4),) for _ in range(6)])


@differential(reasons=["autograd"])
def test_saved_for_a_gradient():
    w = nn.Parameter(torch.randn(3, 4))

    def step(x):
        y = w * x
        z = y.sin()
        y.t_()
        z.sum().backward()
        return y.detach()

    return Program(step, [(torch.randn(3, 4),) for _ in range(6)], watch=[w])


RESULTS_OF_COMPOSED_OPERATORS = {
    "einsum": lambda w, x: torch.einsum("ij,kj->ik", w, x),
    "linear": lambda w, x: F.linear(x[None], w, w[0, :3]),
    "pool": lambda w, x: F.avg_pool1d(w[None] * x, 3, 1, 1),
}
if not F.linear(torch.ones(1, 3, 4), torch.ones(3, 4), torch.ones(3))._is_view():
    del RESULTS_OF_COMPOSED_OPERATORS["linear"]  # since torch 2.15


@pytest.mark.parametrize("name", RESULTS_OF_COMPOSED_OPERATORS)
@pytest.mark.parametrize("tracked", [True, False])
@differential(reasons=["autograd"])
def test_detach_of_what_ends_in_a_view(name, tracked):
    w = nn.Parameter(torch.randn(3, 4))

    def step(x):
        with torch.set_grad_enabled(tracked):
            y = RESULTS_OF_COMPOSED_OPERATORS[name](w, x)
        y.detach_()
        return y

    return Program(step, [(torch.randn(3, 4),) for _ in range(6)], watch=[w])


@differential(hits=3)
def test_detach_of_what_is_none():
    w = nn.Parameter(torch.randn(3, 4))

    def step(x):
        y = (w * x).detach_()
        z = (x + 1).detach_()
        return y, z, F.linear(x, w).detach_()

    return Program(step, [(torch.randn(3, 4),) for _ in range(6)], watch=[w])


@differential()
def test_assigned_with_more_dimensions():
    """Python's subscripts leave out first dimensions of size 1, copy_ does not."""
    advantages = torch.zeros(4, 2)

    def step(x):
        weight = (x * 2).requires_grad_()
        gathered = torch.zeros(4, 2)
        gathered[1] = weight
        gathered[:, 0] = weight[:, :1]
        gathered[2, 1] = weight[None, :, :1]
        gathered[3:] = weight
        gathered.pow(2).sum().backward()
        advantages[0] = x
        return gathered.detach(), weight.grad

    return Program(step, [(torch.randn(1, 2),) for _ in range(6)], watch=[advantages])


@differential(reasons=["shape_mismatch"])
def test_copied_with_more_dimensions():
    def step(x):
        try:
            return torch.zeros(2).copy_(x * 2)
        except RuntimeError as error:
            return str(error)

    return Program(step, [(torch.randn(1, 2),) for _ in range(6)])
