"""What is measured one by one: a process for each cell, its result kept with machine, commit and date.

A part's cells lie in one file, `PART.json`: by row, then column, `{"form": …, "about": …, "quick": …, "result": …}`. A
result has figures, or says in "problem" why there are none: that is a result as well. What is kept is not measured
again on the same machine at the same commit. Figures of earlier commits stay until they are measured anew, after all
that have none: the whole takes longer than a commit is the last one. Results of another form are as if they were not
there.
"""

import contextlib
import datetime
import hashlib
import importlib.metadata
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import record

COMMAND = record.ROOT / "benchmarks" / "evaluate.py"
MACHINE = ("machine", "instructions", "cores")
#: What a figure depends on: results, and what shows them, do not count.
MEASURED = (
    "src",
    "torchjanus",
    "benchmarks/*.py",
    "examples",
    "cmake",
    *(
        f":(exclude)benchmarks/{shown}.py"
        for shown in (
            "page",
            "tables",
            *(
                f"evaluation/{name}"
                for name in ("pages", "paper", "plots", "result_tables", "bars")
            ),
        )
    ),
)
#: Those that change what is compared with, or whether it can be.
PACKAGES = ("torch", "jax", "gymnasium")


@dataclass(frozen=True)
class Cell:
    part: str
    row: str
    column: str
    urgency: int = 5  # what is least is measured first
    seconds: int = 180  # that it may take
    reads_data: bool = False  # that --sst and --text give

    def __str__(self) -> str:
        return f"{self.part}: {self.row}, {self.column}"


#: Of what results hold. It is raised where that changes.
FORM = 2
#: What must be the same for figures to stand in one table.
COMPARABLE = (*MACHINE, "packages", "data")
#: What must be the same for a figure not to be measured again.
SAME = (*COMPARABLE, "commit")

Kept = Mapping[str, Mapping[str, Mapping[str, Any]]]  # by row and column


def read(folder: Path, part: str) -> dict[str, dict[str, Any]]:
    path = folder / f"{part}.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    return {
        row: {column: found for column, found in cells.items() if found.get("form") == FORM}
        for row, cells in kept.items()
    }


def keep(folder: Path, cell: Cell, found: Mapping[str, Any]) -> None:
    """Beside what is there; a reader never finds half of a file."""
    kept = read(folder, cell.part)
    kept.setdefault(cell.row, {})[cell.column] = record.rounded({"form": FORM, **found})
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{cell.part}.json"
    new = path.with_suffix(".new")
    new.write_text(json.dumps(kept, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
    new.replace(path)


def about() -> dict[str, Any]:
    """Machine, versions, commit and date, without torch: that is loaded where something is measured."""
    return {
        "machine": record.processor(),
        "instructions": instructions(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "packages": {
            "python": platform.python_version(),
            **{name: version(name) for name in PACKAGES},
        },
        "commit": commit(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="minutes"),
    }


def commit() -> str:
    """The last one that changed what is measured; with a digest of what is not committed of it."""
    named = record.git("log", "-1", "--abbrev=9", "--format=%h", "--", *MEASURED) or "unknown"
    changed = record.git("diff", "HEAD", "--", *MEASURED)
    return f"{named}+{hashlib.sha256(changed.encode()).hexdigest()[:6]}" if changed else named


def version(package: str) -> str | None:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(package)
    return None


def instructions() -> str:
    """The widest of those that make a difference, as torch calls them."""
    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    return next((name.upper() for name in ("avx512", "avx2") if name in flags), "default")


def is_kept(
    kept: Kept, cell: Cell, now: Mapping[str, Any], quick: bool, same: Iterable[str] = SAME
) -> bool:
    """Whether it was measured on this machine, of this, at least as well as asked for."""
    found = kept.get(cell.row, {}).get(cell.column)
    if found is None or (found["quick"] and not quick):
        return False
    return all(found["about"][key] == now[key] for key in same)


def newest(kept: Kept) -> dict[str, dict[str, Any]]:
    """By row and column the results that belong to the last one: a table is of one machine."""
    every = [found for row in kept.values() for found in row.values()]
    if not every:
        return {}
    last = max(every, key=lambda found: found["about"]["date"])["about"]
    same = {
        row: {
            column: found
            for column, found in cells.items()
            if all(found["about"][key] == last[key] for key in COMPARABLE)
        }
        for row, cells in kept.items()
    }
    return {row: cells for row, cells in same.items() if cells}


@dataclass
class Run:
    """A command's run: what is measured until when, and where it is kept."""

    folder: Path
    arguments: list[str]  # for the cells' processes
    quick: bool = False
    again: bool = False
    deadline: float = float("inf")  # by time.monotonic()
    data: tuple[str, ...] = ()  # that were given

    def left(self) -> float:
        return self.deadline - time.monotonic()

    def _about(self, cell: Cell, now: Mapping[str, Any]) -> dict[str, Any]:
        return {**now, "data": [*self.data] if cell.reads_data else []}

    def _has(self, cell: Cell, now: Mapping[str, Any], same: Iterable[str]) -> bool:
        return is_kept(read(self.folder, cell.part), cell, self._about(cell, now), self.quick, same)

    def measure(self, cells: Iterable[Cell]) -> Iterable[tuple[Cell, dict[str, Any]]]:
        """The cells that are to be measured, and their results: first those without any, the urgent ones before."""
        now = about()
        for cell in sorted(
            cells, key=lambda cell: (self._has(cell, now, COMPARABLE), cell.urgency)
        ):
            if not self.again and self._has(cell, now, SAME):
                continue
            seconds = min(cell.seconds, self.left())
            if seconds < 1:
                return
            result = measured_apart(cell, seconds, self.arguments)
            if result is None and seconds < cell.seconds:
                return  # the command's time is over, not the cell's
            result = result or {"problem": f"not ready after {cell.seconds} s"}
            same = {key: value for key, value in self._about(cell, now).items() if key in SAME}
            found = {"about": {**about(), **same}, "quick": self.quick}
            keep(self.folder, cell, {**found, "result": result})
            yield cell, result


def measured_apart(cell: Cell, seconds: float, arguments: list[str]) -> dict[str, Any] | None:
    """Its result, by a process that finds nothing compiled before; None where that takes too long."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        caches = {"TORCHJANUS_CACHE": folder, "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor"}
        command = [sys.executable, str(COMMAND), "--cell", cell.part, cell.row, cell.column]
        process = subprocess.Popen(
            [*command, "--result", str(path), *arguments],
            env={**os.environ, **caches},
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            _, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            end(process)
        if process.returncode == 0:
            return json.loads(path.read_text())
    last = errors.strip().splitlines()[-1:] or [f"exit status {process.returncode}"]
    return {"problem": f"fails: {last[0][:200]}"}


def end(process: subprocess.Popen) -> None:
    """With all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
