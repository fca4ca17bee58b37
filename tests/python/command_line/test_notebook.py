"""Cells of a notebook: functions and loops in them run as graphs, and what is defined anew counts at once."""

import ast
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from notebook_cells import SETUP, Notebook, without_watch

import torchjanus


@pytest.fixture(autouse=True)
def no_watch() -> Iterator[None]:
    with without_watch():
        yield


@pytest.fixture
def notebook() -> Iterator[Notebook]:
    notebook = Notebook()
    notebook.cell(SETUP)
    yield notebook
    torchjanus.unload_ipython_extension(notebook.shell)


STEP = """
    @torchjanus.function
    def step(x, y):
        loss = loss_of(x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()
"""
LOSS = """
    def loss_of(x, y):
        return F.cross_entropy(model(x), y) * {factor}
"""
EAGER = "loss_of(x, y).item()"


def test_a_function_in_a_cell_follows_what_other_cells_define_anew(notebook: Notebook) -> None:
    notebook.cell(LOSS.format(factor=1))
    notebook.cell(STEP)
    for factor in (1, 2):
        notebook.cell(LOSS.format(factor=factor))
        for _ in range(6):
            assert notebook.value(EAGER) == pytest.approx(notebook.value("step(x, y)"), rel=1e-12)
    assert notebook.value("step.stats()['hits']") >= 4


def test_a_cell_that_defines_its_function_anew(notebook: Notebook) -> None:
    notebook.cell(LOSS.format(factor=1))
    notebook.cell(STEP)
    notebook.cell("for _ in range(6): step(x, y)")
    notebook.cell(STEP.replace("loss.item()", "(loss + 5).item()"))
    for _ in range(6):
        assert notebook.value(EAGER) + 5 == pytest.approx(notebook.value("step(x, y)"), rel=1e-12)
    assert notebook.value("step.stats()['hits']") > 0


def test_a_class_that_a_cell_defines_anew(notebook: Notebook) -> None:
    net = """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(8, 3).double()
            def forward(self, x):
                return self.layer(x) * {factor}
        net = Net()
    """
    notebook.cell(net.format(factor=1))
    notebook.cell("@torchjanus.function\ndef total(x): return net(x).sum().item()")
    for factor in (1, 10):
        notebook.cell(net.format(factor=factor))
        for _ in range(6):
            eager = notebook.value("net(x).sum().item()")
            assert notebook.value("total(x)") == pytest.approx(eager, rel=1e-12)
    assert notebook.value("total.stats()['hits']") > 0


def test_reports_are_shown_line_by_line(notebook: Notebook) -> None:
    notebook.cell(LOSS.format(factor=1))
    notebook.cell(STEP)
    notebook.cell("for _ in range(6): step(x, y)")
    _, printed = notebook.cell("torchjanus.explain(step)")
    assert "runs as a graph\n" in printed and "\\n" not in printed
    _, printed = notebook.cell("torchjanus.explain()")
    assert "ran as graphs" in printed and "\\n" not in printed


LOOP = """
    for i in range(40):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 10 == 0:
            print(i, round(loss.item(), 12))
    def after(steps):
        total = 0.0
        for _ in range(steps):
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        return total
    print(round(after(30), 12))
"""


def hits_by_cells() -> int:
    return sum(
        each["hits"] for each in torchjanus.stats()["functions"] if "ipython" in each["file"]
    )


def test_loops_in_cells_run_as_graphs_with_the_extension(notebook: Notebook) -> None:
    before = hits_by_cells()
    _, eager = notebook.cell(LOOP)
    assert hits_by_cells() == before
    other = Notebook()
    other.cell(SETUP)
    other.cell("%load_ext torchjanus\n%load_ext torchjanus")
    _, converted = other.cell(LOOP)
    assert converted == eager
    assert hits_by_cells() >= before + 50
    other.cell("%unload_ext torchjanus")
    before = hits_by_cells()
    other.cell(LOOP)
    assert hits_by_cells() == before


def test_cells_with_awaits_errors_and_magics_stay_what_they_are(notebook: Notebook) -> None:
    notebook.cell("%load_ext torchjanus")
    notebook.cell("import asyncio\nawait asyncio.sleep(0)\nvalue = 3")
    assert notebook.value("value + 1") == 4
    with pytest.raises(ZeroDivisionError):
        notebook.cell("for i in range(5):\n    x.sum() / (1 / (3 - i))")
    assert notebook.value("i") == 3
    with pytest.raises(SyntaxError):
        notebook.cell("for i in range(3): return i")
    notebook.cell("%time loss = F.cross_entropy(model(x), y)")
    assert notebook.value("loss.dim()") == 0


def test_scripts_run_from_a_cell(notebook: Notebook, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SETUP + STEP + LOSS.format(factor=3)))
    with script.open("a") as file:
        file.write("values = [step(x, y) for _ in range(6)]\n")
    notebook.cell(f"%run {script}")
    assert notebook.value("step.stats()['hits']") > 0
    last = notebook.value("values[-1]")
    assert notebook.value(EAGER) < last


