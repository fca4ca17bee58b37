"""Whoever looks at a tensor whose value is pending sees what eager would have computed."""

import subprocess
import sys
import warnings
import weakref
from pathlib import Path

import pytest
from apart import in_a_process, in_a_thread
from lazily import assert_as_eager
from looks_at_tensors import LOOKS

import torch
import torchjanus
from torchjanus import _core


def made():
    return torch.arange(12.0).reshape(3, 4) * 2 + 1


EXPECTED = made().tolist()


def outcome(look):
    """Whoever has put another `Tensor.__getitem__` in place makes torch refuse tensors within lists."""
    tensor = made()
    was_pending = _core.is_pending(tensor)
    try:
        return look(tensor), was_pending
    except TypeError as error:
        return str(error), was_pending


@pytest.mark.parametrize("look", LOOKS)
def test_looks(look):
    expected, _ = outcome(LOOKS[look])
    assert expected in (EXPECTED, "len() of a 0-d tensor")
    for _ in range(3):
        with torchjanus.lazy():
            found, was_pending = outcome(LOOKS[look])
            assert found == expected
    assert was_pending


#: Functions of torch that read their operands' memory without an operator for it.
READERS = {
    "max_pool1d": lambda t: torch.nn.functional.max_pool1d(t, 2),
    "tensor_split by a tensor": lambda t: t.tensor_split((t[0, :2] - t[0, 0] + 1).long()),
    "ctc_loss": lambda t: torch.nn.functional.ctc_loss(
        t.log_softmax(1)[:, None],
        torch.ones(1, 2).long(),
        t[:1, 0].long() * 0 + 3,
        t[:1, 1].long() * 0 + 2,
    ),
    "packed sequence": lambda t: torch.nn.utils.rnn.pad_packed_sequence(
        torch.nn.utils.rnn.pack_padded_sequence(t[None, :, :], t[:1, 0].long() * 0 + 2, True)
    ),
    "histogramdd": lambda t: torch.histogramdd(t[:, :2], [3, 3]),
}


@pytest.mark.parametrize("reader", READERS)
def test_functions_that_read_memory_themselves(reader):
    with torch.no_grad():
        expected = READERS[reader](made())
        for _ in range(4):
            with torchjanus.lazy():
                found = READERS[reader](made())
            torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_a_tensor_that_dies_is_never_computed():
    with torchjanus.lazy():
        for _ in range(3):
            made()
        before = _core.lazy_counts()["never_run"]
        tensor = made()
        alive = weakref.ref(tensor)
        del tensor
        assert alive() is None
        torchjanus.synchronize()
        assert _core.lazy_counts()["never_run"] >= before + 2


def test_storages_die_with_their_tensors():
    with torchjanus.lazy():
        for _ in range(3):
            tensor = made()
            alive = torch.UntypedStorage._weak_ref(tensor.untyped_storage())
            assert not torch.UntypedStorage._expired(alive)
            del tensor
            assert torch.UntypedStorage._expired(alive)
            torch.UntypedStorage._free_weak_ref(alive)


def test_nothing_is_pending_behind_the_end():
    with torchjanus.lazy():
        for _ in range(3):
            tensor = made()
    assert not _core.is_pending(tensor)
    assert tensor.tolist() == EXPECTED


def test_nested():
    with torchjanus.lazy():
        for _ in range(3):
            with torchjanus.lazy():
                tensor = made()
            assert _core.is_pending(tensor) or _core.lazy_counts()["noted"] == 0
    assert tensor.tolist() == EXPECTED


def test_decorator():
    @torchjanus.lazy()
    def step():
        return made()

    for _ in range(4):
        assert step().tolist() == EXPECTED


def test_converted_functions_within_run_as_graphs():
    @torchjanus.function
    def double(x):
        return (x * 2).tanh() + x

    with torchjanus.options.without("background"), torchjanus.lazy():
        for _ in range(8):
            x = made() / 10
            expected = (x * 2).tanh() + x
            assert torch.equal(double(x), expected)
    assert torchjanus.stats(double)["hits"] >= 4


