"""Arguments that torch refuses: where eager raises, so does the program when it is converted.

The operators behind torch's bindings would take them.
"""

import collections
import math
import warnings

import pytest
import torch.nn.functional as F
from differential import Program, differential

import torch
import torchjanus
from torch import nn

deque = collections.deque


def outcomes(program, calls, converted):
    """Of each call: what it gives, or the exception's class and text."""
    run = torchjanus.function(program) if converted else program
    found = []
    for x, *rest in calls:
        try:
            found.append(run(x.clone(), *rest))
        except Exception as error:
            found.append((type(error), str(error)))
    return found, run


# --- numbers in the place of tensors --------------------------------------------------------------

NUMBERS = {
    "maximum": lambda x: torch.maximum(x, 2),
    "a method's": lambda x: x.maximum(2),
    "by name": lambda x: torch.minimum(x, other=2.5),
    "first": lambda x: torch.gt(1, x),
    "first, by name": lambda x: torch.eq(input=1, other=x),
    "of no operator of the graph": lambda x: torch.hypot(x, 3.0),
    "flag": lambda x: torch.logical_and(x, True),
    "of a product": lambda x: torch.matmul(x, 2),
    "of a loss": lambda x: torch._C._nn.binary_cross_entropy(x, 1.0),
    "in place": lambda x: x.mul(1).atan2_(1),
    "dropped": lambda x: x * F.dropout(2.0, 0.5, False),
    "dropped by name": lambda x: x * F.dropout(input=2.0, p=0.0),
    "dropped by a module": lambda x: x * nn.Dropout(0.5)(2.0),
    "dropped, varying": lambda x: x * F.dropout(float(x.sum()), 0.5, True),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_number_for_a_tensor(name):
    program = NUMBERS[name]

    def f(x):
        return program(x * 0.5)

    @differential(reasons=["would_raise"])
    def test():
        return Program(f, [(torch.rand(2, 3),) for _ in range(6)])

    test()
    _, converted = outcomes(f, [(torch.rand(2, 3),)] * 5, converted=True)
    sentences = [reason["sentence"] for reason in converted.stats()["reasons"]]
    assert any("takes no number in the place of a tensor" in each for each in sentences), sentences


TAKEN = {
    "of arithmetic": lambda x, n: torch.add(n, x) * torch.sub(x, n),
    "of a division": lambda x, n: torch.floor_divide(x, n) + torch.true_divide(n, x),
    "of a power": lambda x, n: torch.pow(n, x) + torch.pow(x, n),
    "of a comparison": lambda x, n: torch.gt(x, n),
    "of a remainder": lambda x, n: torch.remainder(n, x),
    "of where": lambda x, n: torch.where(x > 0.5, n, x),
    "of a function by parts": lambda x, n: torch.xlogy(n, x) + torch.copysign(x, n),
    "of torch.ops": lambda x, n: torch.ops.aten.add(x, n),
    "named tuple": lambda x, n: torch.stack(Pair(x, x * n)),
    "sizes one by one": lambda x, n: x.repeat(3, 2) * n + torch.ones(6, 6),
    "dimensions one by one": lambda x, n: x.permute(1, 0) * n,
    "reflected": lambda x, n: (n - x) * (n / x) + n**x + (n // x) + (n % x),
}

Pair = collections.namedtuple("Pair", ["a", "b"])


@pytest.mark.parametrize("name", TAKEN)
@differential(hits=3)
def test_number_that_is_taken(name):
    return Program(TAKEN[name], [(torch.rand(2, 3) + 0.1, n) for n in (2, 3, 4, 5, 6, 7)])


OPAQUE = {
    "number for a tensor of torch.ops": lambda x: torch.ops.aten.maximum(x, 2),
    "the same of an overload": lambda x: torch.ops.aten.gt.Tensor(x, 2),
    "view of a dict": lambda x: torch.cat({1: x, 2: x}.values()),
    "deque": lambda x: torch.stack(deque([x, x])),
    "sizes": lambda x: x.reshape({2: "", 3: ""}.keys()),
    "dimensions": lambda x: x.sum(deque([0])),
    "each of a deque": lambda x: torch._foreach_add(deque([x, x]), 1),
    "each of a view": lambda x: torch._foreach_mul({1: x}.values(), 2),
    "each by a deque": lambda x: torch._foreach_mul([x], deque([2.0])),
}


@pytest.mark.parametrize("name", OPAQUE)
@differential(reasons=["unknown_callable"])
def test_no_overload_takes_it(name):
    return Program(lambda x: OPAQUE[name](x * 0.5), [(torch.rand(2, 3),) for _ in range(6)])


HUGE = 2**40
# What eager raises for, and in what the program is left imperative.
RAISES = {
    "identity": (lambda x: torch.eye(HUGE), "shape_mismatch"),
    "identity of two sizes": (lambda x: torch.eye(HUGE, HUGE), "shape_mismatch"),
    "zeros": (lambda x: torch.zeros(HUGE, HUGE), "shape_mismatch"),
    "ones": (lambda x: torch.ones(2**62, 2), "shape_mismatch"),
    "full": (lambda x: torch.full((HUGE, HUGE), 1.0), "shape_mismatch"),
    "empty": (lambda x: torch.empty(HUGE, HUGE), "shape_mismatch"),
    "zeros in its dtype": (lambda x: x.new_zeros(HUGE, HUGE), "shape_mismatch"),
    "random numbers": (lambda x: torch.rand(HUGE, HUGE), "shape_mismatch"),
    "repeated": (lambda x: x.repeat(HUGE, HUGE), "shape_mismatch"),
    "expanded": (lambda x: x[0].expand(HUGE, HUGE, 3), "shape_mismatch"),
    "broadcast": (lambda x: torch.broadcast_to(x[0], (HUGE, HUGE, 3)), "shape_mismatch"),
    "size that is no tuple": (lambda x: torch.full(2, 1.0), "unknown_callable"),
    "size of numbers that is no tuple": (lambda x: torch.randint(5, 3), "unknown_callable"),
    "size between numbers": (lambda x: torch.randint(0, 5, 3), "unknown_callable"),
    "tensor for a list": (lambda x: torch._foreach_add([x], x), "would_raise"),
    "tensor for a list, in place": (lambda x: torch._foreach_mul_([x * 1], x), "would_raise"),
    "source without dimensions": (
        lambda x: x.scatter(0, torch.tensor([[0]]), torch.tensor(1.0)),
        "shape_mismatch",
    ),
    "width that is NaN": (lambda x: F.huber_loss(x, x, delta=math.nan), "autograd"),
    "slope that is NaN": (lambda x: F.smooth_l1_loss(x, x, beta=math.nan), "autograd"),
}


@pytest.mark.parametrize("name", RAISES)
def test_what_raises_and_is_caught(name):
    program, reason = RAISES[name]

    def f(x):
        try:
            return program(x * 0.5)
        except (TypeError, RuntimeError) as error:
            return str(error), x * 2

    @differential(reasons=[reason])
    def test():
        return Program(f, [(torch.rand(2, 3),) for _ in range(6)])

    test()


@differential()
def test_smoothing_that_is_no_number():
    def f(x):
        return F.cross_entropy(x * 0.5, torch.tensor([0, 2]), label_smoothing=math.nan)

    return Program(f, [(torch.rand(2, 3),) for _ in range(6)])


# Earlier forms, which only the bindings know.
DEPRECATED = {
    "addcmul": lambda x: torch.addcmul(x, 0.5, x, x),
    "addcdiv_": lambda x: x.mul(1).addcdiv_(0.5, x, x),
    "addmm": lambda x: torch.addmm(2, torch.ones(2, 2), x, x.t()),
    "add": lambda x: torch.add(x, 2, x),
}


@pytest.mark.parametrize("name", DEPRECATED)
def test_earlier_form(name):
    """The call stays imperative, and no reason says that it would raise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calls = [(torch.rand(2, 3) + 0.1,) for _ in range(5)]
        eager, _ = outcomes(DEPRECATED[name], calls, converted=False)
        found, converted = outcomes(DEPRECATED[name], calls, converted=True)
    for one, other in zip(eager, found, strict=True):
        assert torch.equal(one, other)
    assert all(each["code"] != "would_raise" for each in converted.stats()["reasons"])


RECEIVERS = {
    "a method's": lambda x: torch.Tensor.add(2.0, x),
    "a power's": lambda x: torch.Tensor.pow(2.0, x),
    "an operator's": lambda x: torch.Tensor.__add__(2.0, x),
    "of a list": lambda x: list.append((x,), x),
}


@pytest.mark.parametrize("name", RECEIVERS)
@differential(reasons=["would_raise"])
def test_method_of_another_object(name):
    return Program(lambda x: RECEIVERS[name](x * 0.5), [(torch.rand(2, 3),) for _ in range(6)])


# --- what is neither a list nor a tuple ------------------------------------------------------------

NO_LISTS = {
    "normalised shape": lambda x: F.layer_norm(x, deque([3])),
    "padding": lambda x: F.pad(x, deque([1, 1])),
    "kernel": lambda x: F.max_pool1d(x, deque([2])),
    "kernel of two": lambda x: F.max_pool2d(x[None], deque([2, 2])),
    "parts": lambda x: torch.split(x, deque([1, 1])),
    "parts of a method": lambda x: x.split(deque([1, 1])),
    "norm": lambda x: torch.norm(x, dim=deque([0])),
    "normalised": lambda x: F.normalize(x, dim=deque([0])),
    "unflattened": lambda x: x.unflatten(1, deque([3, 1])),
    "pooled to a size": lambda x: F.adaptive_avg_pool2d(x[None], deque([1, 2])),
    "unfolded": lambda x: F.unfold(x[None, None], deque([1, 2])),
    "data of keys": lambda x: x[0] + torch.tensor({1.0: 0, 2.0: 0, 3.0: 0}.keys()),
    "data of values": lambda x: x[0] + torch.tensor({1: 1.0, 2: 1.0, 3: 2.0}.values()),
    "data of a deque": lambda x: x[0] + torch.tensor(deque([1.0, 2.0, 3.0])),
    "data of its kind": lambda x: x[0] + x.new_tensor({1: 1.0, 2: 1.0, 3: 2.0}.values()),
    "index of keys": lambda x: x[{0: 1}.keys()],
    "index of values": lambda x: x[{0: 0, 1: 1}.values()],
    "index of a deque": lambda x: x[deque([0, 1])],
    "written at values": lambda x: written(x, {0: 0}.values()),
}


def written(x, index):
    y = x * 1
    y[index] = 1.0
    return y


@pytest.mark.parametrize("name", NO_LISTS)
def test_no_list(name):
    """Some functions take them, as Python unpacks them; for most of these eager raises."""
    calls = [(torch.rand(2, 3),) for _ in range(6)]
    eager, _ = outcomes(lambda x: NO_LISTS[name](x * 0.5), calls, converted=False)
    found, _ = outcomes(lambda x: NO_LISTS[name](x * 0.5), calls, converted=True)
    assert [str(each) for each in found] == [str(each) for each in eager]


# --- what only the binding refuses -----------------------------------------------------------------

BINDINGS = {
    "one int for dims": lambda x: torch.flip(x, 0),
    "one int for repeats": lambda x: torch.tile(x, 2),
    "one int for a shape": lambda x: torch.reshape(x, -1),
    "separate ints": lambda x: torch.reshape(x, 3, 2),
    "separate dims": lambda x: torch.permute(x, 1, 0),
    "None among indices": lambda x: x.index_put((torch.tensor([0]), None), torch.tensor(1.0)),
    "self": lambda x: torch.add(self=x, other=2),
    "self of a sum": lambda x: torch.sum(self=x),
    "self of three": lambda x: torch.where(condition=x > 0, self=x, other=x),
    "other of to": lambda x: x.to(other=x),
    "numpy's name alone": lambda x: x.sum(keepdims=True),
    "flag for an int": lambda x: x * x.size(True),
    "one too many": lambda x: torch.ravel(x, 1),
    "one too many of a method": lambda x: x.relu(1),
    "inplace": lambda x: x.relu(inplace=True),
    "inplace, switched off": lambda x: x.sigmoid(inplace=False),
    "inplace of a function": lambda x: torch.relu(x, inplace=True),
    "memory format": lambda x: x.contiguous(memory_format=None),
    "out of a method": lambda x: x.relu(out=None),
    "device": lambda x: x.sum(device="cpu"),
    "input of torch.ops": lambda x: torch.ops.aten.add(input=x, other=2),
    "axis of an overload": lambda x: torch.ops.aten.sum.dim_IntList(x, axis=[1]),
    "number among tensors": lambda x: torch.cat([x, 2]),
    "requires_grad": lambda x: x.exp(requires_grad=False),
}


def handled(program):
    def f(x):
        x = x * 0.5
        try:
            return program(x)
        except (TypeError, RuntimeError):
            return x * 2

    return f


@pytest.mark.parametrize("name", BINDINGS)
def test_refused_by_the_binding(name):
    @differential(reasons=["would_raise"])
    def test():
        return Program(handled(BINDINGS[name]), [(torch.rand(2, 3),) for _ in range(6)])

    test()
    _, converted = outcomes(handled(BINDINGS[name]), [(torch.rand(2, 3),)] * 5, converted=True)
    sentences = [reason["sentence"] for reason in converted.stats()["reasons"]]
    assert any("takes no such arguments" in each for each in sentences), sentences


@differential(reasons=["would_raise"])
def test_refused_of_an_argument():
    """No other operator: the result would be a view that Python takes after the run."""

    def f(x):
        try:
            return torch.reshape(x, -1)
        except TypeError:
            return x * 2

    return Program(f, [(torch.rand(2, 3),) for _ in range(6)])


FUNCTIONS = {
    "inplace of one without": lambda x: F.tanhshrink(x, inplace=True),
    "inplace of one without, last": lambda x: F.sigmoid(x, False),
    "self": lambda x: F.relu(self=x),
    "out": lambda x: F.relu(x, out=None),
    "None for a flag": lambda x: x.unique(None),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_refused_by_a_function(name):
    """Written in Python."""
    f = handled(FUNCTIONS[name])
    calls = [(torch.rand(2, 3),) for _ in range(6)]
    eager, _ = outcomes(f, calls, converted=False)
    found, _ = outcomes(f, calls, converted=True)
    assert [str(each) for each in found] == [str(each) for each in eager]


TAKEN_BY_BINDINGS = {
    "input": lambda x: torch.add(input=x, other=2) + torch.where(x > 0, input=x, other=x * 2),
    "names of torch.ops": lambda x: torch.ops.aten.sum.dim_IntList(self=x, dim=[1], keepdim=True),
    "numpy's names": lambda x: torch.sum(x, axis=1, keepdims=True),
    "separate ints of methods": lambda x: x.reshape(3, 2).flip(0).permute(1, 0).tile(2, 1),
    "one int of a method": lambda x: x.reshape(-1).view(-1).tile(2),
    "tuples": lambda x: torch.reshape(torch.flip(x, (0,)), (3, 2)),
    "inplace": lambda x: F.relu(F.leaky_relu(x * 1, 0.1, True), inplace=True),
    "not inplace": lambda x: F.relu(x, False) + F.relu(x, inplace=False),
    "out": lambda x: torch.exp(x, out=None),
    "size": lambda x: x * x.size(1) + x.size(dim=0),
    "dtype": lambda x: x.to(torch.float32).to(x).sum(dtype=torch.float64),
    "memory format": lambda x: x.t().contiguous(memory_format=torch.contiguous_format),
    "tensor for a number": lambda x: torch.add(x, x, alpha=torch.tensor(2.0)),
    "list of tensors": lambda x: torch.cat(tensors=[x, x], dim=1),
    "indices": lambda x: x.index_put((torch.tensor([0]),), torch.tensor(1.0)),
}


@pytest.mark.parametrize("name", TAKEN_BY_BINDINGS)
@differential()
def test_taken_by_the_binding(name):
    return Program(
        lambda x: TAKEN_BY_BINDINGS[name](x * 0.5), [(torch.rand(2, 3),) for _ in range(6)]
    )


# --- what operators and Python's protocols refuse ---------------------------------------------------


@differential(reasons=["shape_mismatch"])
def test_integer_division_of_addcdiv():
    i = torch.tensor([4, 6, 8])
    return Program(lambda x: torch.addcdiv(x * 2, i, i), [(torch.rand(2, 3),) for _ in range(6)])


@differential()
def test_division_of_addcdiv():
    i = torch.tensor([4, 6, 8])

    def f(x):
        return torch.addcdiv(x, i, x + 1) + torch.addcdiv(x, x, i)

    return Program(f, [(torch.rand(2, 3),) for _ in range(6)])


@differential(hits=2)
def test_bounds_of_hardtanh():
    def f(x, r):
        return F.hardtanh(x * 2, -r, r)

    bounds = (1.0, 2.0, 1.5, 0.5, 0.25, -1.0, 1.0, 0.0)
    return Program(f, [(torch.randn(2, 3), r) for r in bounds])


@differential()
def test_hardtanh_in_place():
    def f(x):
        return F.hardtanh(x, -0.5, 0.5, inplace=True) + F.hardtanh(x * 3), x

    return Program(f, [(torch.randn(2, 3),) for _ in range(6)])


MEMBERS = {"None": None, "text": "a", "list": [1.0], "class": float}


@pytest.mark.parametrize("name", MEMBERS)
@differential(reasons=["would_raise"])
def test_no_member_of_a_tensor(name):
    return Program(lambda x: x * (MEMBERS[name] in x * 2), [(torch.rand(3),) for _ in range(6)])


@differential()
def test_member_of_a_tensor():
    return Program(lambda x: x * (2.0 in x) + (x[0] in x), [(torch.arange(3.0),) for _ in range(6)])


@differential(reasons=["would_raise"])
def test_trunc_of_a_tensor():
    return Program(lambda x: x * math.trunc((x * 2)[0]), [(torch.rand(3),) for _ in range(6)])


@differential()
def test_trunc_of_its_number():
    return Program(
        lambda x: x * math.trunc((x * 9)[0].item()) + math.floor(x[1]),
        [(torch.rand(3),) for _ in range(6)],
    )
