"""Programs in a thread, or in a process, of their own."""

import concurrent.futures
import subprocess
import sys
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def in_a_thread(program: Callable[[], Result]) -> Result:
    """What a program gives in a thread, and so a session of lazy execution, of its own."""
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        return executor.submit(program).result()


def in_a_process(text: str) -> str:
    """What a program prints that must end well, and soon: one that waits for ever fails."""
    run = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    return run.stdout
