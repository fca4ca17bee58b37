"""Processes that a program spawns (`multiprocessing`'s start method `spawn`): each is converted as the program is.

A spawned process is a new Python that imports the program's main module under another name. Under `torchjanus run`
its command line begins with `begin`, which does there what the command did for the program.
"""

import multiprocessing.spawn
import os
import runpy
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import _core, children, clock, importing


def convert_from_here(folders: Sequence[Path], stats: Path | None) -> None:
    """Converts what this process imports from now on, and the processes that it spawns.

    Args:
        folders: Modules below them are the program's own, if they are not installed packages.
        stats: Where the program's counters go, if they are wanted; a spawned process writes `stats.<its number>`.
    """
    importing.install_hook(folders)
    _core.open_conversion_account(1e3 * (time.process_time() - clock.began))
    _core.watch_for_entry_points()
    original = multiprocessing.spawn.get_command_line
    file = None if stats is None else str(stats.absolute())

    def get_command_line(**arguments: Any) -> list[str]:
        line = original(**arguments)
        if "-c" in line:
            place = line.index("-c") + 1
            call = f"begin({[str(each) for each in folders]!r}, {file!r}, {os.getpid()})"
            line[place] = f"from {__name__} import begin\n{call}\n{line[place]}"
        return line

    multiprocessing.spawn.get_command_line = get_command_line


def begin(folders: Sequence[str], stats: str | None, parent: int) -> None:
    """The first thing that a spawned process does.

    Args:
        folders, stats: As those of `convert_from_here`.
        parent: The process that spawned it.
    """
    convert_from_here([Path(each) for each in folders], None if stats is None else Path(stats))
    _rewrite_main()
    if stats is not None:
        children.StatsFiles(Path(stats), parent)


def _rewrite_main() -> None:
    """Lets `runpy`, by which `multiprocessing` imports the program's script, compile it with its regions."""
    original = getattr(runpy, "_get_code_from_file", None)
    if original is None:
        return  # another version of Python: the script's own functions stay as they are

    def get_code_from_file(*arguments: Any) -> Any:
        found = original(*arguments)
        file = os.fspath(arguments[-1])
        code = importing.compile_source(Path(file).read_bytes(), file)
        return (code, *found[1:]) if isinstance(found, tuple) else code

    runpy._get_code_from_file = get_code_from_file  # type: ignore[attr-defined]
