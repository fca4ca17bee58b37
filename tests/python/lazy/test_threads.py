"""Two threads, each with lazy execution of its own, that use each other's tensors."""

import concurrent.futures
import contextlib
import threading
import time

import pytest
from apart import in_a_process, in_a_thread

import torch
import torchjanus
from torchjanus import _core


def in_turns(*bodies):
    """Runs generators, each in a thread of its own, a step of each at a time."""
    events = [threading.Event() for _ in bodies]
    errors = []

    def run(index):
        try:
            body = bodies[index]
            events[index].wait(60)
            for _ in body:
                events[index].clear()
                events[(index + 1) % len(bodies)].set()
                events[index].wait(60)
        except BaseException as error:
            errors.append(error)
        finally:
            events[(index + 1) % len(bodies)].set()

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(bodies))]
    for thread in threads:
        thread.start()
    events[0].set()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def read_each_other(around):
    shared = {"a": torch.arange(12.0, dtype=torch.float64).view(3, 4), "b": torch.ones(4).double()}

    def body(mine, other):
        with around():
            for i in range(8):
                shared[mine] = torch.tanh(shared[mine] * 0.5 + shared[other] * i)
                yield

    in_turns(body("a", "b"), body("b", "a"))
    return shared["a"], shared["b"]


def write_what_the_other_reads(around):
    weight = torch.ones(4, dtype=torch.float64)
    sums = []

    def writer():
        with around():
            for i in range(8):
                weight.mul_(1.5).add_(i)
                yield

    def reader():
        with around():
            for _ in range(8):
                sums.append((weight * 2).sum() + weight[1])
                yield

    in_turns(writer(), reader())
    return weight, sums


def train_in_both(around):
    weight = torch.ones(4, 4, dtype=torch.float64, requires_grad=True)

    def trainer(seed):
        x = torch.sin(torch.arange(16.0, dtype=torch.float64).view(4, 4) + seed)
        with around():
            for _ in range(8):
                torch.tanh(x @ weight).square().sum().backward()
                with torch.no_grad():
                    weight.sub_(weight.grad, alpha=0.1)
                    weight.grad = None
                yield

    in_turns(trainer(1), trainer(2))
    return weight.detach()


def read_without_noting(around):
    """The other thread runs operators as ever, on tensors that were made before."""
    weight = torch.ones(4, 4, dtype=torch.float64, requires_grad=True)
    seen = []

    def trainer():
        with around():
            for _ in range(8):
                (weight * 2).sum().backward()
                with torch.no_grad():
                    weight.sub_(weight.grad, alpha=0.1)
                    weight.grad = None
                yield

    def reader():
        for _ in range(8):
            seen.append((weight.detach() * 1.0).sum().item())
            seen.append(weight.tolist())
            yield

    in_turns(trainer(), reader())
    return seen, weight.detach()


def write_without_noting(around):
    weight = torch.ones(4, dtype=torch.float64)
    sums = []

    def reader():
        with around():
            for _ in range(8):
                sums.append((weight * 2).sum())
                yield

    def writer():
        for i in range(8):
            weight.mul_(1.5).add_(i)
            yield

    in_turns(reader(), writer())
    return weight, sums


def read_in_new_threads(around):
    weight = torch.ones(4, dtype=torch.float64)
    seen = []
    with around():
        for _ in range(8):
            weight.mul_(2.0).add_(1.0)
            thread = threading.Thread(target=lambda: seen.append(weight.sum().item()))
            thread.start()
            thread.join()
    return seen


def read_in_older_threads(around):
    weight = torch.ones(4, dtype=torch.float64)
    seen = []
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        executor.submit(time.sleep, 0.01).result()
        with around():
            for _ in range(8):
                weight.mul_(2.0).add_(1.0)
                seen.append(executor.submit(lambda: (weight + 0.5).tolist()).result())
    return seen


def convert_in_another_thread(around):
    weight = torch.ones(4, dtype=torch.float64)
    total = torchjanus.function(lambda factor: (weight * factor).sum())
    for _ in range(4):
        total(2.0)
    seen = []
    with concurrent.futures.ThreadPoolExecutor(1) as executor, around():
        for _ in range(8):
            weight.mul_(2.0).add_(1.0)
            seen.append(executor.submit(total, 2.0).result())
    return seen


