"""`torchjanus run --stats`: processes that a program forks write counters of their own."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
import multiprocessing
import os
import sys

import torch
from torch import nn

torch.set_num_threads(1)
model = nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def train(steps):
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(torch.ones(2, 4)).square().mean()
        loss.backward()
        optimizer.step()

def idle():
    pass
"""
PROCESSES = """
context = multiprocessing.get_context("fork")
for target, arguments in ((train, (12,)), (idle, ())):
    child = context.Process(target=target, args=arguments)
    child.start()
    print(child.pid, flush=True)
    child.join()
"""
FORK = """
child = os.fork()
if not child:
    train(12)
    sys.exit(0)
os.waitpid(child, 0)
print(child)
"""


def run(folder: Path, text: str) -> tuple[list[str], dict[str, Any]]:
    """What the program prints, and the counters of its first process."""
    (folder / "program.py").write_text(textwrap.dedent(text))
    done = subprocess.run(
        [sys.executable, "-m", "torchjanus", "run", "--stats", "stats.json", "program.py"],
        cwd=folder, capture_output=True, text=True, timeout=180,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), json.loads((folder / "stats.json").read_text())


@pytest.mark.parametrize("way", [PROCESSES, FORK], ids=["multiprocessing", "fork"])
def test_a_forked_child_that_trains_writes_a_file(way: str, tmp_path: Path) -> None:
    printed, stats = run(tmp_path, PROGRAM + "train(2)\n" + way)
    child = tmp_path / f"stats.json.{printed[0]}"
    assert stats["children"] == [str(child)]
    told = json.loads(child.read_text())
    assert max(each["calls"] for each in told["functions"]) == 14  # with those before the fork
    assert max(each["calls"] for each in stats["functions"]) == 2
    assert sorted(tmp_path.glob("stats.json.*")) == [child]


def test_files_of_other_runs_are_not_taken_for_children(tmp_path: Path) -> None:
    (tmp_path / "stats.json.17").write_text('{"parent": 1}')
    (tmp_path / "stats.json.18").write_text("no JSON")
    (tmp_path / "stats.json.old").write_text("{}")
    _, stats = run(tmp_path, PROGRAM + "train(2)\n")
    assert stats["children"] == []


def test_the_program_may_change_its_folder(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    _, stats = run(tmp_path, PROGRAM + "os.chdir('other')\ntrain(2)\n")
    assert stats["functions"] and not list((tmp_path / "other").iterdir())


SPAWN = """
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    for target, arguments in ((train, (12,)), (idle, ())):
        child = context.Process(target=target, args=arguments)
        child.start()
        print(child.pid, flush=True)
        child.join()
        assert child.exitcode == 0
"""


def test_a_spawned_child_is_converted_and_writes_a_file(tmp_path: Path) -> None:
    printed, stats = run(tmp_path, PROGRAM + SPAWN)
    child = tmp_path / f"stats.json.{printed[0]}"
    assert stats["children"] == [str(child)]
    told = json.loads(child.read_text())
    assert max(each["calls"] for each in told["functions"]) == 12
    assert sorted(tmp_path.glob("stats.json.*")) == [child]


def test_a_pool_of_spawned_processes_gives_what_it_gives_eagerly(tmp_path: Path) -> None:
    pool = """
    import helper

    if __name__ == "__main__":
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            print(sum(pool.map(helper.square, range(20))))
    """
    (tmp_path / "helper.py").write_text(
        "import torch\n\ndef square(n):\n    total = torch.zeros(())\n"
        "    for i in range(20):\n        total = total + torch.tensor(float(n * n)) / 20\n"
        "    return round(total.item(), 3)\n"
    )
    printed, _ = run(tmp_path, PROGRAM + textwrap.dedent(pool))
    assert printed == ["2470.0"]
