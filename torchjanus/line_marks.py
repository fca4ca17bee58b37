"""What became of each line: the marks that reports show, with notes and reasons."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from . import co_execution
from .snapshots import Snapshot, cuts, leaves
from .source_text import FunctionNode, SourceFile, Sources

# Of several marks on a line, the last one in this order is shown.
_MARKS = {"constant": "folded", "graph": "graph", "effect": "after run", "assumed": "assumed"}
_STRENGTH = list(_MARKS)
_MODULE_CALL = torch.nn.Module._call_impl.__code__.co_filename


@dataclass
class Line:
    """A line with its mark; "" of what is no code."""

    number: int
    text: str
    mark: str
    notes: list[str]
    reasons: list[str]


@dataclass
class Block:
    """The lines of the function or loop itself (`name` is None), or of a function that it calls."""

    file: str
    name: str | None
    start: int
    lines: list[Line]


@dataclass
class _Facts:
    """The marks and notes of the lines of one file."""

    marks: dict[int, str] = field(default_factory=dict)  # a key of _MARKS
    notes: dict[int, list[str]] = field(default_factory=dict)
    blocked: dict[int, list[str]] = field(default_factory=dict)  # reasons
    cut: set[int] = field(default_factory=set)  # statements that Python runs between graphs
    noted: set[int] = field(default_factory=set)  # co-executed

    def known(self) -> set[int]:
        return {*self.marks, *self.blocked, *self.noted}


def blocks(snapshot: Snapshot, sources: Sources) -> Iterator[Block]:
    """Each line of the function or loop with its mark; then those of the functions it calls."""
    files = _facts_by_file(snapshot)
    own = files.setdefault(snapshot["file"], _Facts())
    span = sources[snapshot["file"]].span(snapshot["line"], snapshot["name"])
    shown: set[int] = set()
    if span:
        lines = _lines(sources[snapshot["file"]], span, own, snapshot)
        yield Block(snapshot["file"], None, span[0], lines)
        shown = set(range(span[0], span[1] + 1))
    for file, facts in files.items():
        if file == _MODULE_CALL and file != snapshot["file"]:
            continue  # how torch calls forward; no line of it is the user's
        left = facts.known() - shown if file == snapshot["file"] else facts.noted | set(facts.marks)
        while left:
            start, end, name = sources[file].enclosing(min(left))
            yield Block(file, name, start, _lines(sources[file], (start, end), facts, snapshot))
            left -= set(range(start, end + 1))


def _facts_by_file(snapshot: Snapshot) -> dict[str, _Facts]:
    files: dict[str, _Facts] = {}
    for each in [entry for leaf in leaves(snapshot) for entry in leaf["cache"]]:
        for line in each["lines"]:
            if line["file"] and line["line"] > 0:
                _add_mark(files.setdefault(line["file"], _Facts()), line)
    for cut in cuts(snapshot):
        facts = files.setdefault(snapshot["file"], _Facts())
        facts.cut |= set(range(cut["line"], cut["end_line"] + 1))
        text = f"cut: [{cut['code']}] {cut['sentence']}"
        facts.blocked.setdefault(cut["line"], []).append(text)
    made = {(cut["code"], cut["sentence"]) for cut in cuts(snapshot)}
    for reason in [each for leaf in leaves(snapshot) for each in leaf["reasons"]]:
        is_told = (reason["code"], reason["sentence"]) in made
        if reason["file"] and reason["line"] > 0 and not is_told:
            facts = files.setdefault(reason["file"], _Facts())
            text = f"[{reason['code']}] {reason['sentence']}"
            if text not in (known := facts.blocked.setdefault(reason["line"], [])):
                known.append(text)
    _add_noted(files, snapshot.get("co_execution"))
    return files


def _add_mark(facts: _Facts, line: dict[str, Any]) -> None:
    number, kind = line["line"], line["kind"]
    if kind == "constant" and line["note"].startswith("inlined "):
        kind = "graph"
    known = facts.marks.get(number)
    if known is None or _STRENGTH.index(kind) > _STRENGTH.index(known):
        facts.marks[number] = kind
    notes = facts.notes.setdefault(number, [])
    if line["note"] and line["note"] not in notes:
        notes.append(line["note"])


def _add_noted(files: dict[str, _Facts], told: dict[str, Any] | None) -> None:
    if not co_execution.is_co_executed(told):
        return
    for file, notes in co_execution.notes_of_lines(told).items():
        facts = files.setdefault(file, _Facts())
        for number, texts in notes.items():
            facts.noted.add(number)
            facts.notes.setdefault(number, []).extend(texts)


def _lines(
    source: SourceFile, span: tuple[int, int], facts: _Facts, snapshot: Snapshot
) -> list[Line]:
    """The lines of a span, each with its mark, notes and reasons."""
    in_graph = _lines_in_graphs(snapshot, source.file, span, facts)
    skipped = _skipped(source, span, facts) if in_graph else {}

    def mark(number: int, text: str) -> str:
        statement = source.statement(number, span[0])
        first = statement.lineno if statement is not None else number
        if not text.strip() or text.strip().startswith("#"):
            return ""
        if number in facts.noted and facts.marks.get(number) is None:
            return "co-executed"
        if number not in in_graph:
            return "cut" if number in facts.cut else "imperative"
        if number in facts.marks or first in facts.marks:
            return _MARKS[facts.marks.get(number) or facts.marks[first]]
        return skipped.get(number, "graph" if statement is not None else "")

    result = []
    for number in range(span[0], span[1] + 1):
        text = source.line(number)
        notes, reasons = facts.notes.get(number, []), facts.blocked.get(number, [])
        result.append(Line(number, text, mark(number, text), list(notes), list(reasons)))
    return result


def _lines_in_graphs(
    snapshot: Snapshot, file: str, span: tuple[int, int], facts: _Facts
) -> set[int]:
    """The lines of a span that a graph covers."""
    graphs = [leaf for leaf in leaves(snapshot) if leaf["state"] == "graph"]
    lines = set(range(span[0], span[1] + 1))
    if "parts" not in snapshot or file != snapshot["file"]:
        return lines if graphs else set()
    found = {number for leaf in graphs for number in range(leaf["line"], leaf["end_line"] + 1)}
    if lines.isdisjoint(found) and not lines.isdisjoint(facts.marks):
        return lines  # a function that a part calls
    return found


# --- statements of which no graph has anything -----------------------------------------------------

# The stronger ones last: what lies in several bodies has the mark of the strongest.
_WITHOUT_TRACE = ("no operator", "not taken", "imperative")
_MAY_RUN = (ast.ExceptHandler, ast.match_case, ast.FunctionDef, ast.AsyncFunctionDef)
_ENDS = (ast.Return, ast.Raise, ast.Break, ast.Continue)


def _skipped(source: SourceFile, span: tuple[int, int], facts: _Facts) -> dict[int, str]:
    """The lines of statements that may not have run, and of which the graphs contain nothing."""
    result: dict[int, str] = {}
    for holder, field_name, body in source.bodies(*span):
        is_own = span[0] in (body[0].lineno, *_firsts(holder))
        mark = "" if is_own else _mark_of_body(holder, field_name, body, source, facts)
        runs = [(body, mark)]
        for number, statement in enumerate(body[:-1], start=1):
            if isinstance(statement, _ENDS):
                runs.append((body[number:], "not taken"))
            elif _may_end(statement):
                runs.append((body[number:], "no operator"))
        for statements, mark in runs:
            numbers = _numbers(holder, statements)
            if not mark or any(number in facts.marks for number in numbers):
                continue
            for number in numbers:
                known = result.get(number, mark)
                result[number] = max(known, mark, key=_WITHOUT_TRACE.index)
    return result


def _firsts(holder: ast.AST) -> list[int]:
    """The lines at which a function may be said to begin; of other nodes none."""
    if not isinstance(holder, FunctionNode):
        return []
    return [holder.lineno, *(each.lineno for each in holder.decorator_list)]


def _numbers(holder: ast.AST, statements: list[ast.stmt]) -> list[int]:
    """The lines of statements, but that on which what holds them begins."""
    first = getattr(getattr(holder, "pattern", holder), "lineno", 0)
    last = statements[-1].end_lineno or 0
    return [number for number in range(statements[0].lineno, last + 1) if number != first]


def _mark_of_body(
    holder: ast.AST, field_name: str, body: list[ast.stmt], source: SourceFile, facts: _Facts
) -> str:
    """The mark of a body of which no graph has anything; "": it runs whenever the statement is reached."""
    line = getattr(holder, "lineno", 0)
    is_body = field_name == "body"
    if isinstance(holder, ast.If | ast.While):
        notes = facts.notes.get(line, ())
        if (is_body and "assumes false" in notes) or (not is_body and "assumes true" in notes):
            return "imperative" if line in facts.blocked else "not taken"
        if isinstance(holder.test, ast.Constant):
            return "" if bool(holder.test.value) == is_body else "not taken"
    elif isinstance(holder, ast.For | ast.AsyncFor) and is_body:
        rounds = [each for each in facts.notes.get(line, ()) if each.startswith("unrolled ")]
        if rounds == ["unrolled 0 times"]:
            return "not taken"
    elif not isinstance(holder, _MAY_RUN) and field_name != "orelse":
        return ""
    return "not taken" if _would_leave_a_trace(body, source) else "no operator"


def _may_end(statement: ast.stmt) -> bool:
    """Whether what follows the statement may not be reached, by what stands in it."""
    return any(isinstance(each, _ENDS) for each in _within(statement))


def _would_leave_a_trace(body: list[ast.stmt], source: SourceFile) -> bool:
    """Whether graphs would have something of these statements if they had run: what only computes with values that
    are known when a graph is made leaves nothing in it."""
    functions = {name for _, _, name in source.functions}
    for statement in body:
        for each in _within(statement) if isinstance(statement, ast.Expr | ast.Assign) else ():
            if isinstance(each, ast.Call):
                called = each.func
                if isinstance(called, ast.Attribute) and called.attr == "backward":
                    return True
                if isinstance(called, ast.Name) and (
                    called.id in functions or called.id == "print"
                ):
                    return True
        if _may_end(statement):
            break
    return False


def _within(statement: ast.stmt) -> Iterator[ast.AST]:
    """The statement and what stands in it, but in no function or class that it defines."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, FunctionNode | ast.ClassDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))
