"""What the entry of a graph asks of the import system."""

from __future__ import annotations

import importlib.util
import os
import sys
import zipimport
from typing import Any

from . import installed

_INSTALLED = (
    "<frozen importlib.",
    os.path.join(os.path.dirname(__file__), ""),
    *installed.ALL,
)


def is_missing(name: str) -> bool:
    """Whether there certainly is no module of that name: what is asked for it only looks at files."""
    finders = [getattr(each, "find_spec", None) for each in sys.meta_path]
    if not all(map(_is_installed, [*finders, *sys.path_hooks])):
        return False
    try:
        return importlib.util.find_spec(name) is None
    except (ImportError, ValueError):
        return False


def _is_installed(function: Any) -> bool:
    """Whether its code is Python's own or a package's, not the program's."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None:
        return function is zipimport.zipimporter
    return str(code.co_filename).startswith(_INSTALLED)
