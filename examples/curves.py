"""Curves against time as SVG: one panel with axes, a line for each name, and names beside colours and dashes."""

import math
from collections.abc import Iterator, Mapping, Sequence
from xml.sax.saxutils import escape

Points = Sequence[tuple[float, float]]

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 320, 64, 12, 34, 70
# Also told apart without colours, and on light and dark ground.
STYLES = (("#0072b2", ""), ("#d55e00", "7 3"), ("#009e73", "2 3"), ("#cc79a7", "9 3 2 3"))


def curves(
    lines: Mapping[str, Points], title: str, x_title: str, y_title: str, ground: str = ""
) -> str:
    """An SVG element. Without a `ground` it has the colour of the page's text on the page's own."""
    points = [point for line in lines.values() for point in line]
    ink = "#222222" if ground else "currentColor"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)}" font-family="sans-serif" font-size="12" fill="{ink}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{ground}"/>' if ground else "",
        text(LEFT, 18, title, 'font-weight="bold"'),
        text(WIDTH - RIGHT, HEIGHT - 36, x_title, 'text-anchor="end"'),
        text(WIDTH - RIGHT, 18, y_title, 'text-anchor="end"'),
    ]
    if points:
        x_axis = Axis(0.0, max(x for x, _ in points), LEFT, WIDTH - RIGHT)
        low, high = min(y for _, y in points), max(y for _, y in points)
        y_axis = Axis(low, high, HEIGHT - BOTTOM, TOP)
        parts += [*grid(x_axis, y_axis), *drawn(lines, x_axis, y_axis)]
    return "\n".join([*filter(None, parts), "</svg>"]) + "\n"


class Axis:
    """From numbers to places."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.step = round_step((high - low) / 5 or 1.0)
        self.low = math.floor(low / self.step + 1e-9) * self.step
        self.high = math.ceil(high / self.step - 1e-9) * self.step or self.step
        self.start, self.scale = start, (end - start) / (self.high - self.low or 1.0)

    def at(self, value: float) -> float:
        return self.start + (value - self.low) * self.scale

    def marks(self) -> Iterator[float]:
        for number in range(round((self.high - self.low) / self.step) + 1):
            yield self.low + number * self.step


def round_step(least: float) -> float:
    """The next of 1, 2 and 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least * 0.999)


def grid(x_axis: Axis, y_axis: Axis) -> Iterator[str]:
    for value in y_axis.marks():
        y = y_axis.at(value)
        yield f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#888888" stroke-opacity=".35"/>'
        yield text(LEFT - 6, y + 4, f"{value:.6g}", 'text-anchor="end"')
    for value in x_axis.marks():
        anchor = "start" if value == 0 else "middle"
        yield text(
            x_axis.at(value), HEIGHT - BOTTOM + 16, f"{value:.6g}", f'text-anchor="{anchor}"'
        )


def drawn(lines: Mapping[str, Points], x_axis: Axis, y_axis: Axis) -> Iterator[str]:
    x = float(LEFT)
    for number, (name, points) in enumerate(lines.items()):
        colour, dashes = STYLES[number % len(STYLES)]
        style = f'fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}"'
        places = " ".join(f"{x_axis.at(a):.1f},{y_axis.at(b):.1f}" for a, b in points)
        yield f'<polyline points="{places}" {style}><title>{escape(name)}</title></polyline>'
        y = HEIGHT - 14
        yield f'<path d="M{x:.0f} {y - 4}h28" {style}/>'
        yield text(x + 34, y, name)
        x += 52 + 7.5 * len(name)


def text(x: float, y: float, words: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(words)}</text>'
