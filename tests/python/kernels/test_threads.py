"""Kernels on several threads: what they cost is measured once, how many there are may change between calls, and
what is computed does not depend on them."""

import os
import subprocess
import sys

import pytest

import torch
import torchjanus
from kernels.test_kernel_cache import run_script
from torch import nn

PROGRAM = """
import os, sys, torch, torchjanus
torch.manual_seed(0)
x = torch.randn(64, 40_000)
step = lambda x: (torch.tanh(x) * 2 + x, (x * x).sum(0), torch.softmax(x, 1))
if "one thread" in sys.argv[0]:
    torch.set_num_threads(1)
eager = step(x)
before = len(os.listdir("/proc/self/task"))
f = torchjanus.function(step)
for _ in range(6):
    results = f(x)
for result, expected in zip(results, eager):
    torch.testing.assert_close(result, expected)
assert f.stats()["hits"] > 0
if torch.get_num_threads() == 1:
    assert len(os.listdir("/proc/self/task")) == before
"""

QUIET = {"TORCHJANUS_DISABLE": "background"}


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def figures(cache):
    ways = cache / "ways"
    return (
        [each for each in ways.iterdir() if b"handing_out:" in each.read_bytes()]
        if ways.exists()
        else []
    )


def test_one_thread_in_the_environment_means_one(script, tmp_path):
    cache = tmp_path / "cache"
    assert run_script(script, {**QUIET, "TORCHJANUS_CACHE": str(cache)}) == ""
    assert not figures(cache)  # there was nothing to measure


def test_one_thread_by_a_call_means_one(tmp_path):
    path = tmp_path / "one thread.py"
    path.write_text(PROGRAM)
    assert run_script(path, {**QUIET, "OMP_NUM_THREADS": "3"}) == ""


def test_what_threads_cost_is_kept(script, tmp_path):
    """Unless the machine is busy: then it is measured again by the next process."""
    cache = tmp_path / "cache"
    surroundings = {**QUIET, "TORCHJANUS_CACHE": str(cache), "OMP_NUM_THREADS": "2"}
    assert run_script(script, surroundings) == ""
    for kept in figures(cache):
        whole = kept.read_bytes()
        assert run_script(script, surroundings) == ""
        assert kept.read_bytes() == whole
        kept.write_bytes(whole[:-2])
        assert run_script(script, surroundings) == ""


def test_measuring_can_be_switched_off(script, tmp_path):
    cache = tmp_path / "cache"
    left_out = {"TORCHJANUS_DISABLE": "background,thread_cost", "OMP_NUM_THREADS": "2"}
    assert run_script(script, {**left_out, "TORCHJANUS_CACHE": str(cache)}) == ""
    assert not figures(cache)


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def test_results_do_not_depend_on_the_number_of_threads(threads):
    def step(x, w):
        y = torch.tanh(x) * w + x
        return y, y.sum(0), y.mean(1), torch.softmax(y, 1)

    torch.manual_seed(0)
    x, w = torch.randn(3000, 130), torch.randn(130)
    f = torchjanus.function(step)
    for _ in range(5):
        expected = f(x, w)
    for count in (1, 2, 3, 1, 5, 2):
        threads(count)
        assert all(map(torch.equal, f(x, w), expected)), count
    assert f.stats()["hits"] >= 6


def test_training_goes_on_while_the_number_changes(threads):
    def make():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(300, 500), nn.Tanh(), nn.Linear(500, 1))
        optimizer = torch.optim.Adam(model.parameters())

        def step(x):
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        return model, step

    (eager, eager_step), (model, step) = make(), make()
    converted = torchjanus.function(step)
    x = torch.randn(64, 300)
    for count in (2, 2, 2, 2, 1, 3, 2, 1, 2):
        threads(count)
        torch.testing.assert_close(converted(x), eager_step(x))
    for parameter, expected in zip(model.parameters(), eager.parameters(), strict=True):
        torch.testing.assert_close(parameter, expected, rtol=1e-4, atol=1e-5)
    assert converted.stats()["hits"] > 3


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
def test_a_forked_child_has_threads_of_its_own(threads):
    threads(2)
    x = torch.randn(200_000)
    f = torchjanus.function(lambda x: torch.tanh(x) * 2 + x)
    for _ in range(5):
        expected = f(x)
    child = os.fork()
    if child == 0:
        result = f(x)
        threads(1)  # torch's own loops would wait for the parent's threads
        os._exit(0 if torch.equal(result, expected) else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_threads_stay_as_they_are():
    code = """
import torch
before = torch.get_num_threads(), torch.get_num_interop_threads(), torch.__config__.parallel_info()
import torchjanus
model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(288, 9))
torchjanus.function(model)
for _ in range(6):
    model(torch.randn(16, 3, 8, 8)).sum().backward()
assert torchjanus.stats(model)["hits"] == 3, torchjanus.stats(model)
after = torch.get_num_threads(), torch.get_num_interop_threads(), torch.__config__.parallel_info()
assert before == after, (before, after)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
