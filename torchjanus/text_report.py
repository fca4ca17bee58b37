"""Reports as text: what was converted, line by line, and why the rest was not converted."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from . import _core, co_execution, line_marks
from .snapshots import cuts, duration, leaves, number_of, speed, speed_told, was_called
from .source_text import Sources
from .summary import first_screen, of_child

_MOST_REASONS = 6  # with one code, at one place
_MARK_WIDTH = 11


class Shown(str):
    """A text of several lines that Python's prompt shows as it is, not quoted, and notebooks as HTML."""

    _html: Callable[[], str] | None

    def __new__(cls, text: str, html: Callable[[], str] | None = None) -> "Shown":
        made = super().__new__(cls, text)
        made._html = html
        return made

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str | None:
        return None if self._html is None else self._html()


def explain(converted: _core.Function | _core.Region) -> Shown:
    """The report on one function or region."""
    snapshot = converted.snapshot()
    return Shown(_explain(snapshot, Sources()), partial(html_of, snapshot))


def html_of(snapshot: dict[str, Any]) -> str:
    """What notebooks show of a function or region."""
    from .page import fragment  # late: who uses no notebook needs none of it

    return fragment.of_function(snapshot)


def as_html(converted: _core.Function | _core.Region) -> str:
    """What notebooks show where a cell ends with it."""
    return html_of(converted.snapshot())


def headline(converted: _core.Function | _core.Region) -> str:
    """A line: what it is, and how it runs."""
    return headline_of(converted.stats())


def headline_of(told: dict[str, Any]) -> str:
    """The same of counters, for instance of another process."""
    facts = "; ".join([state(told), *counted(told)])
    return f"{told['name']} ({told['file']}:{told['line']}): {facts}"


def counted(snapshot: dict[str, Any]) -> list[str]:
    """How often it ran as a graph, and how fast that was."""
    facts = []
    if "parts" not in snapshot:
        calls = snapshot["calls"] + snapshot["passed"]
        facts.append(f"{snapshot['hits']} of {calls} calls as a graph")
    if (measured := speed(snapshot)) is not None:
        facts.append(f"speed against eager {speed_told(measured)}")
    return facts


def explain_all(
    seconds: float | None = None, children: Mapping[int, list[dict[str, Any]]] | None = None
) -> Shown:
    """The reports on all functions and regions of the process, which has run for so long.

    `children`: what was converted in processes that it started, by their numbers.
    """
    snapshots = _core.all_snapshots()
    told = [each for each in snapshots if was_called(each) or each["reasons"]]
    summary = summary_of(snapshots, seconds, children)
    parts = [summary]
    if children:
        parts.append("\n".join(of_child(number, each) for number, each in children.items()))
    sources = Sources()
    parts += [_explain(each, sources) for each in told]
    return Shown("\n\n".join(parts), partial(_html_of_all, told, summary))


def _html_of_all(snapshots: list[dict[str, Any]], summary: str) -> str:
    from .page import fragment  # late, as above

    return fragment.of_process(snapshots, summary)


def summary_of(
    snapshots: list[dict[str, Any]],
    seconds: float | None = None,
    children: Mapping[int, list[dict[str, Any]]] | None = None,
) -> str:
    """At most ten lines on all functions and regions of the process; the arguments are those of `explain_all`."""
    return first_screen(snapshots, _core.seen_by_watch(), seconds, children)


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


def _explain(snapshot: dict[str, Any], sources: Sources) -> str:
    lines = [f"{snapshot['name']}  ({snapshot['file']}:{snapshot['line']}): {state(snapshot)}"]
    lines += _counters(snapshot)
    lines += co_execution.summary(snapshot.get("co_execution"))
    lines += _source(snapshot, sources)
    lines += cut_list(snapshot)
    if not cuts(snapshot):
        lines += _reasons(snapshot["reasons"])
    for leaf in leaves(snapshot):
        if leaf is not snapshot and (leaf["cache"] or leaf["reasons"]):
            lines += ["", f"  {_lines_of(leaf)}: {state(leaf)}", *_reasons(leaf["reasons"])]
        first: list[str] | None = None
        for number, each in enumerate(leaf["cache"], start=1):
            lines += _graph(number, each, first)
            first = first or each["assumptions"]
    return "\n".join(lines)


def state(snapshot: dict[str, Any]) -> str:
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


def cut_list(snapshot: dict[str, Any]) -> list[str]:
    """Each cut with its reason, and what became of the parts before and after it."""
    made = cuts(snapshot)
    if not made:
        return []
    result = ["", f"  cut {number_of('time', len(made))}"]
    for cut in made:
        place = cut["reason"]
        where = f" ({place['file']}:{place['line']})" if place["line"] != cut["line"] else ""
        result.append(f"    cut at line {cut['line']}: [{cut['code']}] {cut['sentence']}{where}")
        if cost := _each("in_python", cut):
            result.append(f"      in Python {cut['in_python']['runs']} times, {cost} each")
    for leaf in leaves(snapshot):
        result.append(
            f"    {_lines_of(leaf)}: {state(leaf)}; {leaf['graphs']} in the cache, ran "
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
            f"  gradients: shared within the graph: {number_of('bucket', buckets)}, "
            "sent when complete and waited for before the update"
        )
    result += [
        _communication(leaf["communication"]) for leaf in leaves(snapshot) if leaf["communication"]
    ]
    return result


def _communication(told: dict[str, Any]) -> str:
    meanwhile, waited = (
        duration(told[f"{each}_milliseconds"]) for each in ("overlapped", "exposed")
    )
    return (
        f"  communication: {number_of('collective', told['collectives'])} in a run; {meanwhile} computed "
        f"meanwhile, {waited} waited for (in runs that were timed)"
    )


# --- line by line ---------------------------------------------------------------------------------


def _source(snapshot: dict[str, Any], sources: Sources) -> list[str]:
    """Each line of the function or loop with its mark; then those of the functions it calls."""
    result: list[str] = []
    for block in line_marks.blocks(snapshot, sources):
        result.append("")
        if block.name is not None:
            result.append(f"  in {block.name} ({block.file}:{block.start})")
        result += marked_lines(block.lines)
    return result


def marked_lines(lines: Iterable[line_marks.Line]) -> Iterator[str]:
    """Each line with its mark, its notes and reasons below it."""
    for line in lines:
        yield f"  {line.mark:>{_MARK_WIDTH}} {line.number:5} | {line.text}".rstrip()
        indent = " " * (len(line.text) - len(line.text.lstrip()))
        for note in [*line.notes, *line.reasons[:_MOST_REASONS]]:
            yield f"  {'':>{_MARK_WIDTH}} {'':5} | {indent}^ {note}"


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
    result += made_of(entry["lines"])
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


def made_of(lines: list[dict[str, Any]]) -> list[str]:
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
