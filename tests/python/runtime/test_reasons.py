"""Every reason code (src/speculate/reason.h) is produced by some program, with the sentence that users
read and the place in their source.

A program is a function marked with the code that it must lead to. The line that the reason must name
ends with the comment `# here`, the sentence must match the pattern. It returns the converted function
or region and makes the calls itself.
"""

import contextlib
import inspect
import re
import sys

import pytest

import torch
import torchjanus
from torch import distributed, nn
from torchjanus import _core

PROGRAMS = []


def produces(code, sentence):
    """Marks a program."""

    def decorate(program):
        PROGRAMS.append(pytest.param(program, code, sentence, id=f"{code}-{program.__name__}"))
        return program

    return decorate


def called(f, *calls, errors=(), **options):
    """Converts `f` and calls it with each tuple of arguments."""
    f = torchjanus.function(f, **options)
    for arguments in calls:
        with contextlib.suppress(*errors):
            f(*arguments)
    return f


def ones(*sizes, times=5):
    return [(torch.ones(*sizes),)] * times


# --- what is not converted ------------------------------------------------------------------------


@produces("no_source", "there is no source of made: there is no text of <string>")
def text_made():
    space = {}
    exec("def made(x):\n    return x + 1", space)
    made = torchjanus.function(space["made"])
    for _ in range(5):
        made(torch.ones(2))
    return made, ("<string>", 1)


@produces("no_source", "there is no source of made: there is no text of <string>")
def text_made_that_is_called():
    space = {}
    exec("def made(x):\n    return x + 1", space)
    made = space["made"]

    def f(x):
        return made(x) * 2  # here

    return called(f, *ones(2))


@produces("no_source", "there is no source of len: it is not a function written in Python")
def function_of_c():
    f = torchjanus.function(len)  # here
    f([])
    return f


@produces("generator", "rows is a generator or coroutine")
def generator():
    def rows(x):  # here
        for row in x:
            yield row + 1

    return called(rows, *ones(2))


@produces("statement", "the statement 'ClassDef' is not converted yet")
def statement():
    def f(x):
        class Scale:  # here
            by = 2

        return x * Scale.by

    return called(f, *ones(2))


@produces("expression", "the expression 'an index of several tensors apart' is not converted yet")
def expression():
    def f(x):
        return x[[0], :, [1]]  # here

    return called(f, *ones(2, 2, 2))


@produces("unknown_callable", "the call of get_native_id is opaque and may change state")
def unknown_callable():
    import _thread

    def f(x):
        _thread.get_native_id()  # here
        return x + 1

    return called(f, *ones(2))


@produces("unsupported_argument", "the memory format of a conversion")
def unsupported_argument():
    def f(x):
        return x.to(x.dtype, memory_format=torch.channels_last)  # here

    return called(f, *ones(2, 2, 2, 2))


@produces("heap_write", "the assignment to .* changes an object that outlives the call")
def heap_write():
    def f(x):
        y = x + 1
        y.note = 1  # here
        return y

    return called(f, *[(torch.ones(2),) for _ in range(5)])


@produces("dynamic_control", "the outcome of the test varies")
def dynamic_control():
    def f(x):
        while x.sum() > 1:  # here
            x = x / 2
        return x

    return called(f, *[(torch.ones(2) * size,) for size in (0.1, 1, 2, 4, 8, 16)])


@produces("dynamic_value", "the name of an attribute varies and is not a number or a tensor")
def dynamic_value():
    def f(x):
        return x + getattr(x, f"{x.sum().item():.0f}", 1)  # here

    return called(f, *ones(2))


@produces("unsupported_tensor", "x: its layout is not strided")
def unsupported_tensor():
    def f(x):  # here
        return x + x

    return called(f, *[(torch.ones(2, 2).to_sparse(),)] * 5)


@produces("shape_mismatch", "aten::add: .*dimensions 2 and 3 do not broadcast")
def shape_mismatch():
    def f(x):
        try:
            return x + torch.ones(3)  # here
        except RuntimeError:
            return x

    return called(f, *ones(2))


