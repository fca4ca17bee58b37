"""Reports as text: what was converted, line by line, and why the rest was not converted."""

import ast
import linecache
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from . import _core, co_execution
from .snapshots import cuts, duration, leaves, was_called
from .summary import first_screen, of_child

# Of several marks on a line, the last one in this order is shown.
_MARKS = {"constant": "folded", "graph": "graph", "effect": "after run", "assumed": "assumed"}
_STRENGTH = list(_MARKS)
_MOST_REASONS = 6  # with one code, at one place
_MARK_WIDTH = 11
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_MODULE_CALL = torch.nn.Module._call_impl.__code__.co_filename
_reported: set[str] = set()


class Shown(str):
    """A text of several lines that Python's prompt and notebooks show as it is, not quoted."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def explain(converted: _core.Function | _core.Region) -> Shown:
    """The report on one function or region."""
    return Shown(_explain(converted.snapshot()))


def explain_all(
    seconds: float | None = None, children: Mapping[int, list[dict[str, Any]]] | None = None
) -> Shown:
    """The reports on all functions and regions of the process, which has run for so long.

    `children`: what was converted in processes that it started, by their numbers.
    """
    snapshots = _core.all_snapshots()
    told = [each for each in snapshots if was_called(each) or each["reasons"]]
    parts = [first_screen(snapshots, _core.seen_by_watch(), seconds)]
    if children:
        parts.append("\n".join(of_child(number, each) for number, each in children.items()))
    parts += map(_explain, told)
    return Shown("\n\n".join(parts))


def graph(converted: _core.Function | _core.Region) -> Shown:
    """The graphs in the cache, as compiled, in their textual form."""
    graphs = [each for leaf in leaves(converted.snapshot()) for each in leaf["cache"]]
    return Shown("\n".join(each["optimised"] for each in graphs))


def stats_all() -> dict[str, Any]:
    """Counters of the whole process, as JSON can hold them."""
    account = _core.conversion_account()
    return {
        "seconds_until_first_graph": _core.seconds_until_first_graph(),
        "functions": _core.all_stats(),
        **({} if account is None else {"conversion": account}),
    }


def internal_error(what: str, error: BaseException) -> None:
    """Reports a failure of torchjanus itself to stderr, each failure once."""
    text = f"torchjanus: internal error: {what}: {type(error).__name__}: {error}"
    if text not in _reported:
        _reported.add(text)
        print(f"{text}\n  It runs eagerly instead. Please report this.", file=sys.stderr)


def _explain(snapshot: dict[str, Any]) -> str:
    lines = [f"{snapshot['name']}  ({snapshot['file']}:{snapshot['line']}): {_state(snapshot)}"]
    lines += _counters(snapshot)
    lines += co_execution.summary(snapshot.get("co_execution"))
    lines += _source(snapshot)
    lines += _cut_list(snapshot)
    if not cuts(snapshot):
        lines += _reasons(snapshot["reasons"])
    for leaf in leaves(snapshot):
        if leaf is not snapshot and (leaf["cache"] or leaf["reasons"]):
            lines += ["", f"  {_lines_of(leaf)}: {_state(leaf)}", *_reasons(leaf["reasons"])]
        first: list[str] | None = None
        for number, each in enumerate(leaf["cache"], start=1):
            lines += _graph(number, each, first)
            first = first or each["assumptions"]
    return "\n".join(lines)


def _state(snapshot: dict[str, Any]) -> str:
    match snapshot["state"]:
        case "graph":
            return "runs as a graph"
        case "profiling":
            return "is being profiled"
        case "compiling":
            return "is being compiled"
        case "cut":
            graphs = sum(leaf["state"] == "graph" for leaf in leaves(snapshot))
            cut = f"is cut; {graphs} {'part runs' if graphs == 1 else 'parts run'} as graphs"
            told = snapshot.get("co_execution")
            if not co_execution.is_co_executed(told):
                return cut
            return f"{cut}; the rest is co-executed{co_execution.times(told)}"
        case _:
            return _of_imperative(snapshot.get("co_execution"))


def _of_imperative(told: dict[str, Any] | None) -> str:
    if not co_execution.is_co_executed(told):
        return "stays imperative"
    how = "is co-executed: Python runs it, its operators run as graphs"
    return f"{how}{co_execution.times(told)}"


def _lines_of(part: dict[str, Any]) -> str:
    first, last = part["line"], part["end_line"]
    return f"line {first}" if first == last else f"lines {first} to {last}"


def _cut_list(snapshot: dict[str, Any]) -> list[str]:
    """Each cut with its reason, and what became of the parts before and after it."""
    made = cuts(snapshot)
    if not made:
        return []
    result = ["", f"  cut {len(made)} {'time' if len(made) == 1 else 'times'}"]
    for cut in made:
        place = cut["reason"]
        where = f" ({place['file']}:{place['line']})" if place["line"] != cut["line"] else ""
        result.append(f"    cut at line {cut['line']}: [{cut['code']}] {cut['sentence']}{where}")
        if cost := _each("in_python", cut):
            result.append(f"      in Python {cut['in_python']['runs']} times, {cost} each")
    for leaf in leaves(snapshot):
        result.append(
            f"    {_lines_of(leaf)}: {_state(leaf)}; {leaf['graphs']} in the cache, ran "
            f"{leaf['hits']} of {leaf['calls']} times{_cost_of_part(leaf)}"
        )
    return result


def _each(what: str, told: dict[str, Any]) -> str:
    """The time of one such run."""
    spent = told.get(what)
    return duration(spent["milliseconds"] / spent["runs"]) if spent and spent["runs"] else ""


def _cost_of_part(part: dict[str, Any]) -> str:
    """The time of a run of its graphs, and how much of that was entry and exit."""
    each, runs = _each("as_graph", part), sum(entry["hits"] for entry in part["cache"])
    if not each or not runs:
        return ""
    spent = part["as_graph"]["milliseconds"] / part["as_graph"]["runs"]
    inside = 1e3 * sum(entry["program_seconds"] for entry in part["cache"]) / runs
    return f", {each} each, {duration(max(0.0, spent - inside))} of it entry and exit"


def _counters(snapshot: dict[str, Any]) -> list[str]:
    times = snapshot["milliseconds"]
    calls = "cut after {calls} calls; parts ran" if "parts" in snapshot else "calls {calls},"
    counters = (
        calls + " as a graph {hits}, missed {misses}, left {aborts}, relaxations {relaxations}, "
        "graphs {graphs} (ever generated {generated})"
    )
    result = [
        "  " + counters.format(**snapshot),
        "  milliseconds: profiling {profiling:.1f}, generating {generating:.1f}, optimising "
        "{optimising:.1f}, compiling {compiling:.1f}".format(**times),
    ]
    divided = max((leaf["backward_parts"] for leaf in leaves(snapshot)), default=0)
    if divided > 1:
        result.append(
            f"  backward run: {divided} parts, each of which gives gradients when it ends"
        )
    buckets = max((leaf["exchanged_buckets"] for leaf in leaves(snapshot)), default=0)
    if buckets:
        result.append(
            f"  gradients: shared within the graph: {buckets} bucket{'s' if buckets > 1 else ''}, "
            "sent when complete and waited for before the update"
        )
    return result


# --- line by line ---------------------------------------------------------------------------------


@dataclass
class _Lines:
    """The marks and notes of the lines of one file."""

    marks: dict[int, str] = field(default_factory=dict)  # a key of _MARKS
    notes: dict[int, list[str]] = field(default_factory=dict)
    blocked: dict[int, list[str]] = field(default_factory=dict)  # reasons
    cut: set[int] = field(default_factory=set)  # statements that Python runs between graphs
    noted: set[int] = field(default_factory=set)  # co-executed

    def known(self) -> set[int]:
        return {*self.marks, *self.blocked, *self.noted}


def _source(snapshot: dict[str, Any]) -> list[str]:
    """Each line of the function or loop with its mark; then those of the functions it calls."""
    files = _line_facts(snapshot)
    own = files.setdefault(snapshot["file"], _Lines())
    span = _span(snapshot)
    result = _block(snapshot["file"], span, own, snapshot) if span else []
    shown = set(range(span[0], span[1] + 1)) if span else set()
    for file, lines in files.items():
        if file == _MODULE_CALL and file != snapshot["file"]:
            continue  # how torch calls forward; no line of it is the user's
        left = lines.known() - shown if file == snapshot["file"] else lines.noted | set(lines.marks)
        while left:
            start, end, name = _enclosing(file, min(left))
            block = _block(file, (start, end), lines, snapshot)
            if block:
                result += ["", f"  in {name} ({file}:{start})", *block[1:]]
            left -= set(range(start, end + 1))
    return result


def _line_facts(snapshot: dict[str, Any]) -> dict[str, _Lines]:
    files: dict[str, _Lines] = {}
    for each in [entry for leaf in leaves(snapshot) for entry in leaf["cache"][:1]]:
        for line in each["lines"]:
            if not line["file"] or line["line"] <= 0:
                continue
            lines = files.setdefault(line["file"], _Lines())
            number, kind = line["line"], line["kind"]
            if kind == "constant" and line["note"].startswith("inlined "):
                kind = "graph"
            known = lines.marks.get(number)
            if known is None or _STRENGTH.index(kind) > _STRENGTH.index(known):
                lines.marks[number] = kind
            notes = lines.notes.setdefault(number, [])
            if line["note"] and line["note"] not in notes:
                notes.append(line["note"])
    for cut in cuts(snapshot):
        lines = files.setdefault(snapshot["file"], _Lines())
        lines.cut |= set(range(cut["line"], cut["end_line"] + 1))
        text = f"cut: [{cut['code']}] {cut['sentence']}"
        lines.blocked.setdefault(cut["line"], []).append(text)
    for reason in [] if "parts" in snapshot else snapshot["reasons"]:
        if reason["file"] and reason["line"] > 0:
            lines = files.setdefault(reason["file"], _Lines())
            text = f"[{reason['code']}] {reason['sentence']}"
            lines.blocked.setdefault(reason["line"], []).append(text)
    _add_noted(files, snapshot.get("co_execution"))
    return files


def _add_noted(files: dict[str, _Lines], told: dict[str, Any] | None) -> None:
    if not co_execution.is_co_executed(told):
        return
    for file, notes in co_execution.notes_of_lines(told).items():
        lines = files.setdefault(file, _Lines())
        for number, texts in notes.items():
            lines.noted.add(number)
            lines.notes.setdefault(number, []).extend(texts)


def _block(file: str, span: tuple[int, int], lines: _Lines, snapshot: dict[str, Any]) -> list[str]:
    """The lines of a span, each with its mark, notes and reasons."""
    in_graph = _lines_in_graphs(snapshot, file, span)
    statements = _statements(file, span)
    skipped = _skipped(statements, lines) if in_graph else {}
    result = [""]
    for number in range(span[0], span[1] + 1):
        text = linecache.getline(file, number).rstrip()
        statement = _innermost(statements, number)
        first = statement.lineno if statement is not None else number
        is_code = bool(text.strip()) and not text.strip().startswith("#")
        if not is_code:
            mark = ""
        elif number in lines.noted and lines.marks.get(number) is None:
            mark = "co-executed"
        elif number not in in_graph:
            mark = "cut" if number in lines.cut else "imperative"
        elif number in lines.marks or first in lines.marks:
            mark = _MARKS[lines.marks.get(number) or lines.marks[first]]
        else:
            mark = skipped.get(number, "graph" if statement is not None else "")
        result.append(f"  {mark:>{_MARK_WIDTH}} {number:5} | {text}".rstrip())
        notes = list(lines.notes.get(number, ()))
        notes += lines.blocked.get(number, ())[:_MOST_REASONS]
        indent = " " * (len(text) - len(text.lstrip()))
        result += [f"  {'':>{_MARK_WIDTH}} {'':5} | {indent}^ {note}" for note in notes]
    return result


def _lines_in_graphs(snapshot: dict[str, Any], file: str, span: tuple[int, int]) -> set[int]:
    """The lines of a span that a graph covers."""
    if "parts" not in snapshot or file != snapshot["file"]:
        runs = any(leaf["state"] == "graph" for leaf in leaves(snapshot))
        return set(range(span[0], span[1] + 1)) if runs else set()
    found: set[int] = set()
    for leaf in leaves(snapshot):
        if leaf["state"] == "graph":
            found |= set(range(leaf["line"], leaf["end_line"] + 1))
    return found


def _tree(file: str) -> ast.Module | None:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:  # a notebook cell with magics, for instance
        return None


def _span(snapshot: dict[str, Any]) -> tuple[int, int] | None:
    """The lines of the function, lambda or run of statements that begins at the snapshot's line."""
    start, tree = snapshot["line"], _tree(snapshot["file"])
    if tree is None or start <= 0:
        return None
    for node in ast.walk(tree):
        if isinstance(node, _FUNCTIONS) and _first_line(node) == start:
            return start, node.end_lineno or start
        if isinstance(node, ast.Lambda) and node.lineno == start and "<lambda>" in snapshot["name"]:
            return start, node.end_lineno or start
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list) or isinstance(node, ast.Module):
            continue
        if any(isinstance(each, ast.stmt) and each.lineno == start for each in body):
            return start, body[-1].end_lineno
    return None


