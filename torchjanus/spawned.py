"""Python processes that a program starts (`multiprocessing`, `subprocess`): each is converted as the program is.

All of them come from `fork_exec`. Under `torchjanus run` it gets another command line, by which the new process begins
with child_program.py. The program sees its own line, here and there.
"""

import _posixsubprocess
import atexit
import functools
import os
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from . import _core, child_program, children, clock, history, importing

_WITH_ARGUMENT, _LEFT_ALONE = "WX", "hiVx?-"  # options of the interpreter
_LONGEST = 100_000  # bytes; a command line may hold 128 KiB in one word
_CWD, _USER, _BEFORE = 4, slice(17, 20), 21  # places among the arguments of fork_exec


def convert_from_here(
    folders: Sequence[Path], stats: Path | None, mains: Collection[str] = ()
) -> None:
    """Converts what this process imports from now on, and the Python processes that it starts.

    Args:
        folders: Modules below them are the program's own, if they are not installed packages.
        stats: Where the program's counters go, if they are wanted; a process writes `stats.<its number>`.
        mains: Names by which the program itself is imported, if it is: it may be an installed package.
    """
    importing.install_hook(folders, mains)
    _core.open_conversion_account(1e3 * (time.process_time() - clock.began))
    _core.watch_for_entry_points()
    file = None if stats is None else str(stats.absolute())
    converted = functools.partial(_converted_line, [str(each) for each in folders], file)
    original = _posixsubprocess.fork_exec

    def fork_exec(arguments: Any, executables: Any, *others: Any) -> int:
        given = (arguments, executables, *others)
        # Another user, or what runs first there, may not see our files.
        may_differ = given[_BEFORE] is not None or any(each is not None for each in given[_USER])
        line = None if may_differ else converted(arguments, executables, given[_CWD])
        process: int = original(line or arguments, executables, *others)
        return process

    _posixsubprocess.fork_exec = fork_exec
    subprocess._fork_exec = fork_exec  # type: ignore[attr-defined]
    # Without this switch, Python 3.13 starts most processes by `posix_spawn` (3.11: some).
    subprocess._USE_POSIX_SPAWN = False  # type: ignore[misc]


def recall(program: Path) -> None:
    """Begins with what earlier runs of the program have found out, and keeps what this one does."""
    past = history.History(program)
    past.recall()
    atexit.register(past.keep)


def begin(folders: Sequence[str], stats: str | None, parent: int, program: str | None) -> None:
    """What a process that was started does before the first file that needs it.

    Args:
        folders, stats: As those of `convert_from_here`.
        parent: The process that started it.
        program: The script or module that it was started for, if that is the file.
    """
    convert_from_here([Path(each) for each in folders], None if stats is None else Path(stats))
    if program is not None:
        recall(Path(program))
    if stats is not None:
        children.StatsFiles(Path(stats), parent)


def _converted_line(
    folders: list[str], stats: str | None, arguments: Any, executables: Any, cwd: Any
) -> list[bytes] | None:
    """The command line that begins with child_program.py; None if that is no business of ours."""
    runs = next((each for each in executables if os.access(each, os.X_OK)), None)
    if runs is None or os.fsdecode(runs) != sys.executable:
        return None
    line = [os.fsdecode(each) for each in arguments]
    if (parsed := _parsed(line)) is None:
        return None
    options, how, what, rest = parsed
    if how == "-m" and what.split(".")[0] == "torchjanus":
        return None
    if how == "" and not os.path.isfile(os.path.join(os.fsdecode(cwd or ""), what)):
        return None
    code = (
        "import importlib.util as u\n"
        f"s = u.spec_from_file_location('_torchjanus_child', {child_program.__file__!r})\n"
        "m = u.module_from_spec(s)\n"
        "s.loader.exec_module(m)\n"
        f"m.run({how!r}, {what!r}, {line!r}, {folders!r}, {stats!r}, {os.getpid()})"
    )
    if len(os.fsencode(code)) > _LONGEST:
        return None
    return [os.fsencode(each) for each in [*options, "-c", code, *rest]]


def _parsed(line: list[str]) -> tuple[list[str], str, str, list[str]] | None:
    """The interpreter and its options, what they are followed by ("", "-m" or "-c"), that, and the arguments."""
    place = 1
    while place < len(line):
        word = line[place]
        if not word.startswith("-"):
            is_source = not word.endswith((".pyc", ".zip", ".pyz"))
            return (line[:place], "", word, line[place + 1 :]) if is_source else None
        if word == "-":
            return None
        for index, letter in enumerate(word[1:], start=1):
            if letter in _LEFT_ALONE:
                return None
            if letter in "cm":
                kept = [*line[:place], *([word[:index]] if index > 1 else [])]
                given = [word[index + 1 :]] if word[index + 1 :] else []
                what = [*given, *line[place + 1 :]]
                return (kept, f"-{letter}", what[0], what[1:]) if what else None
            if letter in _WITH_ARGUMENT:
                place += index == len(word) - 1  # it is the next word
                break
        place += 1
    return None
