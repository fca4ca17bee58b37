"""What the page shows: of each file its marked lines, and all else as data that JSON can hold."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from .. import co_execution, installed, line_marks, reasons, text_report, totals
from ..snapshots import Snapshot, cuts, leaves, speed, was_called
from ..source_text import Sources, divided

_MOST_LLVM = 4 << 20  # characters of all kernels; beyond it, only what heads them: the loop nests
_COUNTERS = (
    *("calls", "hits", "misses", "aborts", "relaxations", "generated", "profiled", "bypassed"),
    "passed",
)


@dataclass
class MarkedFile:
    """A file as the page shows it. Lines without a mark are shown if the file is the user's own."""

    path: str
    name: str
    lines: list[str]
    marks: dict[int, str] = field(default_factory=dict)
    seconds: dict[int, float] = field(default_factory=dict)  # by line, in all runs

    @property
    def is_own(self) -> bool:
        return is_own(self.path)


def is_own(path: str) -> bool:
    """Whether a file is the program's, and not installed."""
    return not path.startswith(installed.ALL)


@dataclass
class Collected:
    files: list[MarkedFile]
    data: dict[str, Any]


def collect(snapshots: Iterable[Snapshot], program: str | None = None) -> Collected:
    """All that the page shows of these. `program`: a file that is shown even if nothing is told of it."""
    told = [each for each in snapshots if was_called(each) or each["reasons"]]
    told.sort(key=totals.time_of, reverse=True)
    files, texts = _Files(), _Texts()
    functions = [_function(each, files, texts) for each in told]
    # The mark of a line is that of the function that takes most time, of those that it belongs to.
    for number, each in reversed(list(enumerate(told))):
        files.add_marks(number, each)
    if program is not None and is_own(program):
        files.number(program)
    codes = {reason["code"] for each in told for reason in _all_reasons(each)}
    data = {
        "files": [{"name": each.name, "path": each.path} for each in files.shown],
        "lines": files.told,
        "seconds": [each.seconds for each in files.shown],
        "functions": functions,
        "kernels": texts.all,
        "codes": {code: vars(entry) for code, entry in reasons.entries().items() if code in codes},
    }
    return Collected(files.shown, data)


class _Files:
    """The files that anything is told of, and what is told of their lines."""

    def __init__(self) -> None:
        self.shown: list[MarkedFile] = []
        self.told: list[dict[int, list[Any]]] = []  # by file and line: function, mark, notes
        self._numbers: dict[str, int] = {}
        self._sources = Sources()

    def number(self, path: str) -> int:
        if path not in self._numbers:
            self._numbers[path] = len(self.shown)
            self.shown.append(MarkedFile(path, self._name(path), self._sources[path].lines))
            self.told.append({})
        return self._numbers[path]

    def _name(self, path: str) -> str:
        """The last part of the path, with as many before it as make it unlike all others."""
        taken = {each.name for each in self.shown}
        parts = path.split(os.sep)
        names = [os.sep.join(parts[-count:]) for count in range(1, len(parts) + 1)]
        return next((name for name in names if name not in taken), path)

    def add_marks(self, function: int, snapshot: Snapshot) -> None:
        for block in line_marks.blocks(snapshot, self._sources):
            number = self.number(block.file)
            for line in block.lines:
                if line.mark:
                    self.shown[number].marks[line.number] = line.mark
                if line.mark or line.notes:
                    told = self.told[number].setdefault(line.number, [])
                    told.insert(0, [function, line.mark, line.notes])

    def add_seconds(self, path: str, line: int, seconds: float) -> None:
        of_file = self.shown[self.number(path)].seconds
        of_file[line] = of_file.get(line, 0.0) + seconds

    def place(self, reason: dict[str, Any]) -> list[int] | None:
        known = reason["file"] and reason["line"] > 0
        return [self.number(reason["file"]), reason["line"]] if known else None


