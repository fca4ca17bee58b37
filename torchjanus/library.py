"""Which compiled library fits the Python and the torch that run.

A library is made for one version of Python and one minor version of torch, as both change what lies in memory
where. There may be several: `torchjanus._core` is the file in libraries/torch-2.13, or in the folder of another
version, whose name has the tag of this Python. Where none fits, programs run imperatively (imperative.py), and one
sentence says which versions there are libraries for.
"""

import importlib.machinery
import platform
import re
import sys
from pathlib import Path

import torch

LIBRARIES = Path(__file__).with_name("libraries")


def folder() -> Path:
    """Where the library for the installed torch lies, or would lie."""
    return LIBRARIES / f"torch-{_minor(torch.__version__)}"


def is_there() -> bool:
    """Whether some library fits."""
    suffixes = importlib.machinery.EXTENSION_SUFFIXES
    return any((folder() / f"_core{suffix}").exists() for suffix in suffixes)


def sentence() -> str:
    """That no library fits, and which versions one does."""
    by_python: dict[str, list[str]] = {}
    for python, of_torch in sorted(_pairs(), key=lambda pair: (_key(pair[0]), _key(pair[1]))):
        by_python.setdefault(python, []).append(of_torch)
    known = "; ".join(
        f"Python {each} with torch {' or '.join(by_python[each])}" for each in by_python
    )
    running = f"{_minor(platform.python_version())}{sys.abiflags}"  # 3.14t has no global lock
    return (
        f"torchjanus: no compiled library fits Python {running} with torch {torch.__version__}, so "
        f"everything runs imperatively; this installation has libraries for {known or 'no versions'}"
    )


def _pairs() -> list[tuple[str, str]]:
    """The minor versions of Python and torch that there are libraries for."""
    pairs = []
    for file in LIBRARIES.glob("torch-*/_core.cpython-*.so"):
        tag = re.match(r"_core\.cpython-(\d)(\d+t?)-", file.name)
        if tag is not None:
            pairs.append((f"{tag[1]}.{tag[2]}", file.parent.name.removeprefix("torch-")))
    return pairs


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _key(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]
