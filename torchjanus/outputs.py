"""The files that `torchjanus run` is asked for: what is wrong with them is told before the program runs."""

import argparse
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

from . import at_end, ranks

_SOURCE = (".py", ".pyw", ".ipynb")


def problems(options: argparse.Namespace, program: Path | None) -> Iterator[str]:
    """A sentence for each reason why nothing may run. `program`: its file."""
    files = list(_asked_for(options))
    for option, file in files:
        if why := _why_not(option, file, program):
            yield f"torchjanus: {why}"
    for (option, file), (other, another) in itertools.combinations(files, 2):
        if _is_same(ranks.own_file(file), ranks.own_file(another)):
            yield f"torchjanus: {option} {file} and {other} {another} are the same file"


def reports_asked_for(options: argparse.Namespace) -> str:
    """The options that ask for a report, as they stand in a sentence."""
    shown = [f"--{name}" for name in ("explain", "live") if getattr(options, name)]
    return ", ".join([*shown, *(option for option, _ in _asked_for(options))])


def _asked_for(options: argparse.Namespace) -> Iterator[tuple[str, Path]]:
    for name in ("stats", "report", "trace", "tensorboard"):
        file = getattr(options, name)
        if file is not None:
            yield f"--{name}", file


def _why_not(option: str, file: Path, program: Path | None) -> str | None:
    """Why nothing can or should be written there."""
    is_folder = option == "--tensorboard"
    own = ranks.own_file(file).absolute()
    if why := at_end.why_not(own, is_folder=is_folder):
        return f"can't write {file}: {why}"
    if is_folder:
        return None
    if program is not None and _is_same(own, program):
        return f"{option} {file} would overwrite the program itself, {program}"
    if own.suffix.lower() in _SOURCE and own.exists():  # an argument is missing, or two are swapped
        return f"{option} {file} would overwrite a file of source code"
    return None


def _is_same(file: Path, other: Path) -> bool:
    """Whether what is written to one replaces the other; /dev/null takes all there is."""
    try:
        return os.path.samefile(file, other) and (file.is_file() or file.is_dir())
    except OSError:  # one of them does not exist yet
        return os.path.realpath(file) == os.path.realpath(other)