class _Texts:
    """Texts of kernels, equal ones once."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._numbers: dict[str, int] = {}
        self._characters = 0

    def number(self, text: str) -> int:
        if text not in self._numbers:
            self._numbers[text] = len(self.all)
            self._characters += len(text)
            self.all.append(text if self._characters <= _MOST_LLVM else _loop_nest(text))
        return self._numbers[text]


def _loop_nest(llvm: str) -> str:
    return "".join(f"{line}\n" for line in divided(llvm) if line.startswith(";"))


def _all_reasons(snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    yield from cuts(snapshot)
    yield from snapshot["reasons"]
    for leaf in leaves(snapshot):
        yield from leaf["reasons"]


def _function(snapshot: Snapshot, files: _Files, texts: _Texts) -> dict[str, Any]:
    """A function or region with its parts."""
    parts = [_part(leaf, files, texts) for leaf in leaves(snapshot)]
    return {
        "name": snapshot["name"],
        "file": files.number(snapshot["file"]),
        "line": snapshot["line"],
        "state": snapshot["state"],
        "says": text_report.state(snapshot),
        "counters": {name: snapshot[name] for name in _COUNTERS},
        "ms": _spent(snapshot),
        "speed": speed(snapshot),
        "lazily": [line.strip() for line in co_execution.summary(snapshot.get("co_execution"))],
        "cuts": [_cut(cut, files, snapshot) for cut in cuts(snapshot)],
        "is_cut": "parts" in snapshot,
        "history": [] if "parts" in snapshot else parts[0]["history"],
        "parts": parts,
    }


def _spent(snapshot: Snapshot) -> dict[str, float]:
    """Milliseconds, of all parts."""
    sums = dict.fromkeys(snapshot["milliseconds"], 0.0)
    for each in [snapshot, *(leaves(snapshot) if "parts" in snapshot else ())]:
        for what, milliseconds in each["milliseconds"].items():
            sums[what] += milliseconds
    return {**sums, "python": snapshot["in_python"]["milliseconds"]}


def _cut(cut: dict[str, Any], files: _Files, snapshot: Snapshot) -> dict[str, Any]:
    if in_python := cut.get("in_python"):
        files.add_seconds(snapshot["file"], cut["line"], in_python["milliseconds"] / 1e3)
    return {
        "place": [files.number(snapshot["file"]), cut["line"]],
        "end": cut["end_line"],
        "code": cut["code"],
        "sentence": cut["sentence"],
        "why": files.place(cut["reason"]),
        "in_python": cut.get("in_python"),
    }


def _part(leaf: Snapshot, files: _Files, texts: _Texts) -> dict[str, Any]:
    """What may run as a graph: the whole, or a part of what is cut."""
    return {
        "line": leaf["line"],
        "end": leaf.get("end_line", leaf["line"]),
        "says": text_report.state(leaf),
        "counters": {name: leaf[name] for name in _COUNTERS},
        "reasons": [
            {
                "place": files.place(each),
                "code": each["code"],
                "sentence": each["sentence"],
                "count": each["count"],
            }
            for each in leaf["reasons"]
        ],
        "history": list(_history(leaf["history"])),
        "graphs": [_graph(entry, files, texts) for entry in leaf["cache"]],
    }


def _history(samples: list[dict[str, float]]) -> Iterator[dict[str, Any]]:
    """What happened between each sample and the next: one call, or several."""
    for before, after in pairwise(samples):
        passed = {name: after[name] - before[name] for name in before}
        if passed["calls"] == 0:
            continue
        yield {
            "first": before["calls"] + 1,
            "at": before["time"] - samples[0]["time"],
            **{name: count for name, count in passed.items() if count and name != "time"},
        }


def _graph(entry: dict[str, Any], files: _Files, texts: _Texts) -> dict[str, Any]:
    picture = entry["picture"] or _NO_PICTURE
    _add_seconds(picture["seconds"], entry["program_seconds"], files)

    def placed(rows: list[tuple[Any, ...]]) -> list[list[Any]]:
        return [
            [line, files.number(file), number, *rest] if file else [line, None, 0, *rest]
            for line, file, number, *rest in rows
        ]

    return {
        "counters": {name: entry[name] for name in ("hits", "misses", "aborts")},
        "seconds": entry["program_seconds"],
        "assumptions": text_report.grouped(entry["assumptions"]),
        "made_of": [line.strip() for line in text_report.made_of(entry["lines"])],
        "count": len(entry["assumptions"]),
        "generated": divided(entry["generated"]),
        "optimised": divided(entry["optimised"]),
        "places": placed(picture["places"]),
        "operators": placed(picture["operators"]),
        "kernels": [[line, texts.number(llvm)] for line, llvm in picture["kernels"]],
        "order": picture["order"],
        "memory": picture["memory"],
        "arena_bytes": picture["arena_bytes"],
        "steps": divided(entry["program"]),
    }


def _add_seconds(rows: list[tuple[str, int, float]], whole: float, files: _Files) -> None:
    """Divides what all runs of a graph took as those were that were timed."""
    timed = sum(seconds for _, _, seconds in rows)
    for file, line, seconds in rows if timed else ():
        files.add_seconds(file, line, seconds / timed * whole)


# Of a graph whose objects died.
_NO_PICTURE: dict[str, Any] = {
    "places": [], "operators": [], "kernels": [], "order": [], "memory": [], "arena_bytes": 0,
    "seconds": [],
}  # fmt: skip
