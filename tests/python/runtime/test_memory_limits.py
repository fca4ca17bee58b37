"""Memory that runs out while graphs are made: a process that may have little more than it has already. Nothing
ends it; a step gives what eager gives, or eager's own error."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import torch
import torchjanus
from torchjanus import _core

PROGRAM = """
import resource, sys
import torch, torchjanus
from torch import nn

least, converts = float(sys.argv[1]), sys.argv[2] == "converted"
torch.set_num_threads(2)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


def step(x, y):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.detach()


x, y = torch.randn(8, 16), torch.randn(8, 4)
step(x, y)
run = torchjanus.function(step, profile_runs=0) if converts else step
pages = int(open("/proc/self/statm").read().split()[0])
most = pages * resource.getpagesize() + int(least * 2**20)
resource.setrlimit(resource.RLIMIT_AS, (most, most))
try:
    for _ in range(12):
        loss = run(x, y)
    print("loss", loss.item())
    if converts:
        print("codes", *{each["code"] for each in run.stats()["reasons"]})
except (MemoryError, RuntimeError) as error:
    print("error", type(error).__name__)
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    file = tmp_path_factory.mktemp("memory") / "program.py"
    file.write_text(PROGRAM)
    return file


def run(program, least, kind, disabled=""):
    environment = {**os.environ, "TORCHJANUS_CACHE": "0", "TORCHJANUS_DISABLE": disabled}
    command = [sys.executable, str(program), str(least), kind]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("disabled", ["background", ""])
def test_no_limit_ends_the_process(program, disabled):
    """Mebibytes above what is in use."""
    expected = float(run(program, 1000, "eager").stdout.split()[1])
    with ThreadPoolExecutor(2) as pool:
        limits = [6, 14, 22, 40]
        outcomes = pool.map(lambda least: run(program, least, "converted", disabled), limits)
    for least, outcome in zip(limits, outcomes, strict=True):
        assert outcome.returncode == 0, (least, outcome.stderr[-500:])
        assert "internal error" not in outcome.stderr, (least, outcome.stderr)
        lines = dict(line.split(" ", 1) for line in outcome.stdout.splitlines())
        assert "error" in lines or float(lines["loss"]) == pytest.approx(expected, rel=1e-5), least


def test_without_memory_for_the_compiler_calls_run_in_python(program):
    outcome = run(program, 30, "converted", "background")
    assert "codes limit" in outcome.stdout


def test_memory_that_runs_out_in_a_call_is_no_bug(capfd):
    """And not for good."""

    def plain(x):
        return (x * 3.375).sin() + x

    step = torchjanus.function(plain, profile_runs=0)

    x = torch.randn(5)
    _core.testing.inject_fault("memory")
    for _ in range(110):
        torch.testing.assert_close(step(x), plain(x))
    stats = step.stats()
    assert stats["hits"] > 0
    assert {each["code"] for each in stats["reasons"]} == {"limit"}
    assert "internal error" not in capfd.readouterr().err
