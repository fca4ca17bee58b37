"""Operators of the program's own, whose kernels use tensors that are no operands."""

import pytest
from apart import in_a_thread
from lazily import assert_as_eager

import torch
import torchjanus

STATE = torch.ones(8, dtype=torch.float64)
SCALES = {}
LIBRARY = torch.library.Library("own_kernels", "DEF")
LIBRARY.define("count(Tensor x) -> Tensor")


@torch.library.custom_op("own_kernels::scaled", mutates_args=())
def scaled(x: torch.Tensor) -> torch.Tensor:
    return x * STATE + SCALES.get("scale", 0.0)


@torch.library.custom_op("own_kernels::listed", mutates_args=())
def listed(x: torch.Tensor) -> torch.Tensor:
    return torch.tensor([x[0].item(), *(STATE * 2).tolist()])


def count(x):
    STATE.add_(x)
    return STATE.clone()


LIBRARY.impl("count", count, "CPU")


def memory_that_is_written_later():
    x = torch.arange(8.0).double()
    found = []
    for _ in range(12):
        STATE.mul_(1.01).add_(0.01)
        found.append(scaled(x) * 2)
    return found


def a_result_that_is_pending():
    x = torch.arange(8.0).double()
    found = []
    for i in range(12):
        SCALES["scale"] = x * 0.5 + i
        found.append(scaled(x) * 2)
    return found


def a_list_of_numbers():
    x = torch.arange(8.0).double()
    found = []
    for i in range(12):
        STATE.mul_(1.01).add_(0.01)
        found.append(listed(x + i))
    return found


def memory_that_the_kernel_writes():
    x = torch.ones(8).double()
    found = []
    for _ in range(12):
        before = STATE * 2.0
        STATE.mul_(1.01)
        found += [torch.ops.own_kernels.count(x), before, STATE * 1.0]
    return found


PROGRAMS = [
    memory_that_is_written_later,
    a_result_that_is_pending,
    a_list_of_numbers,
    memory_that_the_kernel_writes,
]


def from_the_start(program):
    def started():
        STATE.fill_(1.0)
        SCALES.clear()
        return program()

    return started


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_a_kernel_uses(program):
    assert_as_eager(from_the_start(program))


def test_in_another_thread():
    """It notes nothing, but its operators look for what this thread has pending."""

    def program():
        x = torch.arange(8.0).double()
        found = []
        for i in range(8):
            STATE.mul_(1.01).add_(0.01)
            SCALES["scale"] = x * 0.5 + i
            found.append(in_a_thread(lambda: scaled(x)))
        return found

    assert_as_eager(from_the_start(program))


def test_nothing_is_noted_within():
    """The kernel may hand the memory of what it computes to others."""

    @torch.library.custom_op("own_kernels::watched", mutates_args=())
    def watched(x: torch.Tensor) -> torch.Tensor:
        y = x * 2 + 1
        pending.append(torchjanus._core.is_pending(y))
        return y

    pending = []
    with torchjanus.lazy():
        for _ in range(8):
            watched(torch.arange(4.0) * 3)
    assert pending == [False] * 8
