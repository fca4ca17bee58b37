"""What happened to functions and regions between two moments, as lines: the live view shows the last ones."""

import os
from collections.abc import Iterator, Sequence

from . import text_report, totals
from .snapshots import Snapshot, cuts, duration, key, leaves

_OFTEN = 3  # a reason that is noted again is news until then


def between(before: Sequence[Snapshot], after: Sequence[Snapshot]) -> Iterator[str]:
    """What is new in the stats of the process since those before."""
    known = {key(each): each for each in before}
    for each in after:
        yield from _of_function(known.get(key(each)), each)


def _of_function(before: Snapshot | None, after: Snapshot) -> Iterator[str]:
    name = after["name"]
    told = {cut["line"] for cut in cuts(before)} if before is not None else set()
    for cut in cuts(after):
        if cut["line"] not in told:
            yield f"{name} is cut at line {cut['line']}: [{cut['code']}] {cut['sentence']}"
    parts = {key(leaf): leaf for leaf in leaves(before)} if before is not None else {}
    for leaf in leaves(after):
        yield from _of_leaf(parts.get(key(leaf)), leaf)


def _of_leaf(before: Snapshot | None, after: Snapshot) -> Iterator[str]:
    name, was = after["name"], before["state"] if before is not None else "profiling"
    made = after["generated"] - (before["generated"] if before is not None else 0)
    if made > 0:
        taken = totals.making([after]) - (totals.making([before]) if before is not None else 0.0)
        yield f"{name}: {'a graph was' if made == 1 else f'{made} graphs were'} made in {duration(taken)}"
    known = (
        {_reason(each): each["count"] for each in before["reasons"]} if before is not None else {}
    )
    for each in after["reasons"]:
        if each["code"] != "no_tensor_work" and known.get(_reason(each), 0) < min(
            each["count"], _OFTEN
        ):
            yield f"{_place(each) or name}: [{each['code']}] {each['sentence']}"
    if after["state"] != was and after["state"] == "imperative" and not after["holds_graphs"]:
        yield f"{name} {text_report.state(after)}"


def _reason(reason: dict[str, object]) -> tuple[object, ...]:
    return reason["file"], reason["line"], reason["code"], reason["sentence"]


def _place(reason: Snapshot) -> str:
    return f"{os.path.basename(reason['file'])}:{reason['line']}" if reason["file"] else ""
