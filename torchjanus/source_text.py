"""Source files as reports need them: lines, and which function and statement each line belongs to."""

import ast
import contextlib
import importlib.util
import linecache
import os
import re
from collections.abc import Iterator
from functools import cached_property

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


# What was compiled, as files may be edited while the program runs; by printable names.
_as_run: dict[str, bytes] = {}


def remember(file: str, source: bytes) -> None:
    """From now on, reports show this as the source of the file."""
    _as_run[printable(file)] = source


def first_remembered() -> str | None:
    """The file of the program itself under `torchjanus run`, which is compiled first."""
    return next(iter(_as_run), None)


def printable(text: str) -> str:
    """A text that every file can hold: bytes of a file's name that are no UTF-8 become `\\udcff`.

    The compiled part tells names of files in this form (src/base/printable.h).
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def divided(text: str) -> list[str]:
    """The lines of a text as Python counts them, without their ends. `str.splitlines` divides at more characters, such
    as form feeds and U+2028, which may stand within a line or a string."""
    lines = re.split("\r\n|\r|\n", text)
    return lines if lines[-1] else lines[:-1]


def _lines_of(file: str) -> list[str]:
    if file in _as_run:
        with contextlib.suppress(SyntaxError, UnicodeDecodeError):
            return divided(importlib.util.decode_source(_as_run[file]))
    return linecache.getlines(_as_python_names_it(file))


def _as_python_names_it(file: str) -> str:
    """What `printable` was given, if that is a file."""
    named = re.sub(r"\\u(dc[89a-f][0-9a-f])", lambda found: chr(int(found[1], 16)), file)
    return named if named != file and os.path.exists(named) else file


class SourceFile:
    """One file, as it was when it was compiled; where that is not known, when this was made."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.lines = [line.rstrip() for line in _lines_of(file)]

    def line(self, number: int) -> str:
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    @cached_property
    def tree(self) -> ast.Module | None:
        try:
            return ast.parse("\n".join(self.lines))
        except SyntaxError:  # a notebook cell with magics, for instance
            return None

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree)) if self.tree is not None else []

    @cached_property
    def functions(self) -> list[tuple[int, int, str]]:
        """First line, last line and name of each, inner ones after those around them."""
        return [
            (node.lineno, node.end_lineno or node.lineno, name)
            for node, name in _functions(self.tree, "")
        ]

    @cached_property
    def statements(self) -> dict[int, ast.stmt]:
        """By line: the innermost statement that it belongs to."""
        found: dict[int, ast.stmt] = {}
        all_statements = [node for node in self.nodes if isinstance(node, ast.stmt)]
        for node in sorted(reversed(all_statements), key=lambda each: each.lineno):
            for number in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                found[number] = node
        return found

    def statement(self, number: int, first: int) -> ast.stmt | None:
        """The innermost statement of a line, of those that begin at line `first` or later."""
        found = self.statements.get(number)
        return found if found is not None and found.lineno >= first else None

    def bodies(self, first: int, last: int) -> Iterator[tuple[ast.AST, str, list[ast.stmt]]]:
        """The runs of statements that lie within these lines, each with the node and field whose it is."""
        for node, field, body in self._bodies:
            if first <= body[0].lineno and (body[-1].end_lineno or 0) <= last:
                yield node, field, body

    @cached_property
    def _bodies(self) -> list[tuple[ast.AST, str, list[ast.stmt]]]:
        fields = ("body", "orelse", "finalbody")
        found = [
            (node, field, getattr(node, field, None)) for node in self.nodes for field in fields
        ]
        return [
            (node, field, body) for node, field, body in found if isinstance(body, list) and body
        ]

    @cached_property
    def _ends(self) -> tuple[dict[int, int], dict[int, int], dict[int, int]]:
        """By first line: the last line of a function, of a lambda, and of a body of statements."""
        functions: dict[int, int] = {}
        lambdas: dict[int, int] = {}
        bodies: dict[int, int] = {}
        for node in self.nodes:
            if isinstance(node, FunctionNode):
                functions.setdefault(_first_line(node), node.end_lineno or node.lineno)
            elif isinstance(node, ast.Lambda):
                lambdas.setdefault(node.lineno, node.end_lineno or node.lineno)
            body = getattr(node, "body", None)
            if isinstance(body, list) and body and not isinstance(node, ast.Module):
                for each in body:
                    if isinstance(each, ast.stmt):
                        bodies.setdefault(each.lineno, body[-1].end_lineno)
        return functions, lambdas, bodies

    def span(self, start: int, name: str) -> tuple[int, int] | None:
        """The lines of the function, lambda or run of statements that begins at a line."""
        functions, lambdas, bodies = self._ends
        if start in functions:
            return start, functions[start]
        if start in lambdas and "<lambda>" in name:
            return start, lambdas[start]
        return (start, bodies[start]) if start in bodies else None

    def enclosing(self, line: int) -> tuple[int, int, str]:
        """The innermost function around a line: its first and last line and its name."""
        around = [each for each in self.functions if each[0] <= line <= each[1]]
        return around[-1] if around else (line, line, "code")


class Sources:
    """The files of one report, each read and parsed once."""

    def __init__(self) -> None:
        self._files: dict[str, SourceFile] = {}

    def __getitem__(self, file: str) -> SourceFile:
        if file not in self._files:
            self._files[file] = SourceFile(file)
        return self._files[file]


def _first_line(function: FunctionNode) -> int:
    return min([function.lineno, *(each.lineno for each in function.decorator_list)])


def _functions(node: ast.AST | None, prefix: str) -> Iterator[tuple[FunctionNode, str]]:
    for child in ast.iter_child_nodes(node) if node is not None else ():
        if isinstance(child, FunctionNode | ast.ClassDef):
            name = f"{prefix}{child.name}"
            if not isinstance(child, ast.ClassDef):
                yield child, name
            yield from _functions(child, f"{name}.")
        else:
            yield from _functions(child, prefix)
