"""What is written about the codes of reasons: all of them, with examples that lead to them; `torchjanus explain`."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from torchjanus import _core, reasons

ROOT = Path(__file__).parents[3]
IMPORTS = """\
import contextlib, functools, types
import torch, torchjanus
from torch import nn
"""
ENTRIES = reasons.entries()


def test_every_code_is_written_about_in_its_order():
    assert list(ENTRIES) == _core.reason_codes()
    listed = re.findall(
        r"^  X\((\w+),", (ROOT / "src/speculate/reason.h").read_text(), re.MULTILINE
    )
    assert list(ENTRIES) == listed


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=list(ENTRIES))
def test_texts_are_short_sentences(entry):
    assert entry.meaning.endswith(".") and len(entry.meaning.split()) <= 25
    assert entry.remedy and not entry.remedy.endswith(".") and len(entry.remedy) <= 100


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=list(ENTRIES))
def test_example_gives_the_reason(entry, tmp_path):
    stats = ran(entry.example, tmp_path)
    assert entry.code in {reason["code"] for reason in stats["reasons"]}, stats["reasons"]


@pytest.mark.parametrize(
    "entry", [each for each in ENTRIES.values() if each.instead], ids=lambda each: each.code
)
def test_remedy_runs_as_a_graph(entry, tmp_path):
    stats = ran(entry.instead, tmp_path)
    assert entry.code not in {reason["code"] for reason in stats["reasons"]}, stats["reasons"]
    assert stats["hits"] > 0, stats


def ran(program, folder):
    """The counters of the function `f` of a program, which has run."""
    file = folder / "program.py"
    file.write_text(IMPORTS + program)
    return runpy.run_path(str(file))["f"].stats()


def explain(*arguments):
    command = [sys.executable, "-m", "torchjanus", "explain", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=180)


@pytest.mark.parametrize("written", ["heap_write", "[heap_write]"])
def test_command_explains_a_code(written):
    done = explain(written)
    entry = ENTRIES["heap_write"]
    assert done.returncode == 0 and not done.stderr
    assert done.stdout.startswith(f"[heap_write] {entry.meaning}\n")
    assert entry.remedy in done.stdout and 'y.note = "shifted"' in done.stdout


def test_command_lists_all_codes():
    lines = explain().stdout.splitlines()
    assert [line.split()[0] for line in lines] == [*ENTRIES, "no_library"]


@pytest.mark.parametrize(
    ("written", "near"),
    [("heap_writ", "near: heap_write"), ("control", "near: dynamic_control"), ("?", "lists all")],
)
def test_command_names_codes_near_an_unknown_one(written, near):
    done = explain(written)
    assert done.returncode == 2 and not done.stdout
    assert near in done.stderr, done.stderr


def test_explain_ends_as_other_tools_where_nobody_reads_on():
    command = f"{sys.executable} -m torchjanus explain guard_failed | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (141, "", "")
