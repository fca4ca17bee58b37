"""Line charts as SVG: panels beside each other, whose x axis doubles from mark to mark and whose y axis ends at 1."""

import math
from collections.abc import Iterable, Mapping, Sequence
from xml.sax.saxutils import escape

Points = Sequence[tuple[float, float]]

WIDTH, HEIGHT, LEFT, TOP, GAP = 250, 200, 45, 40, 30  # of a panel, and around it
COLOURS = ("#1b6ca8", "#c8553d", "#3a7d44", "#8a4f9e", "#b8860b", "#555555")


def line_charts(panels: Mapping[str, Mapping[str, Points]], x_title: str, y_title: str) -> str:
    """Lines of one name have one colour in all panels; those named "… off" are dashed."""
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    colours = {name: COLOURS[number % len(COLOURS)] for number, name in enumerate(names)}
    width = LEFT + len(panels) * (WIDTH + GAP)
    height = TOP + HEIGHT + 50 + 18 * len(names)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        text(12, TOP + HEIGHT / 2, y_title, f'transform="rotate(-90 12 {TOP + HEIGHT / 2:.0f})"'),
    ]
    for number, (title, lines) in enumerate(panels.items()):
        left = LEFT + number * (WIDTH + GAP)
        parts += panel(left, title, lines, x_title, colours)
    for number, name in enumerate(names):
        y = TOP + HEIGHT + 56 + 18 * number
        parts.append(path([(LEFT, y - 4), (LEFT + 30, y - 4)], colours[name], name))
        parts.append(text(LEFT + 38, y, name, 'text-anchor="start"'))
    return "\n".join([*parts, "</svg>"]) + "\n"


def panel(
    left: float, title: str, lines: Mapping[str, Points], x_title: str, colours: Mapping[str, str]
) -> Iterable[str]:
    marks = sorted({x for points in lines.values() for x, _ in points})
    least, most = math.log2(marks[0]), math.log2(marks[-1])

    def at(x: float, y: float) -> tuple[float, float]:
        share = (math.log2(x) - least) / (most - least or 1)
        return left + share * WIDTH, TOP + (1 - min(y, 1.05)) * HEIGHT

    yield text(left + WIDTH / 2, TOP - 16, title, 'font-weight="bold"')
    yield text(left + WIDTH / 2, TOP + HEIGHT + 32, x_title)
    for y in (0, 0.25, 0.5, 0.75, 1):
        _, height = at(marks[0], y)
        yield path([(left, height), (left + WIDTH, height)], "#dddddd", "")
        if left == LEFT:
            yield text(left - 6, height + 4, f"{y:g}", 'text-anchor="end"')
    for x in marks[:: max(1, len(marks) // 4)]:
        yield text(at(x, 0)[0], TOP + HEIGHT + 16, f"{x:,}")
    for name, points in lines.items():
        yield path([at(x, y) for x, y in points], colours[name], name)


def path(points: Points, colour: str, name: str) -> str:
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dashes = ' stroke-dasharray="5 3"' if name.endswith(" off") else ""
    return f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"{dashes}/>'


def text(x: float, y: float, words: str, more: str = "") -> str:
    anchor = "" if "text-anchor" in more else ' text-anchor="middle"'
    return f'<text x="{x:.1f}" y="{y:.1f}"{anchor} {more}>{escape(words)}</text>'
