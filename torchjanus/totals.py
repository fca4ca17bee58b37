"""Sums over functions and regions: calls, and where their time went."""

from collections.abc import Iterable

from .snapshots import Snapshot, has_tensor_work, leaves


def hits(snapshots: Iterable[Snapshot]) -> int:
    """Calls that ran as graphs."""
    return sum(leaf["hits"] for each in snapshots for leaf in leaves(each))


def calls(snapshots: Iterable[Snapshot]) -> int:
    """Calls with tensor work, in graphs and in Python; of what is cut those of its parts.

    Parts without a graph's worth of it, as between two cuts, are counted by their time (summary.py).
    """
    sum_of_calls = 0
    for each in snapshots:
        for leaf in leaves(each):
            if has_tensor_work(leaf) and not leaf["holds_graphs"]:
                sum_of_calls += leaf["calls"] + leaf["passed"]
        if "parts" in each:
            sum_of_calls += each["passed"]
    return sum_of_calls


def steps(snapshot: Snapshot) -> int:
    """How often a function or region was entered; since it is cut, its part that was entered most."""
    parts = leaves(snapshot) if "parts" in snapshot else []
    since_cut = max((part["calls"] + part["passed"] for part in parts), default=0)
    return int(snapshot["calls"] + snapshot["passed"] + since_cut)


def generated(snapshots: Iterable[Snapshot]) -> int:
    """Graphs that were made."""
    return sum(leaf["generated"] for each in snapshots for leaf in leaves(each))


def running(snapshots: Iterable[Snapshot]) -> float:
    """Milliseconds of runs of graphs."""
    return float(
        sum(leaf["milliseconds"]["running"] for each in snapshots for leaf in leaves(each))
    )


def time_of(snapshot: Snapshot) -> float:
    """Milliseconds of its runs, as graphs and in Python."""
    return running([snapshot]) + float(snapshot["in_python"]["milliseconds"])


def profiling(snapshots: Iterable[Snapshot]) -> float:
    """Milliseconds of profiled runs."""
    return _spent(snapshots, "profiling")


def making(snapshots: Iterable[Snapshot]) -> float:
    """Milliseconds that it took to make graphs."""
    return _spent(snapshots, "generating", "optimising", "compiling")


def _spent(snapshots: Iterable[Snapshot], *what: str) -> float:
    parts = (
        part
        for snapshot in snapshots
        for part in [snapshot, *(leaves(snapshot) if "parts" in snapshot else ())]
    )
    return float(sum(part["milliseconds"][each] for part in parts for each in what))