TIMED = """
    for i in range(5):
        with open(log, "a") as file: print(i, (w * i).tanh().sum().item(), file=file)
"""


@pytest.mark.parametrize(
    "magic", ["", "%%timeit -n 2 -r 1", "%%timeit", "%%time", "%%prun -q", "%%capture out"]
)
def test_magics_that_compile_a_tree_again(notebook: Notebook, magic: str, tmp_path: Path) -> None:
    notebook.cell("w = torch.ones(3, requires_grad=True)")
    cell = "".join([f"{magic}\n" if magic else "", textwrap.dedent(TIMED).lstrip()])
    if magic == "%%timeit":  # which finds out how often it has to run
        cell = cell.replace("%%timeit", "%%timeit -r 1").replace("range(5)", "range(50)")
    logged = []
    for file in ("eager", "converted"):
        notebook.cell(f"log = {str(tmp_path / file)!r}")
        notebook.cell(cell)
        logged.append((tmp_path / file).read_text().splitlines())
        notebook.cell("%load_ext torchjanus")
    rounds = 50 if magic == "%%timeit" else 5
    assert len(logged[0]) >= rounds and logged[0][:rounds] == logged[1][:rounds]


def test_one_line_magics_with_a_loop(notebook: Notebook) -> None:
    notebook.cell("%load_ext torchjanus")
    notebook.cell("w = torch.ones(3, requires_grad=True)")
    for magic in ("%timeit -n 2 -r 1", "%time", "%prun -q"):
        notebook.cell(f"{magic} for i in range(5): (w * i).sum().backward()")
    assert notebook.value("w.grad.sum().item()") == 120


def test_a_tree_that_is_compiled_stays_as_it_was(notebook: Notebook) -> None:
    notebook.cell("%load_ext torchjanus")
    tree = ast.parse(textwrap.dedent(LOOP + STEP))
    before = ast.dump(tree, include_attributes=True)
    for _ in range(2):
        notebook.shell.compile(tree, "<cell>", "exec")
        assert ast.dump(tree, include_attributes=True) == before


WATCHED = """
import os, sys, time
from IPython.core.interactiveshell import InteractiveShell
from torchjanus import _core

def threads():
    return len(os.listdir("/proc/self/task"))

def windows():
    return _core.seen_by_watch()["windows"]

def is_watched(seconds):  # whether windows are opened while the main thread works
    before, end = windows(), time.monotonic() + seconds
    while time.monotonic() < end and windows() == before:
        time.sleep(0.001)  # looks are made where the lock of the interpreter was given up, as torch does
    return windows() > before

def has_ended(count):
    end = time.monotonic() + 20
    while threads() > count and time.monotonic() < end:
        time.sleep(0.01)
    return threads() <= count

{before}
one, other = InteractiveShell(), InteractiveShell()
count = threads()
"""


def told(text: str, before: str = "") -> list[str]:
    """What a process of its own prints, as there is one watch in a process."""
    done = subprocess.run(
        [sys.executable, "-c", WATCHED.format(before=before) + textwrap.dedent(text)],
        capture_output=True, text=True, timeout=180,
        env=os.environ | {"TORCHJANUS_DISABLE": "background"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_watch_ends_with_the_last_extension_and_begins_anew() -> None:
    printed = told("""
        one.run_cell("%load_ext torchjanus")
        other.run_cell("%load_ext torchjanus")
        print(is_watched(60))
        one.run_cell("%unload_ext torchjanus")
        print(is_watched(60))
        other.run_cell("%unload_ext torchjanus")
        seen = _core.seen_by_watch()
        print(is_watched(1.5), has_ended(count), _core.seen_by_watch() == seen)
        start = time.monotonic()
        other.run_cell("%load_ext torchjanus")
        print(is_watched(60), _core.seen_by_watch()["seconds"] - seen["seconds"] < time.monotonic() - start + 0.1)
    """)
    assert printed == "True True False True True True True".split()


def test_the_watch_of_others_goes_on_without_the_extension() -> None:
    printed = told(
        """
        one.run_cell("%load_ext torchjanus")
        one.run_cell("%unload_ext torchjanus")
        print(is_watched(60))
        """,
        before="_core.watch_for_entry_points()",  # as `torchjanus run` does
    )
    assert printed == ["True"]


def test_an_extension_that_began_no_watch_ends_none() -> None:
    printed = told(
        """
        import torchjanus
        with torchjanus.options.without("entry_points"):
            one.run_cell("%load_ext torchjanus")
        one.run_cell("%unload_ext torchjanus")
        print(is_watched(60))
        """,
        before="_core.watch_for_entry_points()",
    )
    assert printed == ["True"]