@pytest.mark.parametrize(
    "program",
    [
        read_each_other,
        write_what_the_other_reads,
        train_in_both,
        read_without_noting,
        write_without_noting,
        read_in_new_threads,
        read_in_older_threads,
        convert_in_another_thread,
    ],
    ids=lambda p: p.__name__,
)
def test_threads(program):
    expected = program(contextlib.nullcontext)
    found = program(torchjanus.lazy)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_looks_of_both_at_once():
    """No lock is waited for in both directions."""
    weights = [torch.ones(64, 64) for _ in range(2)]
    sums = []

    def run(mine):
        with torchjanus.lazy():
            for _ in range(150):
                x = torch.tanh(weights[mine] * 1.01)
                weights[mine] = x + weights[1 - mine] * 0.001
                sums.append(x.sum().item())

    threads = [threading.Thread(target=run, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
        assert not thread.is_alive()
    assert len(sums) == 300


def test_one_thread_at_a_time_notes_until_torch_2_12():
    counts = []

    def body():
        x = torch.ones(4, dtype=torch.float64)
        before = _core.lazy_counts()["noted"]
        with torchjanus.lazy():
            for i in range(8):
                x = torch.tanh(x * 0.5 + i)
                yield
        counts.append((_core.lazy_counts()["noted"] - before, x.tolist()))

    in_turns(body(), body())
    in_turns(body())
    (first, x), (second, y), (third, z) = counts
    assert x == y == z and first and third
    assert bool(second) == (tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 13))


def test_threads_look_no_longer_than_others_note():
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        keys = lambda: torch._C._dispatch_tls_is_dispatch_key_included("Fake")
        assert not executor.submit(keys).result()
        with torchjanus.lazy():
            assert executor.submit(keys).result()
        executor.submit(lambda: torch.ones(2) + 1).result()
        assert not executor.submit(keys).result()


def test_a_thread_goes_on_with_the_graphs_of_one_that_has_ended():
    def train():
        with torchjanus.lazy():
            weight = torch.ones(8, 8)
            for _ in range(12):
                for _ in range(8):
                    weight = weight * 0.5 + 1
                weight.sum().item()
        return _core.lazy_counts()

    def thread():
        with concurrent.futures.ThreadPoolExecutor(1) as executor:
            return executor.submit(train).result()

    alone = in_a_thread(train)
    # A thread is joined before it has left its session: the next one may get another.
    assert any(alone["run_in_graphs"] < thread()["run_in_graphs"] for _ in range(8))


LOOKS_UNDER_THE_LOCK = """
import threading, torch, torchjanus
torchjanus._core.testing.let_times_decide(False)
torchjanus.options.disabled = {"background"}
weight = torch.ones(300, 300)
shown, ends = [None], []
def look():
    while not ends:
        if shown[0] is not None:
            shown[0].numpy()
thread = threading.Thread(target=look)
thread.start()
with torchjanus.lazy():
    for _ in range(30):
        value = weight
        for number in range(70):
            value = value * 1.0001 + 0.1
            if number % 20 == 0:
                value = (value @ weight) * 1e-3
        shown[0] = weight * 2 + 1
        (value + 1).numpy()
ends.append(True)
thread.join()
print("done")
"""


def test_looks_that_hold_the_lock():
    """A run in one thread may ask for Python's lock, which another one holds that waits for the run."""
    assert in_a_process(LOOKS_UNDER_THE_LOCK) == "done\n"


def test_two_lazy_threads_begin_to_read_a_tensor_at_the_same_time():
    """One of them writes it at once: by an operator that draws random numbers, and has to wait for both reads."""
    shared, found = [torch.ones(256)], []
    barrier = threading.Barrier(2, timeout=60)

    def work(writes):
        with torchjanus.lazy():
            for _ in range(1500):
                barrier.wait()
                mine = shared[0]
                result = mine * 2.0 + 1.0
                if not writes:
                    result.tolist()
                barrier.wait()
                if writes:
                    mine.bernoulli_(0.5)
                    found.append(result.tolist() == [3.0] * 256)
                    shared[0] = torch.ones(256)
                    shared[0].tolist()

    threads = [threading.Thread(target=work, args=(writes,)) for writes in (False, True)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 1500 and all(found)
