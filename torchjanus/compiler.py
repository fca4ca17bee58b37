"""C++ to loaded libraries, which are kept on disk.

They are in the folder `code` of $TORCHJANUS_CACHE (empty or 0: nothing is kept), else of
$XDG_CACHE_HOME/torchjanus, else of ~/.cache/torchjanus: one file for each text, compiler, set of
flags and CPU, with a checksum beside it. Writers may come at the same time; what does not match its
checksum is compiled anew.
"""

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

FLAGS = ("-std=c++17", "-O3", "-march=native", "-fno-math-errno", "-shared", "-fPIC")
COMPILERS = ("c++", "g++", "clang++")


@functools.cache
def load(text: str, flags: tuple[str, ...], name: str) -> ctypes.CDLL:
    """The library made of the C++ text. RuntimeError, with `name`, if that can't be compiled."""
    key = digest([text, compiler_version(compiler(name)), *FLAGS, *flags, cpu()])
    folder = cache_folder()
    if folder is not None and is_intact(folder / f"{key}.so"):
        return ctypes.CDLL(str(folder / f"{key}.so"))
    with tempfile.TemporaryDirectory(prefix="torchjanus-") as scratch:
        made = compile_text(text, flags, name, Path(scratch))
        return ctypes.CDLL(str(kept(made, folder, key) if folder is not None else made))


def compiler(name: str) -> str:
    given = os.environ.get("CXX")
    for candidate in [given] if given else COMPILERS:
        if found := shutil.which(candidate):
            return found
    raise RuntimeError(
        f"{name}: torchjanus.code needs a C++ compiler, and there is no "
        f"{given or ', '.join(COMPILERS)}; install one (on Debian: apt install g++) or name it in CXX"
    )


def compile_text(text: str, flags: Sequence[str], name: str, scratch: Path) -> Path:
    source, library = scratch / "code.cpp", scratch / "code.so"
    source.write_text(text)
    command = [compiler(name), *FLAGS, *flags, str(source), "-o", str(library)]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        raise RuntimeError(f"{name}: the C++ of torchjanus.code is wrong:\n{run.stderr.strip()}")
    return library


# --- the folder ------------------------------------------------------------------------------------


def cache_folder() -> Path | None:
    """Made if it is not there, readable by nobody else; None if nothing is to be kept, or can be."""
    chosen = os.environ.get("TORCHJANUS_CACHE")
    if chosen is not None and chosen in ("", "0"):
        return None
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = (Path(chosen) if chosen else Path(home) / "torchjanus") / "code"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if folder.stat().st_uid != os.getuid() or not os.access(folder, os.W_OK):
            raise PermissionError(f"{folder} is somebody else's or can't be written")
    except OSError as error:
        warn_once(str(error))
        return None
    return folder


def is_intact(library: Path) -> bool:
    try:
        return library.with_suffix(".sha256").read_text() == checksum(library)
    except OSError:
        return False


def kept(made: Path, folder: Path, key: str) -> Path:
    """The library in its place, or where it was made if that fails."""
    library = folder / f"{key}.so"
    try:
        put(library, made.read_bytes())
        put(library.with_suffix(".sha256"), checksum(made).encode())
    except OSError as error:
        warn_once(str(error))
        return made
    return library


def put(path: Path, content: bytes) -> None:
    """Written beside its place and moved there, so that nobody reads half of it."""
    handle, beside = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(beside, path)
    except OSError:
        Path(beside).unlink(missing_ok=True)
        raise


@functools.cache
def warn_once(why: str) -> None:
    warnings.warn(f"torchjanus.code keeps nothing on disk: {why}", RuntimeWarning, stacklevel=2)


# --- what a library depends on ----------------------------------------------------------------------


def digest(parts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@functools.cache
def compiler_version(path: str) -> str:
    return subprocess.run([path, "--version"], capture_output=True, text=True).stdout


@functools.cache
def cpu() -> str:
    """What `-march=native` means here."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((line for line in lines if line.startswith("flags")), platform.machine())
