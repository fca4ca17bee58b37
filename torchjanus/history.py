"""What earlier runs of a program have found out, kept on disk from run to run.

`torchjanus run` makes bets: that a function or loop will run for long enough for its graphs to pay. The next run of the
program neither repeats one that was lost nor waits where one was won (src/speculate/earlier_runs.h), and need not watch
for the functions that packages call. Only when graphs are made depends on it, never what they compute.
"""

import json
import os
import sys
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from . import __version__, _core, text_report
from .source_text import printable

_KIND = "history"
_MOST = 500  # functions and regions that are kept of a program


class History:
    """The record of one program."""

    def __init__(self, program: Path) -> None:
        self.key = json.dumps([__version__, str(program.resolve())])
        self.process = os.getpid()
        self.regions: dict[tuple[str, str, int], tuple[float, float, float]] = {}
        self.entry_points: list[tuple[str, str, str, int]] = []
        self._read()

    def _read(self) -> None:
        found = _core.find_kept(_KIND, self.key)
        if found is None:
            return
        try:
            kept = json.loads(found)
            for name, file, line, spent, saved, passed in kept["regions"]:
                self.regions[name, file, line] = (spent, saved, passed)
            for module, name, file, line in kept["entry_points"]:
                self.entry_points.append((module, name, file, line))
        except (ValueError, KeyError, TypeError):
            return  # written by something else: the program runs as if for the first time

    def recall(self) -> None:
        """Lets this process know of it."""
        _core.recall([(*key, *run) for key, run in self.regions.items()])
        _core.expect_entry_points(self.entry_points)

    def keep(self) -> None:
        """Writes what this process has found out, beside what it did not try again. In the child of a fork: no-op."""
        if _core.conversion_account() is None or os.getpid() != self.process:
            return
        for each in text_report.stats_all()["functions"]:
            for key, run in _tried(each):
                self.regions.pop(key, None)  # the newest stand last
                self.regions[key] = run
        found = [each for each in _found_entry_points() if each not in self.entry_points]
        kept = {
            "regions": [(*key, *run) for key, run in self.regions.items()][-_MOST:],
            "entry_points": [*self.entry_points, *found][-_MOST:],
        }
        _core.keep(_KIND, self.key, json.dumps(kept).encode())


def _tried(
    told: Mapping[str, Any],
) -> Iterator[tuple[tuple[str, str, int], tuple[float, float, float]]]:
    """Each function or region of which a graph was tried: milliseconds spent, saved and passed, parts included."""
    for part in told.get("parts", ()):
        yield from _tried(part)
    own = told["conversion"]
    spent, saved = (_total(told, name) for name in ("spent", "saved"))
    if own is not None and spent > 0:
        yield (told["name"], told["file"], told["line"]), (spent, saved, own["passed"])


def _total(told: Mapping[str, Any], name: str) -> float:
    own = told["conversion"][name] if told["conversion"] else 0.0
    return own + sum(_total(part, name) for part in told.get("parts", ()))


def _found_entry_points() -> Iterator[tuple[str, str, str, int]]:
    """Module, name, file and line of the functions that the watch has found and replaced."""
    for each in (_core.seen_by_watch() or {"functions": ()})["functions"]:
        if not each["why_not"]:
            yield each["module"], each["name"], each["file"], each["line"]


def function_at(module: str, name: str, file: str, line: int) -> types.FunctionType | None:
    """The function that an earlier run has found, if this process has it already.

    Args:
        module: The name of the module that defines it.
        name: Its qualified name.
        file, line: Those of its code: another function of that name is not meant.

    Returns:
        The plain function, without decorators that keep it in `__wrapped__`; None if there is none, or not yet.
    """
    found: object = sys.modules.get(module)
    for part in name.split("."):
        members = getattr(found, "__dict__", None)
        if members is None or part not in members:
            return None
        found = members[part]
        if isinstance(found, (staticmethod, classmethod)):
            found = found.__func__
    while not isinstance(found, types.FunctionType) or "__wrapped__" in found.__dict__:
        found = getattr(found, "__dict__", {}).get("__wrapped__")
        if found is None:
            return None
    code = found.__code__
    return found if (printable(code.co_filename), code.co_firstlineno) == (file, line) else None
