"""In-place operators whose gradient needs what they overwrite: autograd keeps a copy for them."""

import pytest
from backward_outside import backward_outside
from differential import Program, differential
from torch.nn import functional as F

import torch
import torchjanus
from torch import nn


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


def zero_a_row(weight):
    weight[0].zero_()


def assign_a_row(weight):
    weight[0] = 1.0


def halve_columns(weight):
    weight[:, 1:].mul_(0.5)


def zero_the_diagonal(weight):
    weight.diagonal().zero_()


def zero_through_views(weight):
    weight.view(-1)[2:5] = 0


def zero_what_is_positive(weight):
    weight.masked_fill_(weight > 0, 0)


PARTS = [
    zero_a_row,
    assign_a_row,
    halve_columns,
    zero_the_diagonal,
    zero_through_views,
    zero_what_is_positive,
]


@pytest.mark.parametrize("how", ["no_grad", "detach", "data"])
@pytest.mark.parametrize("write", PARTS)
@differential(hits=3)
def test_part_of_a_parameter_that_autograd_does_not_see_written(write, how):
    """The parameter's gradient is that of its new contents, once."""
    linear = nn.Linear(3, 3)
    optimizer = torch.optim.SGD(linear.parameters(), 0.1)

    def step(x):
        optimizer.zero_grad()
        if how == "no_grad":
            with torch.no_grad():
                write(linear.weight)
        else:
            write(linear.weight.detach() if how == "detach" else linear.weight.data)
        loss = linear(x).square().sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Program(step, [(torch.randn(2, 3),) for _ in range(6)], watch=[linear])


@differential(hits=3)
def test_detached_part_of_a_parameter_written():
    linear = nn.Linear(3, 3)

    def step(x):
        linear.zero_grad()
        linear.weight[1].detach().fill_(2.0)
        linear.bias.detach()[1] = 3.0
        y = linear(x)
        y.sum().backward()
        return y.detach()

    return Program(step, [(torch.randn(2, 3),) for _ in range(6)], watch=[linear])


@differential(reasons=["autograd"])
def test_write_with_a_gradient_after_detach():
    linear = nn.Linear(3, 3)

    def step(x):
        detached = x.detach()
        detached.mul_(linear.weight.sum())
        return x.requires_grad, detached.requires_grad, x * 2

    return Program(step, [(torch.randn(2, 3),) for _ in range(6)], watch=[linear])


@differential(reasons=["autograd"])
def test_saved_tensor_written_after_detach():
    linear = nn.Linear(3, 3)

    def step(x):
        y = linear(torch.tanh(linear(x)))
        linear.weight.detach().mul_(0.5)
        y.sum().backward()

    return Program(step, [(torch.randn(2, 3),) for _ in range(6)], watch=[linear])


def numbers():
    return torch.rand(4).add(0.5).requires_grad_()


def cumprod(w):
    return w.cumprod(0)


def hypot(w):
    return torch.hypot(w, w.detach() + 1)


def norm(w):
    return w.norm()


def norm_of_rows(w):
    return torch.linalg.vector_norm(w.view(2, 2), 3, dim=1)


def deviation(w):
    return w.std()


def deviation_of_rows(w):
    return w.view(2, 2).std(1)


def logcumsumexp(w):
    return torch.logcumsumexp(w, 0)


def cdist(w):
    return torch.cdist(w[None], w.detach()[None] + 1)


def dist(w):
    return torch.dist(w, w.detach() + 1)


def integer_powers(w):
    return w ** torch.arange(4)


def determinant(w):
    return torch.linalg.det(w.view(2, 2))


def lgamma(w):
    return w.lgamma()


def cummax(w):
    return w.cummax(0)[0]


def variance(w):
    return w.var()


def number_power(w):
    return w**2


def matrix_exponential(w):
    return torch.matrix_exp(w.view(2, 2))


SAVED = [
    cumprod,
    hypot,
    norm,
    norm_of_rows,
    deviation,
    deviation_of_rows,
    logcumsumexp,
    cdist,
    dist,
]
SAVED += [integer_powers, determinant]
NOT_SAVED = [lgamma, cummax, variance, number_power, matrix_exponential]


def zeroed_result(operator):
    def step(w):
        y = operator(w)
        y.zero_()
        return y.sum()

    return backward_outside(step, [(numbers(),) for _ in range(6)])


@pytest.mark.parametrize("operator", SAVED)
@differential(reasons=["autograd"])
def test_result_that_the_gradient_needs(operator):
    return zeroed_result(operator)