@produces("autograd", "backward into a graph made before the call")
def autograd():
    w = torch.ones(2, requires_grad=True)

    def f(y):
        y.sum().backward()  # here
        return y

    return called(f, *[((w * 2),) for _ in range(5)])


@produces("hook", "the tensor w has a hook that is not converted")
def hook():
    w = torch.ones(2, requires_grad=True) * 2
    w.register_hook(lambda gradient: gradient * 2)

    def f(x):
        return w * x  # here

    return called(f, *ones(2))


@produces("optimizer", "a .grad that requires grad")
def optimizer():
    w = nn.Parameter(torch.ones(2))
    w.grad = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([w], 0.1)

    def f(x):
        optimizer.zero_grad(set_to_none=False)  # here
        return w * x

    f = torchjanus.function(f, profile_runs=0)  # the first run changes the flag
    f(torch.ones(2))
    return f


@produces("limit", "calls are nested more than .* deep")
def limit():
    def down(x, n):
        return x if n == 0 else down(x + 1, n - 1)  # here

    return called(down, *[(torch.ones(2), 400)] * 5)


@produces("limit", "a size or an index: 8 . 4611686018427387904 overflows")
def limit_of_sizes():
    def f(x):
        return x.reshape(-1, 1, 1)[:0].expand(-1, 2**62, 8).shape[1] * x.sum()  # here

    return called(f, *ones(5))


@produces("no_tensor_work", "no tensor operation ran in .*f")
def no_tensor_work():
    def f(n):  # here
        return n + 1

    return called(f, *[(1,)] * 5)


@produces("would_raise", "RuntimeError: numpy.. of what requires grad")
def would_raise():
    def f(x):
        y = x * weight
        with contextlib.suppress(RuntimeError):
            y.numpy()  # here
        return y

    weight = torch.ones(2, requires_grad=True)
    return called(f, *ones(2))


@produces("mode_active", "autocast within einsum is active")
def mode_active():
    def f(x):
        return torch.einsum("ij,jk->ik", x, x)  # here

    with torch.autocast("cpu"):
        return called(f, *ones(2, 2))


def called_alone(f, **options):
    """With a group of one process."""
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        return called(f, *ones(2), **options)
    finally:
        distributed.destroy_process_group()


@produces("communication", "torch.distributed.barrier communicates with other processes")
def communication():
    def f(x):
        y = x * 2
        distributed.barrier()  # here
        return y

    return called_alone(f)


@produces("communication", "Work.is_completed communicates with other processes")
def communication_that_is_asked():
    def f(x):
        y = x * 2
        work = distributed.all_reduce(y, async_op=True)
        work.wait()
        return y, work.is_completed()  # here

    return called_alone(f)


@produces(
    "communication",
    "ProcessGroup.allreduce .with these arguments. communicates with other processes",
)
def communication_by_the_group_itself():
    def f(x):
        y = x * 2
        distributed.group.WORLD.allreduce(tensors=[y]).wait()  # here
        return y

    return called_alone(f)


@produces(
    "communication",
    "ProcessGroup.all_gather_single .of tensors that do not fit. communicates with other processes",
)
def communication_of_other_sizes():
    def f(x):
        y = x * 2
        distributed.all_gather_into_tensor(torch.zeros(3), y)  # here
        return y

    return called_alone(f, errors=(RuntimeError, ValueError))


@produces("unsupported_argument", "an argument of a process group's size")
def argument_of_a_group():
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    group = distributed.group.WORLD

    def f(x):
        with contextlib.suppress(TypeError):
            x = x * group.size(1)  # here
        return x * 2

    try:
        return called(f, *ones(2))
    finally:
        distributed.destroy_process_group()


@produces("internal_error", "internal error: .*ZeroDivisionError")
def internal_error():
    def broken(*_):
        raise ZeroDivisionError

    def f(x):  # here
        return x

    _core.testing.set_generator(broken)
    try:
        return called(f, *ones(2))
    finally:
        _core.testing.set_generator(None)


