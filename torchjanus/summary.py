"""The first screen of a report: how much ran as graphs, how fast, and what to do about the rest."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from . import _core, co_execution, messages, reasons, totals
from .snapshots import (
    Snapshot,
    cuts,
    duration,
    has_tensor_work,
    leaves,
    number_of,
    speed,
    speed_told,
    was_called,
)

MOST_LINES = 10
_MOST_COSTS = 3
_LEAST_SHARE = 0.005  # of the time, of a cost that is worth a line
_LONGEST_LINE = 160


@dataclass
class _Cost:
    """Something that ran in Python."""

    file: str
    line: int
    code: str
    sentence: str
    runs: int
    milliseconds: float | None = None  # None: not known
    how: str = ""  # "about", "at most": how sure the time is


def first_screen(
    snapshots: list[Snapshot],
    watch: dict[str, Any] | None,
    seconds: float | None,
    children: Mapping[int, list[Snapshot]] | None = None,
) -> str:
    """At most ten lines about the whole program.

    `watch`: what the watch for entry points has seen, or None. `seconds`: how long the program ran, if known.
    `children`: what was converted in processes that it started, by their numbers.
    """
    running = [each for each in snapshots if totals.hits([each])]
    have_worked = any(was_called(each) for told in (children or {}).values() for each in told)
    if not running and have_worked:
        lines = [
            "torchjanus: no call of this process ran as a graph; of those that it started, see below"
        ]
        lines += _costliest(snapshots, seconds, MOST_LINES - len(lines))
    elif not running and (in_parts := _in_parts(snapshots)):
        lines = [in_parts, *_costliest(snapshots, seconds, MOST_LINES - 1)]
    elif not running:
        lines = ["torchjanus: nothing was converted: no call ran as a graph"]
        costs = _costliest(snapshots, seconds, MOST_LINES - len(lines))
        for fact, hint in why_nothing(
            snapshots, None if costs else watch, has_ended=seconds is not None
        ):
            lines += [f"  {fact}", f"    try: {hint}"]
        lines += costs
    else:
        lines = [_share(snapshots, running, seconds), _spent(snapshots), _speeds(running)]
        lines += _costliest(snapshots, seconds, MOST_LINES - len(lines))
    return "\n".join(
        line[: _LONGEST_LINE - 1] + "…" if len(line) > _LONGEST_LINE else line for line in lines
    )


def of_child(number: int, functions: list[Snapshot]) -> str:
    """A line about a process that the program started."""
    running = [each for each in functions if totals.hits([each])]
    return _share(functions, running, None).replace("torchjanus:", f"process {number}:", 1)


def _in_parts(snapshots: list[Snapshot]) -> str | None:
    """Where calls did not run as one graph each, but many of their operators in graphs; None if none did."""
    told = [
        each["co_execution"]
        for each in snapshots
        if co_execution.is_co_executed(each.get("co_execution"))
    ]
    noted, in_graphs = (sum(each[count] for each in told) for count in ("noted", "in_graphs"))
    if not in_graphs:
        return None
    return (
        f"torchjanus: no call ran as one graph; in co-execution, {percent(in_graphs / noted)} of the operators "
        f"({in_graphs} of {noted}) ran in graphs"
    )


# --- how much, and how fast -----------------------------------------------------------------------


def _share(snapshots: list[Snapshot], running: list[Snapshot], seconds: float | None) -> str:
    hits, calls = totals.hits(snapshots), totals.calls(snapshots)
    share = f"{percent(hits / max(1, calls))} of the calls ({hits} of {calls})"
    if seconds:
        in_graphs = totals.running(snapshots) / 1e3
        of_time = f"{percent(in_graphs / seconds)} of the time ({_seconds(in_graphs)} of {_seconds(seconds)})"
        share = f"{of_time} and {share}"
    tried = [each for each in snapshots if was_called(each) and has_tensor_work(each)]
    what = "function or loop" if len(tried) == 1 else "functions and loops"
    return f"torchjanus: {share} ran as graphs, in {len(running)} of {len(tried)} {what}"


def percent(share: float) -> str:
    return f"{int(100 * min(1.0, share))} %"  # 100 % is all


def _seconds(seconds: float) -> str:
    return duration(1e3 * seconds)


def _spent(snapshots: list[Snapshot]) -> str:
    """What it took until there were graphs."""
    profiling, making = totals.profiling(snapshots), totals.making(snapshots)
    return (
        f"  before: {duration(profiling)} in profiled runs, {duration(making)} to make the graphs"
    )


def _speeds(running: list[Snapshot]) -> str:
    """Of the two that ran longest as graphs, where it was measured."""
    known = [
        (each, speed(each))
        for each in sorted(running, key=lambda each: totals.running([each]), reverse=True)
    ]
    told = [_speed(each, measured) for each, measured in known if measured is not None]
    if not told:
        return "  speed against eager: not measured, as the graphs ran too few times"
    return f"  speed against eager: {'; '.join(told[:2])}"


def _speed(snapshot: Snapshot, measured: dict[str, Any]) -> str:
    return f"{snapshot['name']}: {speed_told(measured)}"


# --- what did not convert -------------------------------------------------------------------------


def _costliest(snapshots: list[Snapshot], seconds: float | None, most_lines: int) -> list[str]:
    """A heading, and two lines for each of those that took longest in Python."""
    costs = [each for each in _merged(snapshots) if _is_worth_a_line(each, seconds)]
    costs = costs[: min(_MOST_COSTS, (most_lines - 1) // 2)]
    if not costs:
        return []
    lines = ["  what did not convert and cost most:"]
    for number, cost in enumerate(costs, start=1):
        lines.append(
            f"  {number}. {_place(cost)}: {_price(cost, seconds)}: [{cost.code}] {cost.sentence}"
        )
        lines.append(f"     try: {reasons.remedy(cost.code)}")
    return lines


def _merged(snapshots: list[Snapshot]) -> list[_Cost]:
    """The costs, the largest first. What is refused within functions that are nested counts once."""
    found: dict[tuple[str, int, str], _Cost] = {}
    for cost in (each for snapshot in snapshots for each in _costs(snapshot)):
        known = found.setdefault((cost.file, cost.line, cost.code), cost)
        if _weight(cost) > _weight(known):
            found[cost.file, cost.line, cost.code] = cost
    return sorted(found.values(), key=_weight, reverse=True)


def _weight(cost: _Cost) -> tuple[float, int]:
    return cost.milliseconds or 0.0, cost.runs


def _is_worth_a_line(cost: _Cost, seconds: float | None) -> bool:
    if cost.milliseconds is None or not seconds:
        return True
    return cost.milliseconds >= 1e3 * seconds * _LEAST_SHARE


def _costs(snapshot: Snapshot) -> Iterator[_Cost]:
    for cut in cuts(snapshot):
        spent = cut.get("in_python")
        if spent and spent["runs"]:
            reason = cut["reason"]
            file = reason["file"] or snapshot["file"]
            line = reason["line"] if reason["file"] else cut["line"]
            yield _Cost(
                file, line, cut["code"], cut["sentence"], spent["runs"], spent["milliseconds"]
            )
    is_cut = "parts" in snapshot
    for part in [*([snapshot] if is_cut else []), *leaves(snapshot)]:
        # Without tensor work a whole function costs what it must; a part, what lies between the graphs.
        cost = _cost_of_calls(part, may_have_no_work=is_cut and part is not snapshot)
        if cost is not None:
            yield cost


def _cost_of_calls(part: Snapshot, *, may_have_no_work: bool) -> _Cost | None:
    """Of the calls that ran in Python, beside those that were profiled or waited for a graph."""
    noted = [
        reason
        for reason in part["reasons"]
        if may_have_no_work or reason["code"] != "no_tensor_work"
    ]
    runs = _calls_in_python(part)
    if not noted or not runs or part["holds_graphs"]:
        return None
    reason = max(reversed(noted), key=lambda reason: reason["count"])
    cost = _Cost(
        reason["file"] or part["file"], reason["line"] or part["line"],
        reason["code"], reason["sentence"], runs,
    )  # fmt: skip
    spent, measured, profiled = part["in_python"], part["speed"], part["profiled"]
    if spent["runs"]:
        cost.milliseconds = spent["milliseconds"] * max(1.0, runs / spent["runs"])
        cost.how = "about " if runs > spent["runs"] else ""
    elif measured is not None and measured["by_turns"]:
        cost.milliseconds, cost.how = runs * measured["in_python"], "about "
    elif profiled:
        each = part["milliseconds"]["profiling"] / profiled
        cost.milliseconds, cost.how = runs * each, "at most "
    return cost


def _calls_in_python(part: Snapshot) -> int:
    match part["state"]:
        case "cut":
            runs = part["passed"]
        case "imperative":
            runs = max(0, part["calls"] - part["hits"] - part["profiled"]) + part["passed"]
        case _:
            runs = part["misses"] + part["aborts"] + part["bypassed"]
    return int(runs)


def _place(cost: _Cost) -> str:
    shorter = cost.file
    if os.path.isabs(cost.file):
        with contextlib.suppress(OSError):  # the program has removed the folder that it runs in
            shorter = os.path.relpath(cost.file)
    return f"{cost.file if shorter.startswith('..') else shorter}:{cost.line}"


def _price(cost: _Cost, seconds: float | None) -> str:
    runs = f"{number_of('run', cost.runs)} in Python"
    if cost.milliseconds is None:
        return f"{runs}, not timed"
    share = f", {percent(cost.milliseconds / 1e3 / seconds)} of the time" if seconds else ""
    return f"{cost.how}{duration(cost.milliseconds)} in {runs}{share}"


# --- why nothing was converted --------------------------------------------------------------------

_DECORATE = "put @torchjanus.function above the function of one training step, or torchjanus.function(model)"


def why_nothing(
    snapshots: list[Snapshot], watch: dict[str, Any] | None, *, has_ended: bool
) -> Iterator[tuple[str, str]]:
    """Facts that explain why no call ran as a graph, each with what to try. The most telling come first.

    `has_ended`: the program has; else it asks in the middle, as notebooks do.
    """
    called = [each for each in snapshots if was_called(each)]
    early = "its time has not paid for a graph yet"
    if has_ended:
        early = "the program ended before its time paid for a graph"
    calls = sum(each["calls"] for each in called)
    bypassed = sum(each["bypassed"] for each in called)
    if bypassed and 2 * bypassed >= calls:
        names = sorted(
            reason["sentence"] for each in called for reason in each["reasons"] if reason["code"] == "mode_active"
        )  # fmt: skip
        yield (
            f"{bypassed} of {calls} calls were left alone: {names[0]}",
            reasons.remedy("mode_active"),
        )
    elif not snapshots and messages.left_alone:
        yield from messages.left_alone
    elif not snapshots:
        yield (
            "no loop or function with backward() or an evaluation was found in the program's own files",
            _DECORATE,
        )
    elif not called:
        places = ", ".join(
            f"{os.path.basename(each['file'])}:{each['line']}" for each in snapshots[:3]
        )
        yield f"{_count(snapshots)} found ({places}), and none was entered", _DECORATE
    elif _core.conversion_account() and any(map(_is_unfinished, called)):
        yield (
            f"{_count(called)} entered, and {early}",
            "run more steps, or switch the budget off: TORCHJANUS_DISABLE=budget",
        )
    elif not any(has_tensor_work(each) for each in called):
        yield f"{_count(called)} entered, and no tensor operation ran in them", _DECORATE
    else:
        yield from _why_too_early(called, has_ended=has_ended)
    yield from _why_not_found(watch)


def _count(snapshots: list[Snapshot]) -> str:
    if len(snapshots) == 1:
        return "one function or loop was"
    return f"{len(snapshots)} functions and loops were"


def _is_unfinished(snapshot: Snapshot) -> bool:
    """Whether a part of it was called and not profiled often enough yet."""
    return any(
        each["state"] == "profiling"
        and was_called(each)
        and each["profiled"] < each["profile_runs"]
        for each in leaves(snapshot)
    )


def _why_too_early(called: list[Snapshot], *, has_ended: bool) -> Iterator[tuple[str, str]]:
    """What was on its way to a graph when the program ended."""
    parts = [leaf for each in called for leaf in leaves(each) if has_tensor_work(leaf)]
    compiling = [each for each in parts if each["compiling"]]
    profiling = [each for each in parts if each["state"] == "profiling" and was_called(each)]
    if compiling:
        graph = f"the first graph of {compiling[0]['name']}"
        if has_ended:
            yield (
                f"the program ended while {graph} was being compiled",
                "run it again, as kernels are kept on disk, or for longer",
            )
        else:
            yield f"{graph} is being compiled in the background", "run more steps"
    elif profiling:
        most = max(profiling, key=lambda each: int(each["profiled"]))
        yield (
            f"too few calls: {most['name']} was profiled {most['profiled']} of {most['profile_runs']} times "
            "before a graph is made",
            "run more steps; from the call after the profiled ones on there are graphs",
        )


def _why_not_found(watch: dict[str, Any] | None) -> Iterator[tuple[str, str]]:
    """What the watch for functions that packages call says."""
    if watch is None:
        return
    seen = f"{number_of('window', watch['windows'])}, {watch['events']} calls and returns"
    failed = [each for each in watch["functions"] if each["why_not"]]
    if watch["error"]:
        yield f"the watch for functions that packages call failed: {watch['error']}", _DECORATE
    elif not watch["windows"] and watch["blocked"]:
        yield (
            "a debugger, profiler or coverage tool was active each time that calls were to be watched "
            f"({watch['blocked']} times)",
            reasons.remedy("mode_active"),
        )
    elif not watch["windows"]:
        yield (
            f"calls of packages were not watched yet: the program ran for {_seconds(watch['seconds'])}, and watching "
            f"begins after {_seconds(watch['seconds_before'])}",
            "run more steps",
        )
    elif not watch["tensor_calls"]:
        yield f"calls were watched ({seen}), and none of a function of torch's was seen", _DECORATE
    elif failed:
        first = failed[0]
        place = f"{os.path.basename(first['file'])}:{first['line']}"
        yield (
            f"{first['name']} ({place}) is called again and again, but {first['why_not']}",
            _DECORATE,
        )
    elif not watch["functions"] and watch["over_budget"]:
        yield "too much time had gone into functions without graphs to try further ones", _DECORATE
    elif not watch["functions"]:
        yield (
            f"calls were watched ({seen}), and no function with tensor work was called repeatedly",
            _DECORATE,
        )
