"""Processes that a program forks, spawns or runs: they are converted, and the program's report has what they did."""

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


def run(folder: Path, text: str, *arguments: str) -> tuple[list[str], dict[str, Any]]:
    """What the program prints, and the counters of its first process."""
    (folder / "program.py").write_text(textwrap.dedent(text))
    done = subprocess.run(
        [sys.executable, "-m", "torchjanus", "run", "--stats", "stats.json", "program.py", *arguments],
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


def test_a_forked_child_leaves_the_report_to_its_parent(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM + "train(2)\n" + FORK))
    done = subprocess.run(
        [sys.executable, "-m", "torchjanus", "run", "--explain", "program.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=180,
    )  # fmt: skip
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr


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
    context = multiprocessing.get_context(sys.argv[1])
    for target, arguments in ((train, (12,)), (idle, ())):
        child = context.Process(target=target, args=arguments)
        child.start()
        print(child.pid, flush=True)
        child.join()
        assert child.exitcode == 0
"""


@pytest.mark.parametrize("way", ["spawn", "forkserver"])
def test_a_spawned_child_is_converted_and_writes_a_file(way: str, tmp_path: Path) -> None:
    printed, stats = run(tmp_path, PROGRAM + SPAWN, way)
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


TRAIN = """
import sys
import torch

def train():
    torch.manual_seed(0)
    w = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    for i in range(20):
        loss = (w - torch.arange(3.0)).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.9f}", __name__, sys.argv, sys.orig_argv[1:], sys.path[0])

if __name__ == "__main__":
    train()
"""
SHOWS = """
import sys
print(__name__, sys.argv, sys.orig_argv[1:], sys.path[0], __file__, __spec__ and __spec__.name, __package__)
print(sorted(globals()), type(__loader__).__name__, sys.flags.optimize, sys.warnoptions)
print([each for each in sys.modules if each.startswith("tor" + "ch")])  # a file that names it brings it
"""
STARTS = """
import subprocess
import sys

LINES = [
    ["train.py", "a", "-m"], ["-m", "package.train", "b"],
    ["-c", "import train, sys; print(sorted(globals())); train.train()", "c"],
    ["shows.py", "-c", "x"], ["-OO", "-X", "utf8", "-Wignore", "-W", "error", "shows.py"], ["-m", "package"],
    ["-I", "shows.py"], ["-m", "package.nothing"], ["nothing.py"], ["package"], ["--version"], ["-"], ["-c"],
    ["raises.py"], ["-m", "package.raises"], ["wrong.py"], ["-c", "import sys\\nsys.exit(3)"], ["-uc", "1 / 0"],
    ["-c", "import torch; print(torch.__spec__.name, type(torch.__spec__.loader).__name__)"],
]
children = [
    subprocess.Popen(
        [sys.executable, *line], text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )
    for line in LINES
]
for line, child in zip(LINES, children):
    print(child.args[1:] == line, line, *child.communicate(), child.returncode, sep="\\n")
"""


def test_pythons_that_a_program_runs_are_converted_and_show_nothing_of_it(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    raises = "def f():\n    raise KeyError(1)\nf()\n"
    for name, text in {
        "train.py": TRAIN, "shows.py": SHOWS, "raises.py": raises, "wrong.py": "def f(:\n", "starts.py": STARTS,
        "package/__init__.py": "", "package/__main__.py": SHOWS, "package/train.py": TRAIN, "package/raises.py": raises,
    }.items():  # fmt: skip
        (tmp_path / name).write_text(text.replace("\\\\n", "\\n"))
    told = []
    for how in ([], ["-m", "torchjanus", "run", "--explain", "--stats", "stats.json"]):
        done = subprocess.run(
            [sys.executable, *how, "starts.py"],
            cwd=tmp_path, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        told.append(done)
    assert told[1].stdout == told[0].stdout
    children = json.loads((tmp_path / "stats.json").read_text())["children"]
    assert len(children) == 3
    for child in children:
        assert max(each["calls"] for each in json.loads(Path(child).read_text())["functions"]) == 20
        assert f"\nprocess {child.rpartition('.')[2]}: " in told[1].stderr


def test_what_a_child_of_a_child_did_is_in_the_report(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "between.py").write_text(
        "import subprocess, sys, torch\nprint(subprocess.run([sys.executable, 'train.py']).returncode)\n"
    )
    (tmp_path / "program.py").write_text(
        "import subprocess, sys\nsubprocess.run([sys.executable, 'between.py'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "torchjanus", "run", "--explain", "program.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.stdout.endswith("0\n"), done.stderr
    assert done.stderr.count("\nprocess ") == 2
