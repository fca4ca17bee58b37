"""Arguments that torch refuses: where eager raises, so does the program when it is converted.

The operators behind torch's bindings would take them.
"""

import collections
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
    "number among tensors": lambda x: torch.cat([x, 2]),
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
