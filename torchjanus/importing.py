"""The modules of a program: they are compiled with regions when they are imported."""

import importlib.abc
import importlib.machinery
import sys
import time
import types
from collections.abc import Collection, Sequence
from pathlib import Path

from . import _core, installed, script, source_text
from .messages import internal_error


def compile_source(source: bytes, file: str) -> types.CodeType:
    """The rewritten code; the plain code if rewriting fails for a reason of our own."""
    start = time.thread_time()
    source_text.remember(file, source)
    try:
        return script.compile_script(source, file)
    except SyntaxError as error:
        raise error.with_traceback(None) from None
    except RecursionError:
        return _left_alone(source, file)
    except Exception as error:
        internal_error(f"{file} could not be rewritten", error, "It runs eagerly.")
        return compile(source, file, "exec", dont_inherit=True)
    finally:
        _core.spend(1e3 * (time.thread_time() - start))


def _left_alone(source: bytes, file: str) -> types.CodeType:
    """The plain code of a text whose tree is too deep: Python compiles deeper ones from the text itself."""
    try:
        code = compile(source, file, "exec", dont_inherit=True)
    except RecursionError as error:
        raise error.with_traceback(None) from None
    script.leave_alone(file)
    return code


class _RewritingLoader(importlib.machinery.SourceFileLoader):
    """Loads a module of the user's own with its regions, past the byte code cache."""

    def get_code(self, fullname: str) -> types.CodeType:
        path = self.get_filename(fullname)
        return compile_source(self.get_data(path), path)


class _UserFileFinder(importlib.abc.MetaPathFinder):
    """Finds the modules that lie below the program's folders and are not installed packages."""

    def __init__(self, folders: Sequence[Path], mains: Collection[str]) -> None:
        self.folders, self.mains = folders, mains
        self.installed = {Path(each).resolve() for each in installed.ALL}
        self.installed.add(Path(__file__).resolve().parent)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: types.ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or type(spec.loader) is not importlib.machinery.SourceFileLoader:
            return None
        is_main = fullname in self.mains and spec.submodule_search_locations is None
        if not is_main and not self._is_of_program(spec.loader.path):
            return None
        spec.loader = _RewritingLoader(fullname, spec.loader.path)
        return spec

    def _is_of_program(self, file: str) -> bool:
        parents = Path(file).resolve().parents
        return any(folder in parents for folder in self.folders) and not any(
            place in parents for place in self.installed
        )


def install_hook(folders: Sequence[Path], mains: Collection[str] = ()) -> None:
    """From now on, modules below the folders are imported with their regions, if they are not installed packages.

    `mains`: the modules of these names are, wherever they lie.
    """
    sys.meta_path.insert(0, _UserFileFinder(folders, mains))
