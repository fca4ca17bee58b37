"""Reports as text: what was converted, line by line, and why the rest was not."""

import linecache
import sys
from collections.abc import Iterable
from typing import Any

from . import _core

_MARKS = {"graph": "graph", "assumed": "assumed", "constant": "folded", "effect": "after run"}
# Of several marks on a line the last of these is shown.
_STRENGTH = ["constant", "graph", "effect", "assumed"]
_reported: set[str] = set()


def explain(converted: _core.Function | _core.Region) -> str:
    """The report on one function or region."""
    return _explain(converted.snapshot())


def explain_all() -> str:
    """The reports on all functions and regions of the process."""
    snapshots = _core.all_snapshots()
    if not snapshots:
        return "torchjanus: nothing was converted"
    return "\n\n".join(_explain(snapshot) for snapshot in snapshots)


def graph(converted: _core.Function | _core.Region) -> str:
    """The graphs in the cache, as compiled, in their textual form."""
    return "\n".join(each["optimised"] for each in converted.snapshot()["cache"])


def stats_all() -> dict[str, Any]:
    """Counters of the whole process, as JSON can hold them."""
    return {
        "seconds_until_first_graph": _core.seconds_until_first_graph(),
        "functions": _core.all_stats(),
    }


def internal_error(what: str, error: BaseException) -> None:
    """Reports a failure of torchjanus itself to stderr, each one once."""
    text = f"torchjanus: internal error: {what}: {type(error).__name__}: {error}"
    if text not in _reported:
        _reported.add(text)
        print(f"{text}\n  It runs eagerly instead. Please report this.", file=sys.stderr)


def _explain(snapshot: dict[str, Any]) -> str:
    lines = [f"{snapshot['name']}  ({snapshot['file']}:{snapshot['line']}): {_state(snapshot)}"]
    lines += _counters(snapshot)
    lines += _source(snapshot)
    lines += _reasons(snapshot["reasons"])
    for number, each in enumerate(snapshot["cache"], start=1):
        lines += _graph(number, each)
    return "\n".join(lines)


def _state(snapshot: dict[str, Any]) -> str:
    match snapshot["state"]:
        case "graph":
            return "runs as a graph"
        case "profiling":
            return "is being profiled"
        case _:
            return "stays imperative"


def _counters(snapshot: dict[str, Any]) -> list[str]:
    times = snapshot["milliseconds"]
    return [
        "  calls {calls}, as a graph {hits}, missed {misses}, left {aborts}, relaxations "
        "{relaxations}, graphs {graphs} (ever generated {generated})".format(**snapshot),
        "  milliseconds: profiling {profiling:.1f}, generating {generating:.1f}, optimising "
        "{optimising:.1f}, compiling {compiling:.1f}".format(**times),
    ]


def _source(snapshot: dict[str, Any]) -> list[str]:
    """Every line from the first to the last that is known of, with its mark."""
    file = snapshot["file"]
    marks, notes, last = _line_marks(snapshot)
    blocked = {
        reason["line"]: reason["code"]
        for reason in snapshot["reasons"]
        if reason["file"] == file and reason["line"] > 0
    }
    known = [*marks, *blocked]
    if not known:
        return []
    first = min([*known, snapshot["line"] or min(known)])
    result = [""]
    for number in range(first, max([last, *known]) + 1):
        text = linecache.getline(file, number).rstrip()
        mark = _MARKS[marks[number]] if number in marks else ""
        if number in blocked and (not mark or snapshot["state"] != "graph"):
            mark = "imperative"
        result.append(f"  {mark:>10} {number:5} | {text}".rstrip())
        for note in notes.get(number, ()):
            result.append(f"  {'':>10} {'':5} |     ^ {note}")
    return result


def _line_marks(snapshot: dict[str, Any]) -> tuple[dict[int, str], dict[int, list[str]], int]:
    """By line of the function's own file: its mark and its notes; and the last line marked."""
    marks: dict[int, str] = {}
    notes: dict[int, list[str]] = {}
    last = 0
    for each in snapshot["cache"][:1]:
        for line in each["lines"]:
            if line["file"] != snapshot["file"]:
                continue
            number = line["line"]
            last = max(last, number)
            known = marks.get(number)
            if known is None or _STRENGTH.index(line["kind"]) > _STRENGTH.index(known):
                marks[number] = line["kind"]
            if line["note"] and line["note"] not in notes.setdefault(number, []):
                notes[number].append(line["note"])
    return marks, notes, last


def _reasons(reasons: Iterable[dict[str, Any]]) -> list[str]:
    result = []
    for reason in reasons:
        place = f"{reason['file']}:{reason['line']}: " if reason["file"] else ""
        times = f" (×{reason['count']})" if reason["count"] > 1 else ""
        result.append(f"  {place}[{reason['code']}] {reason['sentence']}{times}")
    return ["", *result] if result else []


def _graph(number: int, entry: dict[str, Any]) -> list[str]:
    result = [
        "",
        f"  graph {number}: ran {entry['hits']} times, did not fit {entry['misses']} times, "
        f"was left {entry['aborts']} times; assumes",
    ]
    result += [f"    {each}" for each in _told(entry["assumptions"])]
    return result


def _told(assumptions: list[str]) -> list[str]:
    """The assumptions about the user's own objects; the rest as counts."""
    apart = [each for each in assumptions if " shares no memory with " in each]
    library = [each for each in assumptions if "type(" in each or "__globals__" in each]
    rest = set(apart) | set(library)
    told = [each for each in assumptions if each not in rest]
    if apart:
        told.append(f"{len(apart)} pairs of tensors share no memory")
    if library:
        told.append(f"{len(library)} more about classes and library code")
    return told
