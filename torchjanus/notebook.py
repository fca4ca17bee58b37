"""Notebooks and IPython: `%load_ext torchjanus` lets loops in cells run as graphs, as `torchjanus run` does in scripts.

Each statement of a cell is rewritten where IPython compiles it. Functions that packages call in loops are found by
watching. `%%torchjanus` shows what became of a cell (`annotated_cell.py`), and notebooks show that graphs are being
made (`graph_progress.py`). `%unload_ext torchjanus` leaves the cells after it as they are.
"""

import ast
import linecache
import types
from typing import Any

from . import _core, script, source_text

_PARTS = "_torchjanus_parts"


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext torchjanus` calls: loops in later cells may run as graphs. Again: no-op.

    Args:
        shell: IPython's `InteractiveShell`.
    """
    if isinstance(shell.compile, _Rewriting):
        return
    from . import annotated_cell, graph_progress  # late: they are for IPython

    kind = type(shell.compile)
    shell.compile.__class__ = type(f"Rewriting{kind.__name__}", (_Rewriting, kind), {})
    parts = [annotated_cell.Magic(shell), annotated_cell.Modules(shell), _Watch()]
    if graph_progress.can_be_shown(shell):
        parts.append(graph_progress.Progress(shell))
    vars(shell.compile)[_PARTS] = parts


def unload_ipython_extension(shell: Any) -> None:
    """What `%unload_ext torchjanus` calls: later cells are left as they are.

    Args:
        shell: IPython's `InteractiveShell`.
    """
    if isinstance(shell.compile, _Rewriting):
        for part in vars(shell.compile).pop(_PARTS):
            part.remove()
        shell.compile.__class__ = type(shell.compile).__mro__[2]


class _Watch:
    """That functions which packages call in loops are looked for. Others may watch, too: `torchjanus run`."""

    def __init__(self) -> None:
        self.begun = _core.watch_for_entry_points()

    def remove(self) -> None:
        """Leaves the process as it was. What was found runs as a graph still."""
        if self.begun:
            _core.stop_watching()


class _Rewriting:
    """What is put before the class of IPython's compiler, which compiles a cell statement by statement."""

    def cache(self, transformed_code: str, *rest: Any, **options: Any) -> str:
        """IPython divides cells by `str.splitlines`: lines behind a form feed have other numbers than Python's."""
        name: str = super().cache(transformed_code, *rest, **options)  # type: ignore[misc]
        if (told := linecache.cache.get(name)) is not None and len(told) == 4:
            lines = [f"{line}\n" for line in source_text.divided(transformed_code)]
            linecache.cache[name] = (told[0], told[1], lines, told[3])
        return name

    def __call__(self, source: Any, filename: str, symbol: str) -> types.CodeType:
        def compiled(tree: ast.AST) -> types.CodeType:
            return super(_Rewriting, self).__call__(tree, filename, symbol)  # type: ignore[misc, no-any-return]

        if not isinstance(source, ast.Module) or symbol != "exec":
            return compiled(source)
        return script.compile_tree(source, filename, compiled)