def _first_line(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return min([function.lineno, *(each.lineno for each in function.decorator_list)])


def _enclosing(file: str, line: int) -> tuple[int, int, str]:
    """The innermost function around a line: its first and last line and its name."""
    best = (line, line, "code")
    for node, name in _functions(_tree(file), ""):
        end = node.end_lineno or node.lineno
        if node.lineno <= line <= end:
            best = (node.lineno, end, name)  # inner ones come later
    return best


def _functions(
    node: ast.AST | None, prefix: str
) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, str]]:
    for child in ast.iter_child_nodes(node) if node is not None else ():
        if isinstance(child, (*_FUNCTIONS, ast.ClassDef)):
            name = f"{prefix}{child.name}"
            if not isinstance(child, ast.ClassDef):
                yield child, name
            yield from _functions(child, f"{name}.")
        else:
            yield from _functions(child, prefix)


def _statements(file: str, span: tuple[int, int]) -> list[ast.stmt]:
    tree = _tree(file)
    return [
        node
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.stmt) and span[0] <= node.lineno <= span[1]
    ]


def _innermost(statements: list[ast.stmt], line: int) -> ast.stmt | None:
    around = [each for each in statements if each.lineno <= line <= (each.end_lineno or 0)]
    return max(around, key=lambda each: each.lineno, default=None)


