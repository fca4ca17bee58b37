"""What `torchjanus run --explain` says first: how much ran as graphs, how fast, and what to do about the rest."""

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import torch
import torchjanus
from torchjanus import reasons, summary

MODEL = """
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(*[nn.Linear(8, 8) for _ in range(12)])
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
"""
STEP = """
    optimizer.zero_grad()
    loss = F.mse_loss(model(torch.randn(4, 8)), torch.zeros(4, 8))
    loss.backward()
    optimizer.step()
"""


def explained(folder: Path, text: str, **environment: str) -> list[str]:
    """The first screen of the report on a program: its lines."""
    program = folder / "program" / "program.py"
    program.parent.mkdir()
    program.write_text(textwrap.dedent(text))
    done = subprocess.run(
        [sys.executable, "-m", "torchjanus", "run", "--explain", program.name],
        cwd=program.parent,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    screen = done.stderr[done.stderr.index("torchjanus: ") :].split("\n\n")[0].splitlines()
    assert len(screen) <= 10 and max(map(len, screen)) <= 160, screen
    return screen


def test_share_speed_and_spent_time(tmp_path: Path) -> None:
    screen = explained(tmp_path, MODEL + "for _ in range(200):" + STEP)
    head = re.fullmatch(
        r"torchjanus: (\d+) % of the time \(.+ of .+ m?s\) and (\d+) % of the calls \((\d+) of (\d+)\) "
        r"ran as graphs, in 1 of 1 function or loop",
        screen[0],
    )
    assert head, screen
    hits, calls = int(head[3]), int(head[4])
    assert calls == 200 and 100 < hits < 200
    assert int(head[2]) == 100 * hits // calls
    assert re.search(r"before: .+ in profiled runs, .+ to make the graphs", screen[1])
    assert re.search(
        r"speed against eager: <module>, loop at line \d+: (at most )?[\d.]+ × \(", screen[2]
    )


def test_speed_that_was_not_measured(tmp_path: Path) -> None:
    text = MODEL + "for _ in range(8):" + STEP
    screen = explained(tmp_path, text, TORCHJANUS_DISABLE="background,budget")
    assert "not measured" in screen[2], screen


def test_costliest_statement_comes_first_with_what_to_do(tmp_path: Path) -> None:
    screen = explained(
        tmp_path,
        MODEL + "import time\nfor _ in range(60):" + STEP + "    time.sleep(0.004)\n",
    )
    lines = (tmp_path / "program" / "program.py").read_text().splitlines()
    line = lines.index("    time.sleep(0.004)") + 1
    place = screen.index("  what did not convert and cost most:")
    assert f"1. program.py:{line}: " in screen[place + 1]
    assert re.search(r"\d ms in \d+ runs in Python, \d+ % of the time: ", screen[place + 1])
    assert "[unknown_callable] the call of sleep is opaque" in screen[place + 1]
    assert screen[place + 2] == f"     try: {reasons.remedy('unknown_callable')}"


def test_too_few_calls(tmp_path: Path) -> None:
    screen = explained(tmp_path, MODEL + "for _ in range(2):" + STEP)
    assert screen[0] == "torchjanus: nothing was converted: no call ran as a graph"
    assert "<module>, loop at line" in screen[1] and "was profiled 2 of 3 times" in screen[1]
    assert "try: run more steps" in screen[2]


def test_parts_of_calls_ran_in_graphs() -> None:
    @torchjanus.function
    def step(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    step(torch.ones(2))
    told = torchjanus.stats(step)
    co_executed = {"state": "co-executed", "noted": 200, "in_graphs": 150}
    told["co_execution"] = {**told["co_execution"], **co_executed}
    screen = summary.first_screen([told], None, None)
    assert "no call ran as one graph; in co-execution, 75 % of the operators (150 of 200)" in screen
    assert "nothing was converted" not in screen


def test_the_budget_did_not_suffice(tmp_path: Path) -> None:
    text = MODEL + "for _ in range(20):" + STEP
    screen = explained(tmp_path, text, TORCHJANUS_DISABLE="background")
    assert "the program ended before its time paid for a graph" in screen[1]
    assert "TORCHJANUS_DISABLE=budget" in screen[2]


def test_a_program_that_asks_in_the_middle_has_not_ended() -> None:
    @torchjanus.function
    def step(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    step(torch.ones(2))
    told = torchjanus.stats(step) | {"compiling": True, "state": "compiling"}
    name = f"the first graph of {told['name']}"
    running = summary.first_screen([told], None, None)
    assert f"{name} is being compiled in the background\n    try: run more steps" in running
    assert f"the program ended while {name} was being" in summary.first_screen([told], None, 1.0)
    profiled = summary.first_screen([torchjanus.stats(step)], None, None)
    assert "program ended" not in running + profiled
    assert "was profiled 1 of 3 times" in profiled


def test_no_loop_was_found(tmp_path: Path) -> None:
    screen = explained(tmp_path, "print(1)")
    assert "no loop or function with backward() or an evaluation was found" in screen[1]
    assert "@torchjanus.function" in screen[2]
    assert "not watched yet" in screen[3]


def test_a_loop_was_found_and_not_entered(tmp_path: Path) -> None:
    screen = explained(tmp_path, MODEL + "for _ in range(0):" + STEP)
    assert "found (program.py:" in screen[1] and "none was entered" in screen[1]


def test_no_tensor_work(tmp_path: Path) -> None:
    screen = explained(
        tmp_path,
        """
        import random

        kept = []
        for step in range(20):
            kept.append(random.gauss(0, 1))
        """,
    )
    assert "no tensor operation ran in" in screen[1], screen


def test_a_trace_function_is_active(tmp_path: Path) -> None:
    screen = explained(
        tmp_path,
        MODEL + "import sys\nsys.settrace(lambda *seen: None)\nfor _ in range(20):" + STEP,
    )
    assert screen[1] == "  20 of 20 calls were left alone: a trace function is active", screen
    assert screen[2] == f"    try: {reasons.remedy('mode_active')}"


PACKAGE = """
def fit(step, times):
    for _ in range(times):
        step()
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that calls the program's functions in a loop."""
    (tmp_path / "installed").mkdir()
    (tmp_path / "installed" / "fitkit.py").write_text(PACKAGE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "installed"))


def test_the_watch_saw_no_function_called_again(tmp_path: Path, package: None) -> None:
    screen = explained(
        tmp_path,
        """
        import time
        import torch

        end = time.perf_counter() + 2
        x = torch.randn(4)
        while time.perf_counter() < end:
            x += 1
        """,
    )
    assert re.search(r"calls were watched \(\d+ windows?, \d+ calls and returns\)", "".join(screen))


def test_the_watch_could_not_convert_what_it_found(tmp_path: Path, package: None) -> None:
    screen = explained(
        tmp_path,
        MODEL
        + f"""
import fitkit

space = globals()
exec('''def step():{STEP}''', space)
fitkit.fit(step, 3000)
""",
    )
    assert re.search(
        r"step \(<string>:1\) is called again and again, but no file has its source",
        "".join(screen),
    )


def test_what_the_watch_did_is_counted(tmp_path: Path, package: None) -> None:
    text = (
        MODEL
        + "import fitkit\ndef step():"
        + STEP.replace("loss.backward()", "getattr(loss, 'backward')()")
    )
    text += "fitkit.fit(step, 3000)\n"
    text += "import json, torchjanus\nprint(json.dumps(torchjanus._core.seen_by_watch()))\n"
    program = tmp_path / "program" / "program.py"
    program.parent.mkdir()
    program.write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "torchjanus", "run", program],
        cwd=tmp_path, capture_output=True, text=True, timeout=180,
    )  # fmt: skip
    seen = json.loads(done.stdout)
    assert seen["windows"] > 0 and seen["tensor_calls"] > 0 and not seen["error"], seen
    assert [(each["name"], each["why_not"]) for each in seen["functions"]] == [("step", "")], seen
    plain = subprocess.run(
        [sys.executable, "-c", "import torchjanus; print(torchjanus._core.seen_by_watch())"],
        capture_output=True, text=True, timeout=180,
    )  # fmt: skip
    assert plain.stdout == "None\n"
