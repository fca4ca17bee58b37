"""Statements that keep a function imperative, each for a named reason.

A test's function is `def f(x, w)` with a statement of a table in it; `x` is a tensor of two ones, `w` a leaf
that requires a gradient. Its eager and its converted run have to agree in all that differential.py sees, and
the reason has to be reported with its code, its sentence and its place.
"""

import linecache
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from differential import Program, compare, default_dtype, observe, seeded

import torch

CALLS = 6
STATEMENT = 2  # its first line


@dataclass
class Refused:
    """A statement, and what is said of it."""

    statement: str
    sentence: str  # a part of it
    at_entry: bool = False  # found when the run ends: the function's line is named
    helper: str = ""  # the function in which it is found


def check_refusal(case: Refused, code: str, space: Callable[[], dict[str, Any]]) -> None:
    """`space` makes what the statement uses, anew for each run."""
    with default_dtype(torch.float32):
        runs = []
        for converted in (False, True):
            program = seeded(lambda: _program(case.statement, space()), {})
            runs.append(observe(program, converted=converted))
        eager, ours = runs
        for index, (one, other) in enumerate(zip(eager.steps, ours.steps, strict=True)):
            compare(one, other, f"after call {index}", 1e-6)
    found = [
        (each["file"], each["line"])
        for each in ours.stats["reasons"]
        if each["code"] == code and case.sentence in each["sentence"]
    ]
    assert found, ours.stats["reasons"]
    assert any(_is_place(case, place, space) for place in found), found


def _program(statement: str, names: dict[str, Any]) -> Program:
    lines = ["def f(x, w):", *(f"    {line}" for line in statement.split("\n")), "    return x * 2"]
    text = "\n".join(lines) + "\n"
    linecache.cache[_file(statement)] = (len(text), None, text.splitlines(True), _file(statement))
    exec(compile(text, _file(statement), "exec"), names)
    w = torch.ones(2, requires_grad=True)
    return Program(names["f"], [(torch.ones(2), w) for _ in range(CALLS)], watch=[w])


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