def _skipped(statements: list[ast.stmt], lines: _Lines) -> dict[int, str]:
    """The lines of the branches that the graph does not contain."""
    result: dict[int, str] = {}
    for statement in statements:
        if not isinstance(statement, ast.If):
            continue
        notes = lines.notes.get(statement.lineno, ())
        for body, other in (
            (statement.body, "assumes false"),
            (statement.orelse, "assumes true"),
        ):
            numbers = range(body[0].lineno, (body[-1].end_lineno or 0) + 1) if body else range(0)
            if any(number in lines.marks for number in numbers):
                continue
            mark = "imperative" if other in notes else "not taken"
            for number in numbers:
                if result.get(number) != "imperative":
                    result[number] = mark
    return result


# --- reasons and graphs ---------------------------------------------------------------------------


def _reasons(reasons: Iterable[dict[str, Any]]) -> list[str]:
    result = []
    shown: dict[tuple[Any, ...], int] = {}
    for reason in reasons:
        key = (reason["file"], reason["line"], reason["code"])
        shown[key] = shown.get(key, 0) + 1
        if shown[key] > _MOST_REASONS:
            continue
        place = f"{reason['file']}:{reason['line']}: " if reason["file"] else ""
        times = f" (×{reason['count']})" if reason["count"] > 1 else ""
        result.append(f"    {place}[{reason['code']}] {reason['sentence']}{times}")
    for (file, line, code), count in shown.items():
        if count > _MOST_REASONS:
            result.append(f"    {file}:{line}: [{code}] {count - _MOST_REASONS} more such")
    return ["", "  why some runs were imperative", *result] if result else []


