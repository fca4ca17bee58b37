"""Operators of higher order, which torch dispatches in Python."""

from apart import in_a_thread
from lazily import assert_as_eager

import torch


class Cube(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(context, inputs, output):
        context.save_for_backward(inputs[0])

    @staticmethod
    def backward(context, gradient):
        (x,) = context.saved_tensors
        return gradient * 3 * x**2


def cubes(x):
    return [
        torch.func.grad(lambda v: Cube.apply(v).sum())(x),
        torch.func.vmap(Cube.apply)(x),
        torch.func.jacrev(Cube.apply)(x),
    ]


def test_functions_of_autograd_in_functorch():
    def program():
        found = []
        for i in range(16):
            found += cubes(torch.arange(8.0).double() * 2 + i)
        return found

    assert_as_eager(program)


def test_in_another_thread():
    """Its operands are tensors that this thread has made lazily."""

    def program():
        found = []
        for i in range(8):
            x = torch.arange(8.0).double() * 2 + i
            found += in_a_thread(lambda x=x: cubes(x))
        return found

    assert_as_eager(program)


def test_a_loop_of_torch():
    from torch._higher_order_ops.associative_scan import associative_scan

    def program():
        found = []
        for i in range(12):
            x = torch.arange(12.0).double().reshape(3, 4) * 0.5 + i
            found.append(associative_scan(torch.add, x, 0, combine_mode="generic"))
        return found

    assert_as_eager(program)
