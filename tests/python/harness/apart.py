"""Programs in a thread, or in a process, of their own."""

import concurrent.futures
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Result = TypeVar("Result")


#: A thread's session goes to the next one when it ends.
_LIVING: list[concurrent.futures.ThreadPoolExecutor] = []


def in_a_thread(program: Callable[[], Result]) -> Result:
    """What a program gives in a thread of its own, with a session of lazy execution that knows nothing."""
    _LIVING.append(concurrent.futures.ThreadPoolExecutor(1))
    return _LIVING[-1].submit(program).result()


def in_a_process(text: str, folder: Path | None = None) -> str:
    """What a program prints that must end well, and soon: one that waits for ever fails. In a file of
    the folder, its functions have source."""
    command = ["-c", text]
    if folder is not None:
        path = folder / "program.py"
        path.write_text(text)
        command = [str(path)]
    run = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    return run.stdout
