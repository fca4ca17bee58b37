"""Kernels are compiled in the background: calls run in Python meanwhile, and whatever happens to the
compilation, the program does what it does."""

import gc
import itertools
import os
import subprocess
import sys
import textwrap
import time

import pytest
from scripts import run_both

import torch
import torchjanus
from torch import nn
from torchjanus._core import testing

numbers = itertools.count(1)


@pytest.fixture(autouse=True)
def in_background():
    """No kernel is known from before, as none is like another."""
    before = torchjanus.options.disabled
    torchjanus.options.disabled = (before - {"background"}) | {"kernel_cache"}
    yield
    testing.hold_background(False)
    testing.inject_fault("none")
    torchjanus.options.disabled = before


@pytest.fixture
def held():
    testing.hold_background(True)


def new_function():
    """A function whose kernel nobody has compiled."""
    scale = next(numbers) / 7919
    plain = lambda x: (x * scale).tanh() + x  # noqa: E731
    return torchjanus.function(plain), plain


def call_until_compiled(step, *arguments, seconds=60):
    end = time.monotonic() + seconds
    while step.stats()["compiling"]:
        assert time.monotonic() < end
        step(*arguments)
        time.sleep(0.001)


def test_calls_run_in_python_until_the_kernels_are_there(held):
    step, plain = new_function()
    x = torch.randn(5, 4)
    for _ in range(40):
        torch.testing.assert_close(step(x), plain(x))
    stats = step.stats()
    assert (stats["state"], stats["compiling"], stats["hits"]) == ("compiling", True, 0)
    assert (stats["calls"], stats["generated"], stats["misses"], stats["reasons"]) == (40, 1, 0, [])
    assert "is being compiled" in step.explain()
    testing.hold_background(False)
    call_until_compiled(step, x)
    torch.testing.assert_close(step(x), plain(x))
    stats = step.stats()
    assert (stats["state"], stats["compiling"], stats["generated"]) == ("graph", False, 1)
    assert stats["hits"] > 0 and stats["milliseconds"]["compiling"] > 0


def test_a_size_that_varies_meanwhile_makes_the_graph_anew(held):
    """The sizes of attributes are first seen when there is a graph that assumes them."""
    scale = next(numbers) / 7919

    class Cache:
        keys = torch.randn(3, 4)

    def grow(x):
        return (cache.keys * scale).tanh().sum() + x

    cache, step = Cache(), torchjanus.function(grow)
    x = torch.randn(2)
    for size in (3, 3, 3, 3, 4, 5, 6, 7):
        cache.keys = torch.randn(size, 4)
        torch.testing.assert_close(step(x), grow(x))
    stats = step.stats()
    assert (stats["generated"], stats["relaxations"], stats["misses"]) == (2, 1, 0)
    testing.hold_background(False)
    call_until_compiled(step, x)
    for size in (8, 9):
        cache.keys = torch.randn(size, 4)
        torch.testing.assert_close(step(x), grow(x))
    stats = step.stats()
    assert (stats["state"], stats["generated"]) == ("graph", 2) and stats["hits"] >= 2


def test_a_first_graph_stays_if_no_general_one_can_be_made(held):
    """A varying number of elements leaves the loop without a bound that the unpacking asks for."""
    scale = next(numbers) / 7919

    class Cache:
        keys = torch.randn(3, 4)

    def unpacked(x):
        first, *others = (cache.keys * scale).tanh().unbind()
        return sum(others, start=first) + x

    cache, step = Cache(), torchjanus.function(unpacked)
    x = torch.randn(4)
    for size in (3, 3, 3, 3, 4, 5, 3, 3):
        cache.keys = torch.randn(size, 4)
        torch.testing.assert_close(step(x), unpacked(x))
    testing.hold_background(False)
    cache.keys = torch.randn(3, 4)
    call_until_compiled(step, x)
    torch.testing.assert_close(step(x), unpacked(x))
    stats = step.stats()
    assert stats["state"] == "graph" and stats["hits"] > 0


def test_a_value_that_no_graph_leaves_open_waits_for_the_kernels(held):
    scale = next(numbers) / 7919

    class Mode:
        double = True

    def step_of(x):
        return (x * scale).tanh() * (2 if mode.double else 3)

    mode, step = Mode(), torchjanus.function(step_of)
    x = torch.randn(2)
    for _ in range(4):
        step(x)
    mode.double = False
    for _ in range(8):
        torch.testing.assert_close(step(x), step_of(x))
    assert step.stats()["generated"] == 1


def test_what_was_compiled_before_runs_at_once(held):
    step, plain = new_function()
    x = torch.randn(3, 2)
    for _ in range(4):
        step(x)
    testing.hold_background(False)
    call_until_compiled(step, x)
    testing.hold_background(True)
    again = torchjanus.function(lambda x: plain(x))
    for _ in range(4):
        torch.testing.assert_close(again(x), plain(x))
    assert again.stats()["hits"] == 1


def test_without_it_the_first_graph_waits(held):
    step, plain = new_function()
    x = torch.randn(3, 2)
    with torchjanus.options.without("background"):
        for _ in range(4):
            torch.testing.assert_close(step(x), plain(x))
    assert step.stats()["hits"] == 1


def test_a_training_step_goes_on_as_it_began():
    def build():
        torch.manual_seed(3)
        model = nn.Sequential(nn.Linear(6, 9), nn.GELU(), nn.LayerNorm(9), nn.Linear(9, 3))
        optimizer = torch.optim.AdamW(model.parameters(), 0.011)

        def step(x, y):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        return model, step

    model, plain = build()
    other, step = build()
    step = torchjanus.function(step)
    for i in range(400):
        torch.manual_seed(i)
        batch = torch.randn(5, 6), torch.randint(0, 3, (5,))
        torch.testing.assert_close(step(*batch), plain(*batch))
        if step.stats()["hits"] > 5:
            break
        time.sleep(0.01)
    assert step.stats()["hits"] > 5
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(one, two)


