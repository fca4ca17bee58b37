"""`torchjanus run --tensorboard DIR`: graphs, and how calls went, as TensorBoard's event files.

Written at the end of the run, from what is kept of calls (src/speculate/call_history.h), each with the time at which it
was. The packages are loaded then: the program runs without them.
"""

import importlib.util
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from . import graph_def
from .snapshots import Snapshot, leaves
from .source_text import Sources


def why_not() -> str | None:
    """Why no event file can be written here, in a sentence; None: it can."""
    if importlib.util.find_spec("tensorboard") is None:
        return "--tensorboard needs the package tensorboard: pip install tensorboard"
    return None


def write(folder: Path, snapshots: list[Snapshot]) -> None:
    """Writes the event file on what `_details` of functions and regions gave."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from torch.utils.tensorboard.writer import FileWriter

    writer = FileWriter(str(folder))
    try:
        graph = graph_def.as_graph_def(_nodes(snapshots))
        if graph.node:
            writer.add_event(Event(graph_def=graph.SerializeToString()))
        for tag, value, step, seconds in _scalars(snapshots, time.time()):
            summary = Summary(value=[Summary.Value(tag=tag, simple_value=value)])
            writer.add_summary(summary, step, walltime=seconds)
    finally:
        writer.close()


def _nodes(snapshots: list[Snapshot]) -> list[graph_def.Node]:
    found, sources, scopes = [], Sources(), set[str]()
    for leaf, name in _named(snapshots):
        scope = graph_def.unlike(graph_def.legal(name.replace("/", "_")), scopes)
        for number, entry in enumerate(leaf["cache"], start=1):
            found += graph_def.nodes(entry, f"{scope}/graph_{number}", sources)
    return found


def _named(snapshots: list[Snapshot]) -> Iterator[tuple[Snapshot, str]]:
    """What may run as a graph, each with a name of its own."""
    names: dict[str, int] = {}
    for snapshot in snapshots:
        for leaf in leaves(snapshot):
            name = leaf["name"] if leaf is snapshot else f"{leaf['name']} at line {leaf['line']}"
            names[name] = names.get(name, 0) + 1
            yield leaf, name if names[name] == 1 else f"{name} ({names[name]})"


def _scalars(snapshots: list[Snapshot], now: float) -> Iterator[tuple[str, float, int, float]]:
    """Tag, value, number of the call, and seconds since 1970."""
    for leaf, name in _named(snapshots):
        last = leaf["history"][-1]
        for before, after in pairwise(leaf["history"]):
            passed = {what: after[what] - before[what] for what in before}
            if passed["calls"] <= 0:
                continue
            seconds = now - (last["time"] - after["time"]) / 1e3
            for tag, value in _values(passed, after):
                yield tag.format(name=name), value, after["calls"], seconds


def _values(passed: dict[str, Any], after: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """What the calls between two samples have taken, and what had become of all calls by then."""
    for how, calls, milliseconds in (
        ("as a graph", "hits", "running_ms"),
        ("in Python", "timed", "timed_ms"),
        ("profiled", "profiled", "profiling_ms"),
    ):
        if passed[calls] > 0:
            yield f"milliseconds a call/{{name}}/{how}", passed[milliseconds] / passed[calls]
    yield "conversion/{name}/share of calls as graphs", passed["hits"] / passed["calls"]
    yield "conversion/{name}/graphs made", after["generated"]
    yield (
        "conversion/{name}/calls that fitted no graph or left one",
        after["misses"] + after["aborts"],
    )
