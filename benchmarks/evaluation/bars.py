"""Bars as SVG: how much faster than eager, a group for each program, on a scale that doubles from mark to mark."""

import math
from collections.abc import Iterator, Mapping, Sequence
from xml.sax.saxutils import escape

ROW, LEFT, WIDTH, RIGHT, TOP = 14, 150, 460, 60, 30
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#999999")


class Scale:
    """Doubles from mark to mark, and has all factors and 1."""

    def __init__(self, factors: Sequence[float]) -> None:
        self.low = math.floor(math.log2(min([1.0, *factors])))
        self.high = max(self.low + 1, math.ceil(math.log2(max([1.0, *factors]))))

    def at(self, factor: float) -> float:
        return LEFT + (math.log2(factor) - self.low) / (self.high - self.low) * WIDTH

    def marks(self) -> list[float]:
        return [2.0**power for power in range(self.low, self.high + 1)]


def bars(groups: Mapping[str, Mapping[str, float]], title: str) -> str:
    """`groups`: by program and then by system the factor against eager; the line is where both are as fast."""
    names = list(dict.fromkeys(name for group in groups.values() for name in group))
    colours = {name: COLOURS[number % len(COLOURS)] for number, name in enumerate(names)}
    scale = Scale([factor for group in groups.values() for factor in group.values()])
    parts, y = [], float(TOP)
    for program, group in groups.items():
        parts.append(text(LEFT - 8, y + ROW * len(group) / 2 + 4, program, 'text-anchor="end"'))
        for name, factor in group.items():
            parts += bar(scale, y, name, factor, colours[name])
            y += ROW
        y += 8
    parts.append(f'<path d="M{scale.at(1.0):.1f} {TOP - 4}V{y:.1f}" stroke="#222222"/>')
    parts += [
        text(scale.at(mark), y + 12, f"{mark:g}", 'text-anchor="middle"') for mark in scale.marks()
    ]
    parts += legend(y + 22, colours)
    size = f"{LEFT + WIDTH + RIGHT} {y + 44:.0f}"
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" '
        'font-family="sans-serif" font-size="11" fill="#222222">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        text(8, 16, title, 'font-weight="bold"'),
    ]
    return "\n".join([*head, *parts, "</svg>"]) + "\n"


def bar(scale: Scale, y: float, name: str, factor: float, colour: str) -> Iterator[str]:
    start, end = sorted((scale.at(1.0), scale.at(factor)))
    yield (
        f'<rect x="{start:.1f}" y="{y:.1f}" width="{max(1.0, end - start):.1f}" height="{ROW - 2}" '
        f'fill="{colour}"><title>{escape(name)}</title></rect>'
    )
    yield text(end + 4, y + ROW - 4, f"{factor:.2f} ×")


def legend(y: float, colours: Mapping[str, str]) -> Iterator[str]:
    x = float(LEFT)
    for name, colour in colours.items():
        yield f'<rect x="{x:.0f}" y="{y:.0f}" width="12" height="12" fill="{colour}"/>'
        yield text(x + 17, y + 10, name)
        x += 40 + 6.5 * len(name)


def text(x: float, y: float, words: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(words)}</text>'