def test_callbacks_come_in_order_with_the_values_of_the_fetch():
    seen = []
    with torchjanus.lazy():
        total = torch.zeros(())
        for i in range(6):
            total.add_(i)
            torchjanus.fetch(total, lambda value, i=i: seen.append((i, value.item())))
    assert seen == [(0, 0.0), (1, 1.0), (2, 3.0), (3, 6.0), (4, 10.0), (5, 15.0)]


def test_fetch_outside():
    seen = []
    torchjanus.fetch(torch.ones(()), lambda value: seen.append(value.item()))
    assert seen == [1.0]


@pytest.mark.parametrize("wrong", [(3, print), (torch.ones(()), 3)])
def test_fetch_of_something_else(wrong):
    with pytest.raises(TypeError, match="fetch"):
        torchjanus.fetch(*wrong)


def test_synchronize_runs_callbacks():
    seen = []
    with torchjanus.lazy():
        for _ in range(3):
            torchjanus.fetch(made().sum(), lambda value: seen.append(value.item()))
        torchjanus.synchronize()
        assert seen == [144.0] * 3


RAISES = {
    "sizes that do not fit": lambda t: t + torch.ones(5),
    "class outside": lambda t: torch.nn.functional.nll_loss(t, torch.tensor([0, 9, 1])),
    "row outside": lambda t: torch.nn.functional.embedding(torch.tensor([7]), t),
    "integers divided by zero": lambda t: t.long() // torch.zeros(3, 4, dtype=torch.long),
    "negative power of integers": lambda t: torch.arange(3) ** -1,
    "number too large": lambda t: torch.zeros(3, dtype=torch.half).fill_(1e6),
    "slope that in place has no gradient": lambda t: (
        torch.nn.functional.leaky_relu_(t.clone().requires_grad_() * 1, -0.5).sum().backward()
    ),
    "overlap": lambda t: t.view(-1)[:8].copy_(t.view(-1)[2:10]),
}


@pytest.mark.parametrize("case", RAISES)
def test_errors_come_at_their_lines(case):
    with pytest.raises(Exception) as eager:  # noqa: PT011
        RAISES[case](made())
    with torchjanus.lazy():
        for _ in range(4):
            with pytest.raises(type(eager.value)) as raised:
                RAISES[case](made())
            assert str(raised.value) == str(eager.value)


def test_numbers_that_vary_are_inputs():
    expected = [(torch.full((100,), 2.0) * n + 1).sum().item() for n in range(1, 30)]
    with torchjanus.options.without("background"), torchjanus.lazy():
        before = _core.lazy_counts()["run_in_graphs"]
        found = []
        for n in range(1, 30):
            found.append((torch.full((100,), 2.0) * n + 1).sum().item())
        assert _core.lazy_counts()["run_in_graphs"] > before
    assert found == expected


def test_an_exception_leaves_nothing_pending():
    tensor = torch.zeros(3)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), torchjanus.lazy():
            tensor.add_(1)
            1 / 0  # noqa: B018
    assert tensor.tolist() == [3.0] * 3


def test_in_a_process_of_its_own():
    """Without a warm cache of kernels, and with threads of workers."""
    program = Path(__file__).with_name("trains_lazily.py")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "equal"


HANDLER_THAT_TRAINS = """
import signal, torch, torchjanus
torchjanus._core.testing.let_times_decide(False)
torchjanus.options.disabled = {"background"}
small = torch.nn.Linear(4, 1)
calls = 0

def train_small(number, frame):
    global calls
    calls += 1
    small(torch.ones(2, 4)).sum().backward()
    signal.setitimer(signal.ITIMER_REAL, 0.002)  # not while one runs, on a slow machine

signal.signal(signal.SIGALRM, train_small)
signal.setitimer(signal.ITIMER_REAL, 0.002)
weight = torch.eye(64, requires_grad=True)
with torchjanus.lazy():
    for step in range(300):
        value = torch.ones(64, 64)
        for _ in range(20):
            value = torch.tanh(value @ weight)
        value.sum().backward()
        value.sum().item()
signal.setitimer(signal.ITIMER_REAL, 0)
assert calls > 10 and small.weight.grad is not None
print("done")
"""


