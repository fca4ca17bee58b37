"""Programs whose loop lies in a package: what the package calls again and again runs as graphs, unchanged."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

PACKAGE = '''
"""A trainer, as installed packages have them."""


class Trainer:
    def __init__(self, model, optimizer, callback=None):
        self.model, self.optimizer, self.callback = model, optimizer, callback
        self.history = []
        self.step = 0

    def training_step(self, batch):
        self.model.train()
        loss = self.model.loss(batch)
        loss.backward()
        return loss.detach()

    def fit(self, batches, epochs):
        for epoch in range(epochs):
            for batch in batches:
                loss = self.training_step(batch)
                self.optimizer.step()
                self.optimizer.zero_grad()
                self.step += 1
                if self.callback is not None:
                    self.callback(self)
                if self.step % 10 == 0:
                    self.history.append(float(loss))
            print(f"epoch {epoch}: {loss.item():.9f}")
'''

PROGRAM = """
import sys
import torch
import torch.nn.functional as F
from torch import nn
from trainkit import Trainer

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(16)])
        self.out = nn.Linear(8, 4)

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.tanh(layer(x)) * 0.5
        return self.out(x)

    def loss(self, batch):
        x, y = batch
        return F.cross_entropy(self(x), y)

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
data = [(torch.randn(8, 8), torch.randint(0, 4, (8,))) for _ in range(50)]
"""

FITTED = """
trainer.fit(data, 16)
print(len(trainer.history), f"{trainer.history[-1]:.9f}", f"{sum(p.sum().item() for p in model.parameters()):.9f}")
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder with the package, which does not lie below the script's."""
    folder = tmp_path / "installed" / "trainkit"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(PACKAGE)
    return folder.parent


def run_both(text: str, package: Path, tmp_path: Path, *options: str) -> list[dict[str, Any]]:
    """Runs the program by python and by `torchjanus run`; both print the same. The functions' statistics."""
    program = tmp_path / "program" / "main.py"
    program.parent.mkdir()
    program.write_text(textwrap.dedent(text))
    told = tmp_path / "stats.json"
    environment = os.environ | {"PYTHONPATH": str(package), "OMP_NUM_THREADS": "1"}

    def output(*command: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, *command, str(program)],
            env=environment,
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout, done.stderr

    expected = output()
    assert output("-m", "torchjanus", "run", "--stats", str(told), *options) == expected
    return json.loads(told.read_text())["functions"]


def hits(functions: list[dict[str, Any]]) -> dict[str, int]:
    """How often each function ran as a graph, its parts together."""

    def count(told: dict[str, Any]) -> int:
        return told["hits"] + sum(count(part) for part in told.get("parts", ()))

    return {each["name"]: count(each) for each in functions}


def test_the_step_that_a_package_calls_runs_as_a_graph(package: Path, tmp_path: Path) -> None:
    functions = run_both(
        PROGRAM + "trainer = Trainer(model, optimizer)" + FITTED, package, tmp_path
    )
    assert hits(functions)["Trainer.training_step"] > 0
    (step,) = [each for each in functions if each["name"] == "Trainer.training_step"]
    assert step["file"] == str(package / "trainkit" / "__init__.py")


def test_callbacks_of_the_program_keep_their_effects(package: Path, tmp_path: Path) -> None:
    functions = run_both(
        PROGRAM
        + """
seen = []

def callback(trainer):
    seen.append(trainer.step)
    if trainer.step % 100 == 0:
        print("at", trainer.step, trainer.optimizer.param_groups[0]["lr"])
        trainer.optimizer.param_groups[0]["lr"] *= 0.5

trainer = Trainer(model, optimizer, callback)
"""
        + FITTED
        + "print(len(seen), seen[-1])",
        package,
        tmp_path,
    )
    assert hits(functions)["Trainer.training_step"] > 0


def test_an_exception_of_the_step_has_its_lines(package: Path, tmp_path: Path) -> None:
    functions = run_both(
        PROGRAM
        + """
import traceback

class Failing(Net):
    def loss(self, batch):
        if batch[0].shape[0] == 7:
            raise ValueError("a batch of seven")
        return super().loss(batch)

model = Failing()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
trainer = Trainer(model, optimizer)
trainer.fit(data, 16)
try:
    trainer.fit([(torch.randn(7, 8), torch.zeros(7, dtype=torch.int64))], 1)
except ValueError as error:
    for frame in traceback.extract_tb(error.__traceback__):
        print(frame.name, frame.lineno, frame.line)
""",
        package,
        tmp_path,
    )
    assert hits(functions)["Trainer.training_step"] > 0


def test_what_a_debugger_or_profiler_sees_is_left_alone(package: Path, tmp_path: Path) -> None:
    functions = run_both(
        PROGRAM
        + """
calls = 0

def count(frame, event, argument):
    global calls
    calls += event == "call" and frame.f_code.co_name == "training_step"

trainer = Trainer(model, optimizer)
sys.setprofile(count)
trainer.fit(data, 4)
assert sys.getprofile() is count
sys.setprofile(None)
print(calls)
""",
        package,
        tmp_path,
    )
    assert "Trainer.training_step" not in hits(functions)


def test_the_switch_leaves_packages_alone(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHJANUS_DISABLE", "entry_points")
    functions = run_both(
        PROGRAM + "trainer = Trainer(model, optimizer)" + FITTED, package, tmp_path
    )
    assert "Trainer.training_step" not in hits(functions)


def test_functions_without_tensor_work_are_left_alone(package: Path, tmp_path: Path) -> None:
    functions = run_both(
        """
        import torch

        def collatz(n):
            steps = 0
            while n != 1:
                n = 3 * n + 1 if n % 2 else n // 2
                steps += 1
            return steps

        def longest(limit):
            return max(range(1, limit), key=collatz)

        print(longest(60000))
        """,
        package,
        tmp_path,
    )
    assert "Trainer.training_step" not in hits(functions)


def test_what_a_loop_of_the_program_calls_is_left_to_its_region(
    package: Path, tmp_path: Path
) -> None:
    """The step becomes one graph; were the model an entry point of its own, its new code would fit no graph."""
    program = """
    for epoch in range(12):
        for batch in data:
            optimizer.zero_grad()
            loss = model.loss(batch)
            loss.backward()
            optimizer.step()
    print(f"{loss.item():.9f}", f"{sum(p.sum().item() for p in model.parameters()):.9f}")
    """
    functions = run_both(PROGRAM + textwrap.dedent(program), package, tmp_path)
    (loop,) = (each for each in functions if each["name"].startswith("<module>"))
    assert loop["hits"] > 400
    assert not {"Net.loss", "Net.forward"} & {each["name"] for each in functions}
    assert not [each for each in loop["reasons"] if "__code__" in each["sentence"]]


def test_what_runs_cells_of_programs_is_left_alone(package: Path, tmp_path: Path) -> None:
    (package / "cells.py").write_text(
        "class Shell:\n"
        "    def run_cell(self, code):\n        exec(code, self.names)\n"
        "    def run_all(self, cells):\n        for each in cells:\n            self.run_cell(each)\n"
    )
    functions = run_both(
        PROGRAM
        + """
import cells

shell = cells.Shell()
shell.names = {"__name__": "__main__", "trainer": Trainer(model, optimizer), "data": data}
text = "for batch in data[:6]: trainer.training_step(batch)"
shell.run_all([compile(text, "cell", "exec")] * 150)
""",
        package,
        tmp_path,
    )
    found = hits(functions)
    assert "Shell.run_cell" not in found and found["Trainer.training_step"] > 0