def test_calls_for_another_graph_do_not_count_as_trouble():
    step, plain = new_function()
    x, y = torch.randn(3, 2), torch.randn(3, 2).to(torch.float64)
    for _ in range(4):
        step(x)
    call_until_compiled(step, x)
    testing.hold_background(True)
    for _ in range(300):
        torch.testing.assert_close(step(y), plain(y))
    hits = step.stats()["hits"]
    torch.testing.assert_close(step(x), plain(x))  # the first graph serves what it knows
    stats = step.stats()
    assert (stats["state"], stats["compiling"], stats["generated"]) == ("graph", True, 2)
    assert stats["hits"] == hits + 1
    testing.hold_background(False)
    call_until_compiled(step, y)
    step(y)
    assert step.stats()["hits"] > hits + 1 and step.stats()["graphs"] == 2


def test_tests_that_go_another_way_meanwhile():
    scale = next(numbers) / 7919

    def plain(x):
        if x.sum() > 0:
            return (x * scale).exp()
        return (x * scale).sin() - x

    step = torchjanus.function(plain)
    x = torch.rand(4)
    for _ in range(4):
        step(x)
    call_until_compiled(step, x)
    testing.hold_background(True)
    for i in range(200):
        each = x if i % 3 == 0 else -x
        torch.testing.assert_close(step(each), plain(each))
    testing.hold_background(False)
    for i in range(60):
        each = x if i % 3 == 0 else -x
        torch.testing.assert_close(step(each), plain(each))
        time.sleep(0.002)
    assert step.stats()["state"] == "graph" and step.stats()["hits"] > 60


def test_what_the_graph_was_made_for_may_go_meanwhile(held):
    scale = next(numbers) / 7919
    holder = {"model": nn.Linear(3, 3)}
    step = torchjanus.function(lambda x: (holder["model"](x) * scale).tanh())
    x = torch.randn(2, 3)
    for _ in range(4):
        step(x)
    assert step.stats()["compiling"]
    holder["model"] = nn.Linear(3, 3)
    gc.collect()
    step(x)
    testing.hold_background(False)
    call_until_compiled(step, x)
    for _ in range(6):
        torch.testing.assert_close(step(x), (holder["model"](x) * scale).tanh())
        time.sleep(0.02)
    call_until_compiled(step, x)
    step(x)
    assert step.stats()["hits"] > 0


def test_memory_that_runs_out_there_is_no_bug(capfd):
    """Calls go on in Python, and later ones get their graph."""
    testing.inject_fault("memory")
    step, plain = new_function()
    x = torch.randn(3, 2)
    for _ in range(60):
        torch.testing.assert_close(step(x), plain(x))
        time.sleep(0.001)
        if step.stats()["reasons"]:
            break
    assert [each["code"] for each in step.stats()["reasons"]] == ["limit"]
    assert step.stats()["hits"] == 0
    for _ in range(110):
        torch.testing.assert_close(step(x), plain(x))
    call_until_compiled(step, x)
    step(x)
    assert step.stats()["hits"] > 0
    assert "internal error" not in capfd.readouterr().err
    other, plain = new_function()
    for _ in range(4):
        other(x)
    call_until_compiled(other, x)
    torch.testing.assert_close(other(x), plain(x))
    assert other.stats()["hits"] > 0


def test_a_forked_child_compiles_by_itself(held):
    step, plain = new_function()
    x = torch.randn(3, 2)
    for _ in range(5):
        step(x)
    assert step.stats()["compiling"]
    child = os.fork()
    if child == 0:
        testing.hold_background(False)
        call_until_compiled(step, x)
        right = torch.equal(step(x), step(x)) and step.stats()["hits"] > 0
        os._exit(0 if right else 3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    testing.hold_background(False)
    call_until_compiled(step, x)
    torch.testing.assert_close(step(x), plain(x))


def test_forks_while_kernels_are_compiled():
    x = torch.randn(3, 2)
    for _ in range(6):
        steps = [new_function() for _ in range(4)]
        for step, _ in steps:
            for _ in range(4):
                step(x)
        child = os.fork()
        for step, plain in steps:
            call_until_compiled(step, x)
            torch.testing.assert_close(step(x), plain(x))
        if child == 0:
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_regions_of_a_script(tmp_path):
    source = """
        import torch
        w = torch.ones(3, requires_grad=True)
        total = 0.0
        for i in range(40):
            loss = (w * 0.1234567).sinh().sum()
            loss.backward()
            with torch.no_grad():
                w -= 0.01 * w.grad
                w.grad = None
            total += loss.item()
        print(total)
    """
    stats = run_both(source, tmp_path)
    assert sum(each["generated"] for each in stats) > 0


PROGRAM = """
    import os, sys, time
    import torch, torchjanus

    def make(scale):
        return torchjanus.function(lambda x: (x * scale).tanh().exp().sin().erf() + x.softmax(-1))

    def begin(first):
        x = torch.randn(5, 4)
        for i in range(8):
            step = make((first + i) / 104729)
            for _ in range(4):
                step(x)
        assert step.stats()["compiling"]

    for number, delay in enumerate((0, 0.001, 0.01, 0.03)):
        child = os.fork()
        if child == 0:
            begin(100 * number)
            time.sleep(delay)
            sys.exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    begin(1000)
"""


def test_a_process_may_end_while_kernels_are_compiled(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(PROGRAM))
    ran = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "TORCHJANUS_DISABLE": "kernel_cache", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
