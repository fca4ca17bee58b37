"""Debuggers, profilers, coverage and test frameworks that look at converted code, or rewrite it."""

import bdb
import cProfile
import io
import json
import os
import pdb
import pstats
import subprocess
import sys
import textwrap
import types
import zipfile
from pathlib import Path
from typing import Any

import pytest

import torch
import torchjanus
from torchjanus import script

TRAINING = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        if x.sum() > 0:
            return self.layer(x)
        else:
            return self.layer(-x)

def main():
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(200):
        loss = model(torch.randn(8, 4)).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if i > 1000:
            print("never")
    print(f"{loss.item():.9f}")

if __name__ == "__main__":
    main()
"""


def ran(folder: Path, *arguments: str, expect: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, env=os.environ
    )
    assert done.returncode == expect, done.stdout + done.stderr
    return done.stdout


def hits(stats: Path) -> int:
    def count(told: dict[str, Any]) -> int:
        return told["hits"] + sum(map(count, told.get("parts", ())))

    return sum(map(count, json.loads(stats.read_text())["functions"]))


@pytest.fixture
def training(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(TRAINING)
    return tmp_path


weight = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)


@torchjanus.function
def converted(x):
    y = (x @ weight).tanh()
    return (y * y).sum()


def test_a_debugger_steps_through_the_function() -> None:
    x = torch.randn(2, 4, dtype=torch.float64)
    for _ in range(6):
        expected = converted(x)
    assert converted.stats()["hits"] > 0
    commands, told = (
        io.StringIO("next\nprint(float(y.sum()))\ncontinue\n"),
        io.StringIO(),
    )
    debugger = pdb.Pdb(stdin=commands, stdout=told, nosigint=True, readrc=False)
    debugger.use_rawinput = False
    before = converted.stats()["bypassed"]
    result = debugger.runcall(converted, x)
    assert torch.equal(result, expected)
    assert "return (y * y).sum()" in told.getvalue()
    assert str(float((x @ weight).tanh().sum())) in told.getvalue()
    assert converted.stats()["bypassed"] == before + 1
    assert torch.equal(converted(x), expected)


def test_breakpoints_stop_in_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: seen.append(sys._getframe(1).f_locals["y"]))

    @torchjanus.function
    def stops(x):
        y = (x @ weight).exp()
        breakpoint()
        return y * 2

    inputs = torch.randn(8, 2, 4, dtype=torch.float64)
    results = [stops(x) for x in inputs]
    assert len(seen) == 8
    for x, y, result in zip(inputs, seen, results, strict=True):
        assert torch.equal(y, (x @ weight).exp()) and torch.equal(result, y * 2)


def test_a_profiler_does_not_change_results() -> None:
    x = torch.randn(2, 4, dtype=torch.float64)
    expected = [converted(x) for _ in range(6)][-1]
    profile = cProfile.Profile()
    results = [profile.runcall(converted, x) for _ in range(4)]
    assert all(torch.equal(each, expected) for each in results)
    pstats.Stats(profile, stream=io.StringIO()).print_stats()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
        assert torch.equal(converted(x), expected)
    assert "torchjanus::graph" in {each.key for each in seen.key_averages()}


def test_coverage_sees_the_lines_that_it_sees_eagerly(training: Path) -> None:
    told = []
    for how in ([], ["-m", "torchjanus", "run"]):
        ran(training, "-m", "coverage", "run", "--include=train.py", *how, "train.py")
        ran(training, "-m", "coverage", "json", "-q")
        file = json.loads((training / "coverage.json").read_text())["files"]["train.py"]
        told.append((file["executed_lines"], file["missing_lines"]))
    assert told[0] == told[1]


ASSERTING = """
import pytest, torch, torchjanus
from torch import nn

model = nn.Linear(4, 3)

@torchjanus.function
def checked(x, least=1e9):
    y = model(x)
    assert y.shape == (8, 3)
    assert isinstance(x, torch.Tensor) and y.sum() < least, "too large"
    return y * 2

class TestChecked:
    def test_it_runs_as_a_graph(self):
        x = torch.randn(8, 4)
        for _ in range(8):
            assert torch.equal(checked(x), model(x) * 2)
        assert checked.stats()["hits"] >= 4, checked.stats()

    def test_what_fails_says_what_pytest_says(self):
        x = torch.randn(8, 4)
        with pytest.raises(AssertionError, match=r"too large\\nassert \\(True and tensor\\("):
            checked(x, torch.tensor(-1e9))
        with pytest.raises(AssertionError, match=r"assert torch.Size\\(\\[7, 3\\]\\) == \\(8, 3\\)"):
            checked(torch.randn(7, 4))
