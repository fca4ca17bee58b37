"""What a run of a program has found out decides when the next one makes graphs, and never what it prints.

The processor's time is simulated.
"""

import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from simulated_account import accounts, ran

from torchjanus import _core, history
from torchjanus._core import testing


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[float], None]]:
    """What is kept on disk lies in a folder of the test."""
    monkeypatch.setenv("TORCHJANUS_CACHE", str(tmp_path / "cache"))
    with accounts() as begin:
        yield begin
    _core.recall([])


def earlier(told: dict[str, Any], spent: float, saved: float, passed: float) -> None:
    _core.recall([(told["name"], told["file"], told["line"], spent, saved, passed)])


def test_where_graphs_paid_they_come_at_once(account: Callable, tmp_path: Path) -> None:
    account(1e9)
    first = ran(tmp_path, steps=60, milliseconds=1)
    assert first["profiled"] == 0
    earlier(first, spent=300, saved=4000, passed=60)
    account(1e9)
    second = ran(tmp_path, steps=60, milliseconds=1)
    assert second["generated"] == 1
    assert second["hits"] > 50


def test_where_they_did_not_the_program_must_run_longer(account: Callable, tmp_path: Path) -> None:
    account()
    first = ran(tmp_path, steps=100, milliseconds=1000)
    assert first["hits"] > 0
    earlier(first, spent=300, saved=100, passed=100_000)
    account()
    second = ran(tmp_path, steps=150, milliseconds=1000)
    assert second["profiled"] == second["generated"] == 0
    account()
    third = ran(tmp_path, steps=250, milliseconds=1000)
    assert third["generated"] == 1
    assert 0 < third["hits"] < 60


def test_a_run_in_which_nothing_was_tried_says_nothing(account: Callable, tmp_path: Path) -> None:
    account()
    first = ran(tmp_path, steps=100, milliseconds=1000)
    earlier(first, spent=0, saved=0, passed=1e9)
    account()
    assert ran(tmp_path, steps=100, milliseconds=1000)["hits"] == first["hits"]


def test_it_is_kept_for_the_next_process(account: Callable, tmp_path: Path) -> None:
    account()
    told = ran(tmp_path, steps=400, milliseconds=1000)
    program = Path(told["file"])
    past = history.History(program)
    assert past.regions == {}
    past.keep()
    spent, saved, passed = history.History(program).regions[
        told["name"], told["file"], told["line"]
    ]
    assert spent == told["conversion"]["spent"] > 0
    assert saved == told["conversion"]["saved"] != 0
    assert passed > 0
    assert history.History(tmp_path / "another.py").regions == {}


def test_what_was_not_tried_again_is_kept(account: Callable, tmp_path: Path) -> None:
    account(1e9)
    past = history.History(tmp_path / "program.py")
    past.regions["step", "model.py", 3] = (300.0, 100.0, 5000.0)
    past.keep()
    history.History(tmp_path / "program.py").keep()
    assert history.History(tmp_path / "program.py").regions == past.regions


@pytest.mark.parametrize("found", [b"", b"[]", b"{}", b'{"regions": [[1]]}', b"\xff\x00"])
def test_what_something_else_has_written_is_nothing(
    account: Callable, tmp_path: Path, found: bytes
) -> None:
    program = tmp_path / "program.py"
    _core.keep("history", history.History(program).key, found)
    assert history.History(program).regions == {}


def test_nothing_is_kept_without_an_account(account: Callable, tmp_path: Path) -> None:
    testing.close_conversion_account()
    past = history.History(tmp_path / "program.py")
    past.regions["step", "model.py", 3] = (300.0, 100.0, 5000.0)
    past.keep()
    assert history.History(tmp_path / "program.py").regions == {}


PACKAGE = """
class Trainer:
    def step(self, w):
        loss = ((w - 1) ** 2).sum()
        loss.backward()
        w.grad = None
        return loss.item()
"""

PROGRAM = """
import time
import torch
from trainkit import Trainer

trainer, w, total = Trainer(), torch.zeros(3, requires_grad=True), 0.0
for _ in range(3):
    time.sleep(0.05)  # a look at what is defined is due
    for _ in range(10):
        total += trainer.step(w)
print(total)
"""


def test_functions_that_were_found_are_replaced_at_once(account: Callable, tmp_path: Path) -> None:
    """Without a window of the watch, for which such a short program leaves no time."""
    account()
    program, package = tmp_path / "main" / "program.py", tmp_path / "installed" / "trainkit.py"
    for file, text in ((program, PROGRAM), (package, PACKAGE)):
        file.parent.mkdir()
        file.write_text(text)
    past = history.History(program)
    past.entry_points = [
        ("trainkit", name, str(package), 3) for name in ("Trainer.step", "Trainer.gone")
    ]
    past.keep()
    command = [sys.executable, "-m", "torchjanus", "run", "--stats", "stats.json", str(program)]
    environment = os.environ | {"PYTHONPATH": str(package.parent)}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    told = json.loads((tmp_path / "stats.json").read_text())["functions"]
    # The loop around the calls becomes a graph in turn.
    assert [each["calls"] > 0 for each in told if each["name"] == "Trainer.step"] == [True]


def wrapped(function: Callable) -> Callable:
    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        return function(*arguments)

    return call


@wrapped
def decorated() -> int:
    return 1


class Trainer:
    def step(self) -> int:
        return 2

    @staticmethod
    def plain() -> int:
        return 3


def test_functions_are_found_again(account: Callable) -> None:
    def at(name: str, line: int) -> Any:
        return history.function_at(__name__, name, __file__, line)

    inner = decorated.__wrapped__  # type: ignore[attr-defined]
    assert at("decorated", inner.__code__.co_firstlineno) is inner
    assert at("Trainer.step", Trainer.step.__code__.co_firstlineno) is Trainer.step
    assert at("Trainer.plain", Trainer.plain.__code__.co_firstlineno) is Trainer.plain
    assert at("Trainer.step", 1) is None
    assert at("Trainer.missing", 1) is None
    assert at("missing", 1) is None
    assert at("sys", 1) is None
    assert at("wrapped.<locals>.call", wrapped.__code__.co_firstlineno) is None
    assert history.function_at("no_such_module", "step", __file__, 1) is None
    assert "no_such_module" not in sys.modules
