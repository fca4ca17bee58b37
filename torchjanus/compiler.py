"""Compiles C++ text and loads the library, with a cache on disk.

The cache is that of compiled kernels (src/jit/object_cache.h), in the folder `code` of
$TORCHJANUS_CACHE (empty or 0: nothing is kept), else of $XDG_CACHE_HOME/torchjanus, else of
~/.cache/torchjanus. The key is text, compiler, flags and CPU. The folder belongs to this user alone,
and the loaded file is a copy of the verified content.
"""

import ctypes
import functools
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from . import library

if TYPE_CHECKING or library.is_there():
    from ._core import find_kept, keep
else:
    from .imperative import find_kept, keep

FLAGS = ("-std=c++17", "-O3", "-march=native", "-fno-math-errno", "-shared", "-fPIC")
COMPILERS = ("c++", "g++", "clang++")


@functools.cache
def load(text: str, flags: tuple[str, ...], name: str) -> ctypes.CDLL:
    """The library compiled from the C++ text. Raises RuntimeError with `name` if that fails."""
    command = compiler(name)
    key = "\0".join([text, compiler_version(command), *FLAGS, *flags, cpu()])
    with tempfile.TemporaryDirectory(prefix="torchjanus-") as scratch:
        made = Path(scratch) / "code.so"
        if found := find_kept("code", key):
            made.write_bytes(found)
        else:
            compile_text([*command, *FLAGS, *flags], text, name, made)
            keep("code", key, made.read_bytes())
        return ctypes.CDLL(str(made))


def compiler(name: str) -> tuple[str, ...]:
    """The compiler's command. CXX may put another one in front of it, as in `ccache g++`."""
    given = os.environ.get("CXX")
    for candidate in [given] if given else COMPILERS:
        words = [candidate] if shutil.which(candidate) else shlex.split(candidate)
        if words and (found := shutil.which(words[0])):
            return (found, *words[1:])
    raise RuntimeError(
        f"{name}: torchjanus.code needs a C++ compiler, and there is no "
        f"{given or ', '.join(COMPILERS)}; install one (on Debian: apt install g++) or name it in CXX"
    )


def compile_text(command: Sequence[str], text: str, name: str, library: Path) -> None:
    source = library.with_suffix(".cpp")
    source.write_text(text)
    run = subprocess.run(
        [*command, str(source), "-o", str(library)], capture_output=True, text=True
    )
    if run.returncode != 0:
        said = run.stderr.strip() or f"{shlex.join(command)} ended with status {run.returncode}"
        raise RuntimeError(f"{name}: the C++ of torchjanus.code is wrong:\n{said}")


@functools.cache
def compiler_version(command: tuple[str, ...]) -> str:
    run = subprocess.run([*command, "--version"], capture_output=True, text=True)
    return run.stdout


@functools.cache
def cpu() -> str:
    """The CPU that `-march=native` stands for."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((line for line in lines if line.startswith("flags")), platform.machine())
