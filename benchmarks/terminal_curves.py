"""Curves in a terminal: dots of Braille, eight to a character, in the colours of their lines."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from rich.text import Text

Points = Sequence[tuple[float, float]]

STYLES = ("dodger_blue1", "dark_orange", "spring_green3", "plum1")
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # by row and column of a character


def drawn(lines: Mapping[str, Points], width: int, height: int) -> Text:
    """Characters of so many columns and rows; where lines cross, the last one's colour."""
    points = [point for line in lines.values() for point in line]
    cells: dict[tuple[int, int], tuple[int, str]] = {}
    if points:
        most = max(x for x, _ in points) or 1.0
        low, high = min(y for _, y in points), max(y for _, y in points)
        for line, style in zip(lines.values(), STYLES, strict=False):
            for x, y in dots(line, most, low, high, 2 * width, 4 * height):
                place = (y // 4, x // 2)
                mask, _ = cells.get(place, (0, style))
                cells[place] = (mask | DOTS[y % 4][x % 2], style)
    text = Text()
    for row in range(height):
        for column in range(width):
            mask, style = cells.get((row, column), (0, ""))
            text.append(chr(0x2800 + mask), style)
        text.append("\n")
    return text


def dots(
    line: Points, most: float, low: float, high: float, columns: int, rows: int
) -> list[tuple[int, int]]:
    """From each point to the next."""
    places = [
        (x / most * (columns - 1), (high - y) / (high - low or 1.0) * (rows - 1)) for x, y in line
    ]
    found = [(round(x), round(y)) for x, y in places[:1]]
    for (x, y), (next_x, next_y) in pairwise(places):
        count = max(1, round(max(abs(next_x - x), abs(next_y - y))))
        for step in range(1, count + 1):
            share = step / count
            found.append((round(x + (next_x - x) * share), round(y + (next_y - y) * share)))
    return found
