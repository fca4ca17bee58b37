"""Counters of the processes that a program starts: each writes a file of its own beside the parent's."""

import contextlib
import json
import multiprocessing.util
import os
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from . import _core, at_end, text_report
from .snapshots import Snapshot


class StatsFiles:
    """Writes `file` at the end of this process, and `file.<pid>` at the end of a child that called something converted.

    Children are those of `os.fork` that end as the program does, and those of `multiprocessing` and `subprocess`.
    """

    def __init__(self, file: Path, parent: int | None = None) -> None:
        """`parent`: the process that spawned this one; None: it is the program's first."""
        self.file = file.absolute()  # the program may change the folder
        self.process = os.getpid()
        self.parent = self.process if parent is None else parent
        self.calls_before = 0
        os.register_at_fork(after_in_child=self._note_fork)
        multiprocessing.util.register_after_fork(self, StatsFiles._write_at_exit)
        if parent is not None:
            self._write_at_exit()

    def _note_fork(self) -> None:
        if not _forks_for_another(sys._getframe().f_back):
            self.parent = self.process
        self.process = os.getpid()
        self.calls_before = _calls()

    def _write_at_exit(self) -> None:
        multiprocessing.util.Finalize(None, self.write, exitpriority=-1)

    def write(self) -> None:
        """Writes the counters of the running process. What fails is told."""
        at_end.attempt(str(self.file), self._write_own)

    def _write_own(self) -> None:
        children = self.of_children()
        if self.process == self.parent:
            self._write(self.file, {"children": children})
        elif children or _calls() > self.calls_before:
            # The program may have ended, and taken its folder with it.
            with contextlib.suppress(FileNotFoundError):
                self._write(self._of(self.process), {"children": children, "parent": self.parent})

    @staticmethod
    def _write(file: Path, family: dict[str, Any]) -> None:
        file.write_text(json.dumps(text_report.stats_all() | family, indent=1))

    def told_by_children(self) -> dict[int, list[Snapshot]]:
        """What was converted in the processes that ended before this one, by their numbers; theirs, too."""
        told: dict[int, list[Snapshot]] = {}
        waiting = self.of_children()
        while waiting:
            file = Path(waiting.pop(0))
            with contextlib.suppress(OSError, ValueError):  # it is being written anew
                found = json.loads(file.read_text())
                told[int(file.suffix[1:])] = found["functions"]
                waiting += found["children"]
        return told

    def of_children(self) -> list[str]:
        """The files that children of this process have written."""
        found = self.file.parent.glob(f"{self.file.name}.*")
        return sorted(str(each) for each in found if _parent_of(each) == self.process)

    def _of(self, process: int) -> Path:
        return self.file.with_name(f"{self.file.name}.{process}")


def _forks_for_another(caller: FrameType | None) -> bool:
    """Whether this process is a fork server: its children are those of the process that it serves.

    It has loaded the program, and so has counters, since late versions of Python 3.13 and 3.14.
    """
    server = sys.modules.get("multiprocessing.forkserver")
    return server is not None and caller is not None and caller.f_code is server.main.__code__


def _calls() -> int:
    calls = 0
    stats: list[dict[str, Any]] = _core.all_stats()
    for each in stats:
        calls += each["calls"] + sum(part["calls"] for part in each.get("parts", ()))
    return calls


def _parent_of(file: Path) -> int | None:
    """The process that started the one which wrote the file; None if it is not such a file."""
    if not file.suffix[1:].isdigit():
        return None
    try:
        told = json.loads(file.read_text())
    except (OSError, ValueError):
        return None
    parent = told.get("parent") if isinstance(told, dict) else None
    return parent if isinstance(parent, int) else None
