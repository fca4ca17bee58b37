"""Draws a timeline (docs/report.md) as an SVG: the whole run, and the last call that ran as a graph.

Perfetto's page needs a network; this draws the same slices: a row for each depth of nesting, below the name of the
thread. Slices that are narrower than a few pixels have no name.
"""

import itertools
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))

from curves import round_step

Event = dict[str, Any]

WIDTH, LEFT, RIGHT, ROW, HEAD, GAP = 1120, 10, 10, 18, 34, 18
_LEAST_NAMED = 4  # pixels of a slice that is drawn by itself
_LEAST_GAP = 0.5  # pixels
_LETTER = 6.1  # pixels
# By category, of the palette of Okabe and Ito, lightened below black text; all others are grey.
COLOURS = {
    "call": "#bcd9ee", "graph": "#7fd1b4", "kernel": "#f3d27a", "operator": "#f3b37a", "guards": "#e3bcd4",
    "profile": "#d9d9d9", "generate": "#c9c2e6", "optimise": "#b3a7dd", "compile": "#9c8cd0", "background": "#a9cfd1",
}  # fmt: skip
OTHER = "#dddddd"


@dataclass
class Row:
    """Slices that do not overlap, beginning and end in microseconds."""

    slices: list[tuple[float, float, Event]]


def drawn(trace: dict[str, Any]) -> str:
    """The picture of what a trace file holds."""
    slices = [each for each in trace["traceEvents"] if each["ph"] == "X"]
    threads = {
        each["tid"]: each["args"]["name"]
        for each in trace["traceEvents"]
        if each["ph"] == "M" and each["name"] == "thread_name"
    }
    start = min(each["ts"] for each in slices)
    end = max(each["ts"] + each["dur"] for each in slices)
    parts, top = list[str](), 0.0
    panels = [("The run", slices, start, end)]
    if graphs := [each for each in slices if each["cat"] == "graph"]:
        call = _around(slices, max(graphs, key=lambda each: each["ts"]))
        first, last = call["ts"], call["ts"] + call["dur"]
        within = [each for each in slices if first <= each["ts"] and each["ts"] < last]
        panels.append(("The last call as a graph", within, first, last))
    for title, shown, first, last in panels:
        panel, height = _panel(title, shown, threads, first, last)
        parts.append(f'<g transform="translate(0 {top:.0f})">{"".join(panel)}</g>')
        top += height + GAP
    parts.append(_legend(top, {each["cat"] for each in slices}))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top + 24:.0f}" role="img" '
        f'aria-label="A timeline" font-family="sans-serif" font-size="11" fill="#1c1c1c">\n'
        f'<rect width="{WIDTH}" height="{top + 24:.0f}" fill="#ffffff"/>\n{"".join(parts)}</svg>\n'
    )


def _around(slices: Sequence[Event], graph: Event) -> Event:
    """The call in which a graph ran."""
    return max(
        (
            each
            for each in slices
            if each["cat"] == "call"
            and each["tid"] == graph["tid"]
            and each["ts"] <= graph["ts"] < each["ts"] + each["dur"]
        ),
        key=lambda each: each["ts"],
        default=graph,
    )


def rows_of(slices: Sequence[Event]) -> list[Row]:
    """A row for each depth of nesting, of one thread's slices."""
    rows, open_ends = list[Row](), list[float]()
    for each in sorted(slices, key=lambda each: (each["ts"], -each["dur"])):
        while open_ends and open_ends[-1] <= each["ts"]:
            open_ends.pop()
        if len(open_ends) == len(rows):
            rows.append(Row([]))
        end = each["ts"] + each["dur"]
        rows[len(open_ends)].slices.append((each["ts"], end, each))
        open_ends.append(end)
    return rows


def _panel(
    title: str, slices: Sequence[Event], threads: dict[int, str], start: float, end: float
) -> tuple[list[str], float]:
    """Its parts and its height."""
    scale = (WIDTH - LEFT - RIGHT) / (end - start)
    parts = [_text(LEFT, 14, f"{title}, {_time(end - start)}", 'font-weight="bold"')]
    parts += _ticks(end - start, scale)
    y = float(HEAD)
    by_thread = itertools.groupby(
        sorted(slices, key=lambda each: each["tid"]), key=lambda each: each["tid"]
    )
    for thread, of_thread in by_thread:
        parts.append(_text(LEFT, y + 13, threads.get(thread, str(thread)), 'font-style="italic"'))
        y += ROW
        for row in rows_of(list(of_thread)):
            parts += _row(row, start, scale, y)
            y += ROW
    return parts, y


def _ticks(length: float, scale: float) -> Iterator[str]:
    step = round_step(length / 8)
    for number in range(1, int(length / step) + 1):
        x = LEFT + number * step * scale
        yield f'<path d="M{x:.1f} {HEAD - 10}v6" stroke="#767676"/>'
        yield _text(x - 4, HEAD - 4, _time(number * step), 'text-anchor="end" fill="#595959"')


def _row(row: Row, start: float, scale: float, y: float) -> Iterator[str]:
    """Wide slices one by one; narrow ones together, by category, those as one that touch."""
    narrow = dict[str, list[list[float]]]()
    for begin, end, event in row.slices:
        x, right = LEFT + (begin - start) * scale, LEFT + (end - start) * scale
        if right - x >= _LEAST_NAMED:
            yield from _slice(x, right - x, y, event)
            continue
        spans = narrow.setdefault(event["cat"], [])
        if spans and x - spans[-1][1] < _LEAST_GAP:
            spans[-1][1] = max(spans[-1][1], right)
        else:
            spans.append([x, max(right, x + _LEAST_GAP)])
    for category, spans in narrow.items():
        path = "".join(f"M{x:.1f} {y:.0f}V{y + ROW - 2:.0f}H{end:.1f}V{y:.0f}z" for x, end in spans)
        yield f'<path d="{path}" fill="{COLOURS.get(category, OTHER)}"/>\n'


def _slice(x: float, width: float, y: float, event: Event) -> Iterator[str]:
    """With its name, as far as it fits; in a browser a title tells all of it."""
    line = event.get("args", {}).get("line", "").rpartition("/")[2]
    name = f"{event['name']} ({line})" if line else event["name"]
    yield (
        f'<rect x="{x:.1f}" y="{y:.0f}" width="{width:.1f}" height="{ROW - 2}" stroke="#ffffff" stroke-width=".6" '
        f'fill="{COLOURS.get(event["cat"], OTHER)}"><title>{escape(name)}, {_time(event["dur"])}</title></rect>\n'
    )
    if shown := _fitting([name, event["name"]], width):
        yield _text(x + 3, y + 12, shown)


def _fitting(names: Sequence[str], width: float) -> str:
    """The first name that fits, else the beginning of the last one; nothing where that tells nothing."""
    room = int((width - 6) / _LETTER)
    for name in names:
        if len(name) <= room:
            return name
    return f"{names[-1][: room - 1]}…" if room >= 6 else ""


def _legend(y: float, categories: set[str]) -> str:
    parts, x = list[str](), float(LEFT)
    for category, colour in COLOURS.items():
        if category in categories:
            parts.append(f'<rect x="{x:.0f}" y="{y:.0f}" width="12" height="12" fill="{colour}"/>')
            parts.append(_text(x + 17, y + 10, category))
            x += 34 + _LETTER * len(category)
    return "".join(parts)


def _time(microseconds: float) -> str:
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size:
            return f"{microseconds / size:.3g} {unit}"
    return f"{microseconds:.3g} µs"


def _text(x: float, y: float, words: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(words)}</text>\n'


if __name__ == "__main__":
    print(drawn(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
