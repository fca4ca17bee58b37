"""Differential runs of whole scripts in this process: as python runs them, and rewritten with regions.

Compared: printed text, the exception with its message and the lines of the script in its traceback,
and everything that the script's globals hold at the end.
"""

import contextlib
import io
import random
import textwrap
import traceback
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import differential
import numpy

import torch
from torchjanus import _core, script


@dataclass
class Outcome:
    printed: str
    error: Any
    state: Any


def run_both(source: str, folder: Path) -> list[dict[str, Any]]:
    """Runs the script both ways, compares, and returns the stats of its regions, cut ones' parts too."""
    file = folder / "program.py"
    text = textwrap.dedent(source)
    file.write_text(text)
    with differential.default_dtype(torch.float64):
        expected = execute(compile(text, str(file), "exec", dont_inherit=True))
        actual = execute(script.compile_script(text, str(file)))
        assert actual.printed == expected.printed
        assert actual.error == expected.error
        differential.compare(expected.state, actual.state, "globals", 1e-10)
    return [each for each in _core.all_stats() if each["file"] == str(file)]


def execute(code: types.CodeType) -> Outcome:
    torch.manual_seed(7)
    random.seed(7)
    numpy.random.seed(7)
    module = types.ModuleType("program")
    printed, error = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        try:
            exec(code, module.__dict__)
        except Exception as raised:
            lines = [
                (frame.name, frame.lineno)
                for frame in traceback.extract_tb(raised.__traceback__)
                if frame.filename == code.co_filename
            ]
            error = (type(raised).__name__, str(raised), lines)
    kept = {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("__")
        and not isinstance(value, types.ModuleType | types.FunctionType | type | io.IOBase)
    }
    return Outcome(printed.getvalue(), error, differential.snapshot(kept, {"fresh": True}))


def hits(stats: list[dict[str, Any]]) -> dict[str, int]:
    """How often each region, or part of one that is cut, ran as a graph, by its name."""
    found: dict[str, int] = {}
    for each in stats:
        if "parts" in each:
            found |= hits(each["parts"])
        elif each["hits"] > 0:
            found[each["name"]] = each["hits"]
    return found
