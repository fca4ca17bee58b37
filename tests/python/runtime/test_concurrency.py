"""Threads, recursion, forked processes and Ctrl-C: graphs in the midst of what else goes on."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

import torch
import torchjanus
from torch import nn


class Counting(nn.Module):
    """A model that writes to its own attributes."""

    def __init__(self, seed):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.weight = nn.Parameter(torch.randn(4, 4, generator=generator))
        self.mean = torch.zeros(4)
        self.calls = 0
        self.scale = 1.0
        self.history = []

    def forward(self, x):
        self.calls += 1
        self.scale = 0.9 * self.scale + 0.05
        self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
        y = torch.tanh(x @ self.weight) * self.scale + self.mean
        self.history.append(y.mean().item())
        return y


def train(model, optimizer, x):
    loss = model(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def run_alone(step, seed, calls):
    model = Counting(seed)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    generator = torch.Generator().manual_seed(seed)
    losses = [step(model, optimizer, torch.randn(3, 4, generator=generator)) for _ in range(calls)]
    return losses, model


def check_same_state(model, expected):
    assert (model.calls, len(model.history)) == (expected.calls, len(expected.history))
    assert model.scale == pytest.approx(expected.scale)
    assert model.history == pytest.approx(expected.history, rel=1e-4, abs=1e-5)
    torch.testing.assert_close(model.mean, expected.mean)
    torch.testing.assert_close(model.weight, expected.weight)


def in_threads(functions):
    """Runs them all at once; gives their results or raises what one of them raised."""
    results = [None] * len(functions)
    start = threading.Barrier(len(functions))

    def work(index):
        start.wait()
        try:
            results[index] = functions[index]()
        except BaseException as error:
            results[index] = error

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), "a thread hangs"
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def test_threads_share_a_function_but_no_state():
    step = torchjanus.function(train)
    found = in_threads([lambda seed=seed: run_alone(step, seed, 25) for seed in range(4)])
    for seed, (losses, model) in enumerate(found):
        expected_losses, expected = run_alone(train, seed, 25)
        assert losses == pytest.approx(expected_losses, rel=1e-4, abs=1e-6)
        check_same_state(model, expected)


def test_threads_after_the_graph_is_there():
    step = torchjanus.function(train)
    run_alone(step, 9, 8)
    found = in_threads([lambda seed=seed: run_alone(step, seed, 25) for seed in range(3)])
    for seed, (_, model) in enumerate(found):
        check_same_state(model, run_alone(train, seed, 25)[1])


def test_threads_share_a_model_under_a_lock():
    lock, step, results = threading.Lock(), torchjanus.function(train), {}
    for name, function in (("eager", train), ("converted", step)):
        model = Counting(0)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        x = torch.ones(3, 4)

        def work(function=function, model=model, optimizer=optimizer, x=x):
            for _ in range(10):
                with lock:
                    function(model, optimizer, x)

        in_threads([work] * 3)
        results[name] = model
    check_same_state(results["converted"], results["eager"])


def test_a_converted_function_calls_itself():
    calls = []

    @torchjanus.function
    def descend(x, depth):
        calls.append(depth)
        if depth == 0:
            return x.tanh()
        return descend(x * 0.5, depth - 1) + x

    def eagerly(x, depth):
        return x.tanh() if depth == 0 else eagerly(x * 0.5, depth - 1) + x

    for depth in (0, 1, 2, 3, 5, 3, 8, 20, 2):
        x = torch.randn(4)
        calls.clear()
        torch.testing.assert_close(descend(x, depth), eagerly(x, depth))
        assert calls == list(range(depth, -1, -1))


def test_recursion_errors_are_those_of_eager_and_pass():
    def endless(x, depth):
        return endless(x + 1, depth + 1) if depth >= 0 else x

    converted = torchjanus.function(endless)
    for _ in range(4):
        with pytest.raises(RecursionError):
            converted(torch.zeros(2), 0)
        torch.testing.assert_close(converted(torch.zeros(2), -1), torch.zeros(2))


def test_a_hook_that_calls_the_function_again():
    model = nn.Linear(4, 4)
    step = torchjanus.function(lambda x: model(x).tanh())
    seen = []

    def again(module, inputs, output):
        if len(seen) < 30 and inputs[0].abs().max() > 0.1:
            seen.append(1)
            step(inputs[0] * 0.5)

    x = torch.ones(2, 4)
    for _ in range(4):
        step(x)
    model.register_forward_hook(again)
    for _ in range(4):
        torch.testing.assert_close(step(x), torch.tanh(F.linear(x, model.weight, model.bias)))
    assert seen


class Prepared(Dataset):
    """Items are made by a converted function, in the loader's worker processes."""

    def __init__(self, prepare):
        self.prepare = prepare

    def __len__(self):
        return 24

    def __getitem__(self, index):
        return self.prepare(torch.full((32, 32), float(index)))


