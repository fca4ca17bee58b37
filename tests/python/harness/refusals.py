"""Statements that keep a function imperative, each for a named reason.

A test's function is `def f(x, w)` with a statement of a table in it; `x` is a tensor of two ones, `w` a leaf
that requires a gradient. Its eager and its converted run have to agree in all that differential.py sees, and
the reason has to be reported with its code, its sentence and its place. A branch whose sides can't be merged
is followed instead: then the graph's line says why.
"""

import linecache
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from differential import Program, compare, default_dtype, observe, seeded

import torch
import torchjanus

CALLS = 6
STATEMENT = 2  # its first line


@dataclass
class Refused:
    """A statement, and what is said of it."""

    statement: str
    sentence: str  # a part of it
    at_entry: bool = False  # found when the run ends: the function's line is named
    helper: str = ""  # the function in which it is found


def _ones() -> list[Any]:
    return [torch.ones(2) for _ in range(CALLS)]


def check_refusal(
    case: Refused,
    code: str,
    space: Callable[[], dict[str, Any]],
    firsts: Callable[[], list[Any]] = _ones,
) -> None:
    """`space` makes what the statement uses, anew for each run; `firsts` what `x` is in each call."""
    found = torchjanus.stats(_converted(case, space, firsts))["reasons"]
    places = [
        (each["file"], each["line"])
        for each in found
        if each["code"] == code and case.sentence in each["sentence"]
    ]
    assert places, found
    assert any(_is_place(case, place, space) for place in places), places


def check_followed(
    case: Refused, space: Callable[[], dict[str, Any]], firsts: Callable[[], list[Any]]
) -> None:
    """The branch of the statement is no branch of a graph, for the case's reason."""
    graphs = _converted(case, space, firsts).snapshot()["cache"]
    notes = [line for graph in graphs for line in graph["lines"] if line["note"]]
    places = [
        (each["file"], each["line"])
        for each in notes
        if "no branch in the graph: " in each["note"] and case.sentence in each["note"]
    ]
    assert places, notes
    assert any(_is_place(case, place, space) for place in places), places


def _converted(
    case: Refused, space: Callable[[], dict[str, Any]], firsts: Callable[[], list[Any]]
) -> torchjanus.Function:
    """The converted function, all calls of which agree with eager ones."""
    functions = []

    def convert(f: Callable[..., Any]) -> tuple[Any, Any]:
        functions.append(torchjanus.function(f))
        return functions[-1], functions[-1]

    with default_dtype(torch.float32):
        runs = []
        for converted in (False, True):
            program = seeded(lambda: _program(case.statement, space(), firsts()), {})
            program.convert = convert
            runs.append(observe(program, converted=converted))
        eager, ours = runs
        for index, (one, other) in enumerate(zip(eager.steps, ours.steps, strict=True)):
            compare(one, other, f"after call {index}", 1e-6)
    return functions[0]


def _program(statement: str, names: dict[str, Any], firsts: list[Any]) -> Program:
    lines = ["def f(x, w):", *(f"    {line}" for line in statement.split("\n")), "    return x * 2"]
    text = "\n".join(lines) + "\n"
    linecache.cache[_file(statement)] = (len(text), None, text.splitlines(True), _file(statement))
    exec(compile(text, _file(statement), "exec"), names)
    w = torch.ones(2, requires_grad=True)
    return Program(names["f"], [(x, w) for x in firsts], watch=[w])


def _file(statement: str) -> str:
    return f"<{statement}>"


def _is_place(case: Refused, place: tuple[str, int], space: Callable[[], dict[str, Any]]) -> bool:
    file, line = place
    if case.helper:
        helper = space()[case.helper]
        first = helper.__code__.co_firstlineno
        last = max(each for _, _, each in helper.__code__.co_lines() if each)
        return file == helper.__code__.co_filename and first <= line <= last
    if file != _file(case.statement):
        return False
    if case.at_entry:
        return line == 1
    return STATEMENT <= line <= STATEMENT + case.statement.count("\n")