def _graph(number: int, entry: dict[str, Any], first: list[str] | None) -> list[str]:
    result = [
        "",
        f"  graph {number}: ran {entry['hits']} times, did not fit {entry['misses']} times, "
        f"was left {entry['aborts']} times",
    ]
    result += _made_of(entry["lines"])
    assumptions = entry["assumptions"]
    if first is None:
        result.append(f"    {len(assumptions)} assumptions")
    else:
        common = set(first)
        others = [each for each in assumptions if each not in common]
        result.append(
            f"    {len(assumptions)} assumptions, {len(assumptions) - len(others)} as graph 1, and"
        )
        assumptions = others
    return result + [f"      {each}" for each in grouped(assumptions)]


def _made_of(lines: list[dict[str, Any]]) -> list[str]:
    """What was inlined and unrolled, and which tests were assumed."""
    inlined: dict[str, int] = {}
    unrolled: dict[str, None] = {}
    asserted: dict[str, None] = {}
    for line in lines:
        note, place = line["note"], f"line {line['line']}"
        if note.startswith("inlined "):
            name = note.removeprefix("inlined ")
            inlined[name] = inlined.get(name, 0) + 1
        elif note.startswith("unrolled "):
            unrolled[f"{place} {note.removeprefix('unrolled ')}"] = None
        elif note.startswith("assumes "):
            asserted[f"{place} {note}"] = None
    calls = [f"{name} ×{count}" if count > 1 else name for name, count in inlined.items()]
    parts = (("inlined", calls), ("unrolled", unrolled), ("asserted", asserted))
    return [f"    {what}: {', '.join(which)}" for what, which in parts if which]


def grouped(assumptions: list[str]) -> list[str]:
    """The assumptions about the user's own objects; the rest as counts."""
    groups: dict[str, int] = {}
    told = []
    for each in assumptions:
        if " shares no memory with " in each:
            group = "that tensors share no memory"
        elif "type(" in each or "__globals__" in each or each.startswith("the class "):
            group = "about classes and library code"
        elif " has no item '" in each:
            group = "that no instance or module hides an attribute of its class"
        elif "_hooks) is False" in each:
            group = "that there are no hooks"
        elif each.startswith("a Question object.get_cache_token"):
            group = "that no class is registered with an abstract one"
        elif each.startswith("a Question object"):
            group = "about classes and library code"
        elif ".__code__ is the code of " in each:
            group = "that functions keep their code"
        else:
            told.append(each)
            continue
        groups[group] = groups.get(group, 0) + 1
    return told + [f"{count} {group}" for group, count in groups.items()]