def test_loader_processes_fork_while_graphs_run():
    prepare = torchjanus.function(lambda x: (x @ x.t()).tanh().mean(0) + x[0])
    model = nn.Linear(32, 32)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)

    @torchjanus.function
    def step(x):
        loss = model(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    for _ in range(6):
        prepare(torch.ones(32, 32))
        step(torch.ones(4, 32))
    loader = DataLoader(
        Prepared(prepare), 4, num_workers=2, timeout=60, multiprocessing_context="fork"
    )
    for _ in range(2):
        batches = []
        for batch in loader:
            batches.append(batch)
            step(batch)
        expected = torch.stack([torch.full((32,), 1.0 + i if i else 0.0) for i in range(24)])
        torch.testing.assert_close(torch.cat(batches), expected)


LONG_GRAPH = """
    import os, signal, sys, threading, time
    import torch, torchjanus

    weight = torch.eye(600)
    state = torch.zeros(600, 600)

    @torchjanus.function
    def step(x):
        for _ in range(60):
            x = (x @ weight).tanh()
        state.add_(1)
        weight.mul_(1.0)
        return x

    x = torch.randn(600, 600)
    for _ in range(5):
        step(x)
    assert step.stats()["hits"] > 0, step.explain()
    interrupted = 0
    before = int(state[0, 0])
    for attempt in range(6):
        delay = 0.01 + 0.02 * attempt
        threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT)).start()
        done = 0
        try:
            while True:
                step(x)
                done += 1
        except KeyboardInterrupt:
            interrupted += 1
        # Each call has been committed as a whole or not at all: the one that was running, too.
        rows = state.unique()
        assert len(rows) == 1, rows
        assert int(rows[0]) - before in (done, done + 1), (rows, before, done)
        before = int(rows[0])
    step(x)
    assert int(state[0, 0]) == before + 1
    print("interrupted", interrupted)
"""


def test_an_interrupted_graph_is_rolled_back(tmp_path):
    script = tmp_path / "long_graph.py"
    script.write_text(textwrap.dedent(LONG_GRAPH))
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "interrupted 6"


def test_a_fork_while_another_thread_runs_a_graph():
    """The child's own graphs work although the parent's thread held locks when it forked."""
    step = torchjanus.function(lambda x: (x * x).tanh().sum(1).cumsum(0))
    x = torch.eye(64)
    for _ in range(5):
        step(x)
    expected = step(x)
    stop = threading.Event()

    def work():
        while not stop.is_set():
            step(x)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(5):
            time.sleep(0.01)
            child = os.fork()
            if child == 0:
                right = torch.allclose(step(x), expected)
                os._exit(0 if right else 3)
            assert wait_for(child, 30) == 0
    finally:
        stop.set()
        thread.join()


def wait_for(child: int, seconds: float) -> int:
    """The exit code of a child process; one that hangs is killed."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -1