def test_handlers_of_signals_run_between_the_programs_lines():
    """Within a look they would run below autograd."""
    assert in_a_process(HANDLER_THAT_TRAINS) == "done\n"


def test_what_warns_each_time_runs_at_once():
    def convert():
        caught = []
        weight = torch.ones(3, dtype=torch.complex128)
        for _ in range(5):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                try:
                    (weight * 1j).to(torch.float64)
                except UserWarning as error:
                    caught.append(str(error))
        return caught

    torch.set_warn_always(True)
    try:
        expected = convert()
        with torchjanus.lazy():
            found = convert()
    finally:
        torch.set_warn_always(False)
    assert len(expected) == 5
    assert found == expected


def test_sizes_that_never_come_again_are_forgotten():
    def program():
        with torchjanus.lazy():
            most = 0
            for size in range(3, 4003):
                y = torch.ones(size) * 2 + 1
                most = max(most, _core.lazy_counts()["kinds"]) if size % 100 == 0 else most
                assert y.sum().item() == 3 * size
            return most

    assert 1000 < in_a_thread(program) < 8400


def results_of_default_dtypes():
    results = []
    for dtype in (torch.float32, torch.float64) * 3:
        torch.set_default_dtype(dtype)
        results.append([torch.ones(2) / 3, torch.arange(3).exp(), torch.arange(3) / 2])
    torch.set_default_dtype(torch.float32)
    return [[(each.dtype, each.tolist()) for each in some] for some in results]


def test_settings_change_behind_what_is_pending():
    expected = results_of_default_dtypes()
    for _ in range(2):
        with torchjanus.lazy():
            assert results_of_default_dtypes() == expected
    assert _core.lazy_counts()["run_in_graphs"] > 0


def test_a_slice_of_a_storage_is_in_the_same_memory():
    def program():
        x = torch.arange(8.0, dtype=torch.float64)
        view = torch.tensor([], dtype=torch.float64).set_(x.untyped_storage()[0:64])
        found = []
        for _ in range(12):
            x.add_(1.0)
            found.append(view.tolist())
            view.mul_(1.01)
            found.append((x * 2).tolist())
        return found

    assert_as_eager(program)


def test_a_byte_of_a_storage():
    for _ in range(4):
        with torchjanus.lazy():
            assert (torch.zeros(8, dtype=torch.uint8) + 3).untyped_storage()[2] == 3


def test_a_fork_runs_what_is_pending():
    """Large operators hang in the child, whose threads are gone."""
    program = """
import os, torch, torchjanus
torch.set_num_threads(2)
with torchjanus.lazy():
    x = torch.arange(4_000_000.0)
    for _ in range(4):
        (x * 2 + 1).sum().item()
    y = x * 2 + 1
    assert torchjanus._core.is_pending(y)
    if (child := os.fork()) == 0:
        os._exit(0 if y[5].item() == 11.0 else 3)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert in_a_process(program) == "0\n"


def test_the_programs_exception_comes_before_one_of_a_callback():
    def fails(value):
        raise KeyError(value.item())

    with pytest.raises(ValueError, match="the program's own"), torchjanus.lazy():
        for _ in range(4):
            y = made().sum()
            torchjanus.fetch(y, float)
        torchjanus.fetch(y, fails)
        raise ValueError("the program's own")
    with pytest.raises(KeyError):
        torchjanus.synchronize()
    torchjanus.synchronize()


def test_the_number_of_threads_changes_behind_what_is_pending():
    """It decides how a sum is split, and so how it is rounded."""
    number = torch.get_num_threads()

    def program():
        x, found = torch.rand(1_000_003), []
        for _ in range(4):
            torch.set_num_threads(2)
            total = (x * 1.5).sum()
            torch.set_num_threads(1)
            pending.append(_core.is_pending(total))
            found.append(total.item())
        return found

    pending = []
    try:
        with torchjanus.options.without("kernels"):
            assert_as_eager(program)
    finally:
        torch.set_num_threads(number)
    assert not any(pending)
