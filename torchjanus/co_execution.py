"""What reports tell of co-execution: how it went, and what was noted and looked at in which line."""

from typing import Any, TypeGuard

from .snapshots import duration, number_of

Told = dict[str, Any]
_MOST_LOOKS = 8
_MOST_MISSING = 4
_NAMES = {"_local_scalar_dense": "item()", "is_nonzero": "a test", "_to_copy": "to()"}


def is_co_executed(told: Told | None) -> TypeGuard[Told]:
    return told is not None and told["state"] == "co-executed"


def times(told: Told) -> str:
    """ " (1 ms a call, eagerly 2 ms)", or nothing."""
    eager, lazy = told["eager_milliseconds"], told["lazy_milliseconds"]
    if not eager:
        return ""
    return f" ({duration(lazy)} {_one(told)}, eagerly {duration(eager)})"


def summary(told: Told | None) -> list[str]:
    """Lines about all that ran lazily; none if nothing did."""
    if told is None or not told["iterations"]:
        return []
    runs = f"{told['iterations']} {'iterations' if told['is_loop'] else 'calls'}"
    lines = [
        f"  co-execution: {told['noted']} operators noted in {runs}: {told['in_graphs']} ran in graphs, "
        f"{told['one_by_one']} one by one, {told['never_run']} never",
        f"    {told['segments']} segments, {told['graphs']} graphs; pending when the last "
        f"{_one(told).split()[1]} ended: {_pending(told['pending'])}",
    ]
    if told["ahead"]:
        busy, waited = duration(told["milliseconds_ahead"]), duration(told["milliseconds_waited"])
        lines.append(
            f"    {told['ahead']} segments ran ahead of Python for {busy}; it waited for {waited} of that"
        )
    lines += _trace_graph(told["trace_graph"])
    if told["why_not"]:
        lines.append(f"    given up: {told['why_not']}{times(told)}")
    looks = sorted(told["looks"], key=lambda look: look["milliseconds"], reverse=True)
    lines += [
        f"    looked at in {look['file'] or '?'}:{look['line']} by {_look(look)}"
        for look in looks[:_MOST_LOOKS]
    ]
    if len(looks) > _MOST_LOOKS:
        lines.append(f"    and in {len(looks) - _MOST_LOOKS} further ways")
    return lines


def _trace_graph(told: dict[str, Any]) -> list[str]:
    """Of the graph that was made last of several paths; none if there was no such graph."""
    if not told["graphs"]:
        return []
    missing = sorted(told["missing"].items(), key=lambda each: -each[1])[:_MOST_MISSING]
    named = f": {', '.join(f'{what} {count}' for what, count in missing)}" if missing else ""
    return [
        f"    TraceGraph: {told['traces']} traces, {told['operators']} operators, {told['branches']} branches, "
        f"{told['sizes']} sizes that vary, {told['feeds']} feeds, {told['fetches']} fetches",
        f"    {told['calls']} operators ran in {number_of('TraceGraph', told['graphs'])}; "
        f"{number_of('segment', told['misses'])} had an operator that was new{named}",
    ]


def notes_of_lines(told: Told) -> dict[str, dict[int, list[str]]]:
    """By file and line: what was noted there, in the sampled calls or iterations, and what looked."""
    notes: dict[str, dict[int, list[str]]] = {}
    for line in told["lines"]:
        each = line["operators"] / max(1, told["sampled"])
        text = f"{each:.3g} operators noted {_one(told)}"
        notes.setdefault(line["file"], {}).setdefault(line["line"], []).append(text)
    for look in told["looks"]:
        text = f"looked at by {_look(look)}"
        notes.setdefault(look["file"], {}).setdefault(look["line"], []).append(text)
    return notes


def _one(told: Told) -> str:
    return "an iteration" if told["is_loop"] else "a call"


def _pending(pending: dict[str, int]) -> str:
    return f"{pending['operators']} operators, {pending['bytes']} bytes"


def _look(look: dict[str, Any]) -> str:
    each = duration(look["milliseconds"] / look["count"])
    return f"{_name(look['by'])}, {number_of('time', look['count'])}, {each} each"


def _name(by: str) -> str:
    if not by.startswith("aten::"):
        return by
    name = by.removeprefix("aten::").split(".")[0]
    return _NAMES.get(name, name)