@produces("limit", "memory ran out: the call runs in Python")
def out_of_memory():
    def f(x):  # here
        return (x * 3.625).sin() + x

    _core.testing.inject_fault("memory")
    try:
        return called(f, *ones(2), profile_runs=0)
    finally:
        _core.testing.inject_fault("none")


# --- why a graph is not entered or is left --------------------------------------------------------


@produces("guard_failed", "assumed .*x: f32\\[2\\].*, found f32\\[3\\]")
def guard_failed():
    def f(x):  # here
        return x + 1

    return called(f, *ones(2), *ones(3))


@produces("branch_changed", "the test 'was always true' went the other way")
def branch_changed():
    def f(x):
        return x + 1 if x.sum() > 0 else x - 1  # here

    return called(f, *ones(2), (-torch.ones(2),))


class Node:
    def __init__(self, child, value):
        self.child, self.value = child, value


@produces("kind_changed", "an object has a type that no profiled run has seen")
def kind_changed():
    def total(node, x):
        return x if node is None else total(node.child, x) * node.value  # here

    def f(node, x):
        return total(node, x)

    def chain(length, value):
        node = None
        for _ in range(length):
            node = Node(node, value)
        return node

    nodes = [chain(length, 2) for length in (1, 3, 2, 4, 2)]
    return called(f, *[(node, torch.ones(2)) for node in [*nodes, chain(3, 0.5)]])


@produces("overflow", "an integer exceeded 64 bits: ")
def overflow():
    def f(x, n):
        return x * (n * n / 1e20)  # here

    return called(f, *[(torch.ones(2), n) for n in (3, 4, 5, 6, 7, 8, 2**40)])


@produces("operation_failed", "an operator failed: .*")
def operation_failed():
    def f(x, i):
        return x[i]  # here

    f = called(f, *[(torch.ones(3), torch.tensor([n])) for n in (0, 1, 2, 0, 1)])
    with pytest.raises(IndexError):
        f(torch.ones(3), torch.tensor([7]))
    return f


@produces("operation_failed", "an operator failed: scalar_mod: division by zero")
def division_by_zero():
    def f(x, n):
        return x * (7 % n)  # here

    f = called(f, *[(torch.ones(2), n) for n in (3, 4, 5, 6, 7, 8)])
    with pytest.raises(ZeroDivisionError):
        f(torch.ones(2), 0)
    return f


@produces("unstable", "assumptions failed too often")
def unstable():
    def f(x, i):  # here
        return x[i]

    f = called(f, *[(torch.ones(3), torch.tensor([n])) for n in (0, 1, 2, 0, 1)])
    for _ in range(60):
        with pytest.raises(IndexError):
            f(torch.ones(3), torch.tensor([7]))
    return f


# --- the tests ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("program", "code", "sentence"), PROGRAMS)
def test_program_gives_its_reason(program, code, sentence, capfd):
    made = program()
    f, place = made if isinstance(made, tuple) else (made, place_in(program))
    reasons = f.stats()["reasons"]
    fitting = [each for each in reasons if each["code"] == code]
    assert fitting, reasons
    assert any(re.search(sentence, each["sentence"]) for each in fitting), fitting
    assert place in [(each["file"], each["line"]) for each in fitting], (place, fitting)
    assert all(each["file"] and each["line"] > 0 for each in reasons), reasons


def place_in(program):
    lines, start = inspect.getsourcelines(program)
    (offset,) = (i for i, line in enumerate(lines) if line.rstrip().endswith("# here"))
    return sys.modules[__name__].__file__, start + offset


def test_every_code_has_a_program():
    assert {program.values[1] for program in PROGRAMS} == set(_core.reason_codes())


def test_tests_that_the_source_does_not_show_are_written_out():
    images = torch.randn(100, 4)

    @torchjanus.function
    def rows(start, count):
        return images[start : start + count] * 2

    for start in range(0, 80, 8):
        rows(start, 8)
    text = torchjanus.explain(rows)
    assert "assumes 0 <= start" in text
    assert "assumes start+8 <= 100" in text
