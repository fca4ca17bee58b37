"""What `torchjanus run` does when a program has run: each step by itself, and none changes how the program ends."""

import contextlib
import errno
import os
import stat
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

from .messages import internal_error, tell


def attempt(what: str, step: Callable[[], None]) -> None:
    """Does a step. If it fails, a sentence says that `what` could not be written, and why."""
    try:
        step()
    except OSError as error:
        tell(f"torchjanus: can't write {what}: {error.strerror or error}")
    except Exception as error:
        internal_error(f"{what} could not be made", error)


def why_not(file: Path, *, is_folder: bool = False) -> str | None:
    """Why a file, or files in a folder that may be made yet, could not be written now; None: they could."""
    try:
        return _why_not(file, is_folder)
    except OSError as error:  # a name that is too long, a folder that may not be searched
        return error.strerror or str(error)


def _why_not(file: Path, is_folder: bool) -> str | None:
    mode = _mode(file)
    if is_folder:
        folder = next(each for each in [file, *file.parents] if _mode(each))
    elif stat.S_ISDIR(mode):
        return os.strerror(errno.EISDIR)
    elif mode:
        return None if os.access(file, os.W_OK) else os.strerror(errno.EACCES)
    else:
        folder = file.parent
    if not (mode := _mode(folder)):
        return os.strerror(errno.ENOENT)
    if not stat.S_ISDIR(mode):
        return os.strerror(errno.ENOTDIR)
    return None if os.access(folder, os.W_OK | os.X_OK) else os.strerror(errno.EACCES)


def _mode(path: Path) -> int:
    """Of what is there; 0 if nothing is."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0


def flush_stdout() -> None:
    """So that what comes on stderr comes later. What can't be written, Python tells itself."""
    with contextlib.suppress(Exception):
        sys.stdout.flush()


def wait_for_threads() -> None:
    """As Python does first when the program's last line has run; it finds nothing left to wait for then."""
    if threading.current_thread() is not threading.main_thread():
        return
    try:
        threading._shutdown()  # type: ignore[attr-defined]
    except BaseException as error:  # Ctrl-C, or what a thread's hook raises: Python waits no longer
        frames = traceback.format_tb(error.__traceback__ and error.__traceback__.tb_next)
        head = f"Exception ignored in: {threading!r}\nTraceback (most recent call last):\n"
        tell(f"{head}{''.join(frames)}{type(error).__name__}: {error}")
