"""What reports read from snapshots: the dicts of `Function.snapshot` and `Region.snapshot`."""

from typing import Any

Snapshot = dict[str, Any]


def key(snapshot: Snapshot) -> tuple[str, str, int]:
    """What tells it from others: its name and place."""
    return snapshot["name"], snapshot["file"], snapshot["line"]


def leaves(snapshot: Snapshot) -> list[Snapshot]:
    """The parts that may run as graphs, in order: the whole, or the parts of a cut one.

    Without those that never ran as graphs and lie within one that does, or that were never entered as one around them
    runs whole.
    """
    if "parts" not in snapshot:
        return [snapshot]
    found = [leaf for part in snapshot["parts"] for leaf in leaves(part)]
    found = [leaf for leaf in found if leaf["generated"] or not _is_in_another(leaf, found)]
    return sorted(found, key=lambda leaf: leaf["line"])


def _is_in_another(leaf: Snapshot, others: list[Snapshot]) -> bool:
    def has(other: Snapshot) -> bool:
        around = other["line"] <= leaf["line"] and leaf["end_line"] <= other["end_line"]
        runs_whole = other["state"] == "graph" or (was_called(other) and not was_called(leaf))
        return around and runs_whole

    return any(other is not leaf and has(other) for other in others)


def cuts(snapshot: Snapshot) -> list[dict[str, Any]]:
    """The cuts, in the order of lines."""
    found = list(snapshot.get("cuts", ()))
    for part in snapshot.get("parts", ()):
        found += cuts(part)
    return sorted(found, key=lambda cut: cut["line"])


def speed(snapshot: Snapshot) -> dict[str, Any] | None:
    """What is known of the speed: of the whole, or of the region that a cut function consists of."""
    known: dict[str, Any] | None = snapshot["speed"]
    if known is None and len(snapshot.get("parts", ())) == 1:
        return speed(snapshot["parts"][0])
    return known


def speed_told(measured: dict[str, Any]) -> str:
    """How many times as fast as eager, with the milliseconds of both."""
    graph, python = measured["as_graph"], measured["in_python"]
    factor = f"{python / graph:.3g} ×" if graph else "?"
    if measured["by_turns"]:
        return f"{factor} ({duration(graph)} and {duration(python)}, by turns)"
    profiled = f"{duration(python)} while profiled, which is slower than eager"
    return f"at most {factor} ({duration(graph)}; {profiled})"


def was_called(snapshot: Snapshot) -> bool:
    return bool(snapshot["calls"] or snapshot["passed"])


def has_tensor_work(snapshot: Snapshot) -> bool:
    """Whether it is not known to be without tensor operations."""
    codes = {reason["code"] for reason in snapshot["reasons"]}
    return "no_tensor_work" not in codes or snapshot["generated"] > 0


def number_of(things: str, count: int) -> str:
    """ "1 graph", "2 graphs"; `things`: the word for one."""
    return f"{count} {things}" if count == 1 else f"{count} {things}s"


def duration(milliseconds: float) -> str:
    for unit, factor in (("µs", 1e3), ("ms", 1.0)):
        if milliseconds * factor < 1000:
            return f"{milliseconds * factor:.3g} {unit}"
    return f"{milliseconds / 1e3:.3g} s"