"""


def test_functions_in_modules_whose_asserts_pytest_rewrote(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(ASSERTING)
    ran(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py")
    ran(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--assert=plain", "-k", "graph")


def test_a_test_run_converts_the_modules_under_test(training: Path) -> None:
    (training / "test_train.py").write_text(
        "import train\n\ndef test_main(capsys):\n    train.main()\n    print(capsys.readouterr().out)\n"
    )
    printed = [
        ran(training, *how, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "test_train.py")
        for how in ([], ["-m", "torchjanus", "run", "--stats", "stats.json"])
    ]
    assert printed[0].splitlines()[0] == printed[1].splitlines()[0]
    assert hits(training / "stats.json") > 150


def test_modules_of_namespace_packages_and_of_zip_archives(tmp_path: Path) -> None:
    """A namespace package below the script is converted; what an archive holds runs as it stands."""
    (tmp_path / "spread" / "inner").mkdir(parents=True)
    (tmp_path / "spread" / "inner" / "train.py").write_text(TRAINING)
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        archive.writestr("packed/__init__.py", "")
        archive.writestr("packed/train.py", TRAINING)
    (tmp_path / "main.py").write_text(
        textwrap.dedent("""
            import sys
            sys.path.insert(0, "packed.zip")
            import spread.inner.train, packed.train, torchjanus
            spread.inner.train.main()
            packed.train.main()
            print(torchjanus.function(packed.train.main).__wrapped__ is packed.train.main)
        """)
    )
    expected = ran(tmp_path, "main.py")
    assert ran(tmp_path, "-m", "torchjanus", "run", "--stats", "stats.json", "main.py") == expected
    assert hits(tmp_path / "stats.json") > 100
    (tmp_path / "spread" / "__main__.py").write_text("from .inner import train\ntrain.main()\n")
    expected = ran(tmp_path, "-m", "spread")
    again = ran(tmp_path, "-m", "torchjanus", "run", "--stats", "again.json", "-m", "spread")
    assert again == expected
    assert hits(tmp_path / "again.json") > 100


STEPPED = """
def main():
    for i in range(12):
        loss = model(x).square().mean()
        {cut}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i == 10:
            stop()
            after = i
    return loss.item()
"""


@pytest.mark.xfail(
    sys.version_info < (3, 11, 7),
    reason="3.11.2 gives the jump behind the last statement of an `if` that statement's line",
    strict=False,
)
@pytest.mark.parametrize("cut", ["pass", "print(hash('a'))"], ids=["whole", "cut"])
def test_a_debugger_that_stops_in_a_loop_steps_as_it_does_eagerly(cut: str, tmp_path: Path) -> None:
    file = tmp_path / "stepped.py"
    file.write_text(STEPPED.format(cut=cut))

    class Stepper(bdb.Bdb):
        def __init__(self) -> None:
            super().__init__()
            self.lines: list[int] = []

        def user_line(self, frame: Any) -> None:
            if frame.f_code.co_name == "main":
                self.lines.append(frame.f_lineno)
            self.set_next(frame)

    def stepped(code: types.CodeType) -> tuple[list[int], float]:
        torch.manual_seed(0)
        model, stepper = torch.nn.Linear(3, 3).double(), Stepper()
        found: dict[str, Any] = {
            "model": model, "optimizer": torch.optim.SGD(model.parameters(), 0.1),
            "x": torch.ones(2, 3).double(), "stop": lambda: stepper.set_trace(sys._getframe(1)),
        }  # fmt: skip
        exec(code, found)
        try:
            return stepper.lines, found["main"]()
        finally:
            sys.settrace(None)

    text = file.read_text()
    eager = stepped(compile(text, str(file), "exec"))
    assert stepped(script.compile_script(text, str(file))) == eager
    assert len(eager[0]) > 8


@pytest.mark.parametrize("step", range(8))
def test_a_frame_that_an_exception_ended_is_at_its_line(step: int, tmp_path: Path) -> None:
    file = tmp_path / "raises.py"
    file.write_text(
        STEPPED.format(cut="print(hash('a'))").replace("stop()", "1 / 0").replace(
            "i == 10", f"i == {step}"
        )
    )  # fmt: skip

    def line_at_the_end(code: types.CodeType) -> tuple[int, int]:
        model = torch.nn.Linear(3, 3).double()
        found: dict[str, Any] = {
            "model": model, "optimizer": torch.optim.SGD(model.parameters(), 0.1),
            "x": torch.ones(2, 3).double(),
        }  # fmt: skip
        exec(code, found)
        with pytest.raises(ZeroDivisionError) as raised:
            found["main"]()
        last = raised.tb.tb_next
        return last.tb_lineno, last.tb_frame.f_lineno

    text = file.read_text()
    assert line_at_the_end(script.compile_script(text, str(file))) == (10, 10)