@pytest.mark.parametrize("operator", NOT_SAVED)
@differential(graphs=1)
def test_result_that_the_gradient_does_not_need(operator):
    return zeroed_result(operator)


def written_element(target, w):
    target[0] = w[0]


def written_slice(target, w):
    target[1:] = w[1:]


def copied(target, w):
    target.copy_(w)


@pytest.mark.parametrize("write", [written_element, written_slice, copied])
@pytest.mark.parametrize("dtype", [torch.int64, torch.bool])
@differential(graphs=1)
def test_copy_into_what_has_no_gradient(write, dtype):
    def step(w, x):
        target = torch.zeros(4, dtype=dtype)
        write(target, w)
        return target, target + x

    return Program(step, [(numbers(), torch.randn(4)) for _ in range(6)])


@differential(graphs=1)
def test_copy_into_integers_of_before():
    """Their parts may be written as well."""

    def step(w, counts):
        counts[:2] = w[:2]
        counts[2:].copy_(w[2:])
        return (counts * w).sum()

    counts = torch.zeros(4, dtype=torch.int64)
    return backward_outside(step, [(numbers() * 3, counts) for _ in range(6)])


def filled(target, w):
    target.fill_(w[0])


def compared(target, w):
    target.lt_(w)


def equal(target, w):
    target.eq_(w)


@pytest.mark.parametrize("write", [filled, compared, equal])
@pytest.mark.parametrize("dtype", [torch.int64, torch.bool])
@differential(reasons=["autograd"])
def test_integers_that_come_to_require_a_gradient(write, dtype):
    """Strange, but eager's."""

    def step(w):
        target = torch.zeros(4, dtype=dtype)
        write(target, w)
        return target.requires_grad, target.detach()

    return Program(step, [(numbers(),) for _ in range(6)])


def below(y):
    y.lt_(1.5)


def negated(y):
    y.logical_not_()


def both(y):
    y.logical_and_(torch.ones(4))


@differential(graphs=1)
def test_comparison_in_place():
    """It has a gradient, of zeros."""

    def step(w):
        y = w * 2
        below(y)
        return y

    return backward_outside(step, [(numbers(),) for _ in range(6)])


@differential(reasons=["autograd"])
def test_comparison_in_place_with_a_leaf():
    def step(w, x):
        return x.ge_(w)

    return backward_outside(step, [(numbers(), torch.rand(4)) for _ in range(6)])


@pytest.mark.parametrize("write", [negated, both])
@differential(reasons=["autograd"])
def test_logic_in_place(write):
    """It leaves the gradient as it was."""

    def step(w):
        y = w * 2
        write(y)
        return y

    return backward_outside(step, [(numbers(),) for _ in range(6)])


@pytest.mark.parametrize("write", [below, negated, both])
@differential(graphs=1)
def test_logic_in_place_without_a_gradient(write):
    def step(x, w):
        y = x * 2
        write(y)
        return y * w

    return backward_outside(step, [(torch.rand(4), numbers()) for _ in range(6)])


WRITTEN_OVER = {
    "elu": lambda x: F.elu(x * 1, inplace=True),
    "elu of the bindings": lambda x: torch._C._nn.elu_(x * 1),
    "elu, new": lambda x: F.elu(x * 1),
    "selu": lambda x: F.selu(x * 1, inplace=True),
    "celu": lambda x: F.celu(x * 1, inplace=True),
    "leaky_relu": lambda x: F.leaky_relu(x * 1, 0.1, inplace=True),
    "leaky_relu, new": lambda x: F.leaky_relu(x * 1, 0.1),
    "relu": lambda x: F.relu(x * 1, inplace=True),
}


@pytest.mark.parametrize("name", WRITTEN_OVER)
def test_result_written_outside(name):
    """Eager raises where the operator was in place, as it keeps its result for the gradient then."""

    def convert(step):
        converted = torchjanus.function(WRITTEN_OVER[name])
        return step_with(converted), converted

    def step_with(function):
        def step(x):
            result = function(x)
            result.add_(1)
            try:
                result.sum().backward()
            except RuntimeError as error:
                return str(error)[:60]
            return x.grad

        return step

    @differential()
    def test():
        calls = [(torch.randn(3, 4, requires_grad=True),) for _ in range(6)]
        return Program(step_with(WRITTEN_OVER[name]), calls, convert=convert)

    test()
