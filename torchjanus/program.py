"""What `torchjanus run` is given: a script, a module, or a folder or archive with a `__main__.py`.

It is found without running any of it: the packages around a module must not be imported before what they import is
converted. No compiled library is needed.
"""

import functools
import importlib.util
import os
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


class Program:
    """The program, as the command line names it."""

    def __init__(
        self, name: str, arguments: Sequence[str] = (), *, is_module: bool, is_own_process: bool
    ) -> None:
        """`is_own_process`: Python was started for the command, whose folder stands first in `sys.path`."""
        self.name, self.arguments, self.is_module = name, arguments, is_module
        self.path = os.getcwd() if is_module else absolute(name)
        # As Python asks whether it is a folder or an archive.
        self.is_container = not is_module and pkgutil.get_importer(self.path) is not None
        self.source: bytes | None = None
        self.has_begun = False
        self._replaced = is_own_process and not sys.flags.safe_path

    @property
    def is_archive(self) -> bool:
        return self.is_container and not os.path.isdir(self.path)

    def read(self) -> Iterator[str]:
        """Reads a script, once, as it may be a pipe. Gives a sentence if that fails."""
        if self.is_module or self.is_container:
            return
        try:
            self.source = Path(self.path).read_bytes()
        except OSError as error:
            why = f"[Errno {error.errno}] {error.strerror}"
            yield f"torchjanus: can't open file '{os.path.abspath(self.path)}': {why}"

    def enter(self) -> None:
        """Sets `sys.path` and `sys.argv` as Python does."""
        sys.path[: self._replaced] = self._first()
        sys.argv = ["-m" if self.is_module else self.name, *self.arguments]

    def _first(self) -> list[str]:
        """What Python puts first in `sys.path`."""
        if self.is_container:
            return [self.path]
        if sys.flags.safe_path:
            return []
        return [self.path if self.is_module else os.path.dirname(os.path.realpath(self.path))]

    @functools.cached_property
    def file(self) -> Path | None:
        """The file that will run; None for a module of which there is no such file, or only Python finds it."""
        if self.is_module:
            return self._module[0]
        return Path(self.path, "__main__.py" if self.is_container and not self.is_archive else "")

    @property
    def folders(self) -> list[Path]:
        """Modules below them are the program's own, if they are not installed packages."""
        if self.is_module:  # what lies where it is started is the program of `-m pytest`
            return [*self._module[1], Path(self.path).resolve()]
        assert self.file is not None
        return [self.file.resolve().parent]

    @property
    def mains(self) -> list[str]:
        """By which names it is imported, where Python imports it: then it is converted wherever it lies."""
        if self.is_module:
            return [self.name, f"{self.name}.__main__"]
        return ["__main__"] if self.is_container else []

    @functools.cached_property
    def _module(self) -> tuple[Path | None, list[Path]]:
        """The module's file, and the folders of its outermost package."""
        outermost, *inner = self.name.split(".")
        try:
            with self._entered():
                spec = importlib.util.find_spec(outermost)  # which imports nothing
        except (ImportError, AttributeError, TypeError, ValueError):
            return None, []
        if spec is None:
            return None, []
        if spec.submodule_search_locations is None:
            file = Path(spec.origin) if spec.has_location and spec.origin and not inner else None
            return file, [file.resolve().parent] if file else []
        folders = [Path(each) for each in spec.submodule_search_locations]
        file = _below(folders, inner or ["__main__"])
        return file, [each.resolve() for each in folders]

    @contextmanager
    def _entered(self) -> Iterator[None]:
        found = sys.path[:]
        sys.path[: self._replaced] = self._first()
        try:
            yield
        finally:
            sys.path[:] = found


def absolute(path: str) -> str:
    """As Python names a script in `__file__` and tracebacks: links are not followed."""
    return os.path.join(os.getcwd(), path)  # a Path would leave out "./"


def _below(folders: Sequence[Path], parts: Sequence[str]) -> Path | None:
    """The file of a module that lies in a package of these folders."""
    part, inner = parts[0], parts[1:]
    for folder in folders:
        if (folder / part / "__init__.py").is_file():
            return _below([folder / part], inner or ["__main__"])
        if (file := folder / f"{part}.py").is_file():
            return None if inner else file
    without_init = [folder / part for folder in folders if (folder / part).is_dir()]
    return _below(without_init, inner or ["__main__"]) if without_init else None
