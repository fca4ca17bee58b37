"""Source files as HTML: each line with its mark, in blocks that a browser lays out only when they are looked at."""

import html
import keyword
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from urllib.parse import quote

from .data import MarkedFile

# Marks that look alike: the class of a line is a letter.
CLASSES = {
    "graph": "g",
    "folded": "g",
    "after run": "g",
    "assumed": "a",
    "co-executed": "c",
    "imperative": "i",
    "cut": "x",
    "not taken": "n",
    "no operator": "o",
}
LABELS = {"not taken": "not run"}
_BLOCK = 50  # lines
_SAFE = "/:;,?@&=+$-_.!~*()#"  # in an address, as JavaScript's encodeURI has it
_TOKEN = re.compile(
    r"(?P<comment>\#[^\n]*)"
    r"|(?P<string>(?i:[rbfu]{0,2})(?:'''.*?(?:'''|\Z)|\"\"\".*?(?:\"\"\"|\Z)"
    r"|'(?:\\.|[^'\\\n])*'?|\"(?:\\.|[^\"\\\n])*\"?))"
    rf"|(?P<keyword>\b(?:{'|'.join(keyword.kwlist)})\b)"
    r"|\w+|[^\w#'\"]+",
    re.DOTALL,
)


class Shares:
    """Of the time that has lines, in all files."""

    LEAST = 0.01  # that is shown

    def __init__(self, files: Iterable[MarkedFile]) -> None:
        every = [seconds for file in files for seconds in file.seconds.values()]
        self.whole, self.most = sum(every), max(every, default=0.0)

    def of(self, file: MarkedFile, line: int) -> str:
        """A bar, as long as the line's time beside that of the line with most of it."""
        seconds = file.seconds.get(line, 0.0)
        if self.whole == 0 or seconds < self.LEAST * self.whole:
            return "<u></u>"
        percent, length = 100 * seconds / self.whole, 100 * seconds / self.most
        return f'<u style="--t:{length:.0f}">{max(1, round(percent))} %</u>'


def as_html(file: MarkedFile, shares: Shares) -> str:
    """The section of a file."""
    name = html.escape(file.name)
    parts = [
        f'<section class="file" aria-label="{name}">',
        f'<h2>{name} <small>{html.escape(file.path)}</small></h2><div class="code">',
    ]
    lines = coloured("\n".join(file.lines))
    before = ""
    for run in _runs(_shown(file)):
        if run[0] > 1:
            parts.append('<p class="gap" aria-hidden="true">⋯</p>' if not file.is_own else "")
        for start in range(0, len(run), _BLOCK):
            block = run[start : start + _BLOCK]
            parts.append(f'<div class="block" style="--lines:{len(block)}">')
            for number in block:
                mark = file.marks.get(number, "")
                share = shares.of(file, number)
                parts.append(_line(name, number, mark, mark != before, share, lines[number - 1]))
                before = mark
            parts.append("</div>")
    return "".join([*parts, "</div></section>"])


def _shown(file: MarkedFile) -> list[int]:
    """All lines of the user's own files, and of others what lies between marked ones."""
    last = len(file.lines)
    if file.is_own:
        return list(range(1, last + 1))
    return [number for number in sorted(file.marks) if number <= last]


def _runs(numbers: list[int]) -> Iterator[list[int]]:
    """Numbers that follow each other. Few that are left out between them are taken in."""
    most_left_out = 8
    run: list[int] = []
    for number in numbers:
        if run and number > run[-1] + most_left_out:
            yield run
            run = []
        run += range(run[-1] + 1 if run else number, number + 1)
    if run:
        yield run


def _line(name: str, number: int, mark: str, begins: bool, share: str, text: str) -> str:
    label = f"<b>{LABELS.get(mark, mark)}</b>" if mark and begins else "<b></b>"
    place = f"{name}:{number}"
    address = html.escape(quote(html.unescape(place), safe=_SAFE))
    return (
        f'<div class="l {CLASSES.get(mark, "")}" id="{place}">'
        f'<a href="#{address}" tabindex="-1">{number}</a>{label}{share}<code>{text}</code></div>'
    )


def coloured(text: str) -> list[str]:
    """The lines as HTML: comments, strings and keywords stand in elements of their own."""
    pieces = []
    for kind, tokens in groupby(_TOKEN.finditer(text), key=lambda token: token.lastgroup):
        shown = html.escape("".join(token[0] for token in tokens), quote=False)
        if kind is None:
            pieces.append(shown)
        else:
            letter = kind[0]
            pieces.append("\n".join(f"<i class={letter}>{each}</i>" for each in shown.split("\n")))
    return "".join(pieces).split("\n")
