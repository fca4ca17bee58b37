"""Timelines in the format of Chrome's tracing, which chrome://tracing and https://ui.perfetto.dev show."""

import contextlib
import itertools
import json
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from . import _core

_MOST_EVENTS = 1_000_000
# What the name alone does not tell, by category.
_SHOWN = {
    "profile": "{} (profiled)",
    "python": "{} in Python",
    "generate": "generate {}",
    "optimise": "optimise {}",
    "compile": "compile {}",
    "graph": "graph of {}",
}


# What happens on a thread of the program only, not in the background.
_ON_THREADS_OF_PROGRAM = ("call", "profile", "python", "graph")
# A collective, from its beginning until the run has what it gives.
_EXCHANGE = "exchange"
_Event = tuple[str, str, str, float, float, int]  # category, name, details, start, end, thread


def begin() -> None:
    """From now on events are kept."""
    _core.begin_timeline(_MOST_EVENTS)


def write(file: Path, title: str) -> None:
    """Ends that, and writes the events."""
    from . import __version__  # late: the package imports this module

    events = _core.end_timeline()
    told = {
        "traceEvents": [
            *_names(title, events),
            *itertools.chain(*map(_events, itertools.count(), events)),
        ],
        "displayTimeUnit": "ms",
        "otherData": {
            "torchjanus": __version__,
            "left out": _core.left_out_of_timeline(),
        },
    }
    file.write_text(json.dumps(told, separators=(",", ":")), encoding="utf-8")


@contextlib.contextmanager
def trace(file: str | os.PathLike[str]) -> Iterator[None]:
    """While it lasts, notes what torchjanus does and when; then writes that as a timeline.

    chrome://tracing and https://ui.perfetto.dev show the file. It has calls, checks of guards, runs of graphs with
    their kernels and operators (named by what they compute, with the line of the program), profiled runs, runs in
    Python, the making of graphs, compilation in the background, and a mark for each reason why a call was not a graph.
    Collectives of graphs go on beside that, from their beginning until the graph has what they give.

    Args:
        file: Where to write it, as JSON; what is there is replaced.

    Returns:
        A context manager. One at a time: another one that begins within takes its events.

    Raises:
        OSError: At the end, if the file can't be written.
    """
    begin()
    try:
        yield
    finally:
        write(Path(file), "torchjanus")


def _events(number: int, event: _Event) -> Iterator[dict[str, Any]]:
    category, name, details, start, end, thread = event
    shown = {
        "name": _SHOWN.get(category, "{}").format(name),
        "cat": category,
        "ts": start * 1e6,
        "pid": os.getpid(),
        "tid": thread,
    }
    if details:
        shown["args"] = {"line" if category in ("kernel", "operator") else "details": details}
    if category == _EXCHANGE:  # it goes on beside what the thread does
        yield {**shown, "ph": "b", "id": number}
        yield {**shown, "ph": "e", "id": number, "ts": end * 1e6}
    elif end == start:
        yield {**shown, "ph": "i", "s": "t"}
    else:
        yield {**shown, "ph": "X", "dur": (end - start) * 1e6}


def _names(title: str, events: Sequence[_Event]) -> Iterator[dict[str, Any]]:
    """Of the process and its threads."""
    known = {each.native_id: each.name for each in _python_threads()}
    of_program = {event[-1] for event in events if event[0] in _ON_THREADS_OF_PROGRAM}
    yield _name("process_name", os.getpid(), title)
    for thread in sorted({event[-1] for event in events}):
        other = "thread that has ended" if thread in of_program else "torchjanus"
        yield _name("thread_name", thread, known.get(thread, other))


def _python_threads() -> list[threading.Thread]:
    """Those that live last, as the system gives numbers of ended ones to others; of ended ones, what somebody holds."""
    ended = list(getattr(threading, "_dangling", ()))
    return [*ended, *threading.enumerate()]


def _name(kind: str, thread: int, name: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": os.getpid(), "tid": thread, "args": {"name": name}}
