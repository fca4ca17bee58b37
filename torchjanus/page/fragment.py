"""What notebooks show of functions, regions and cells: a piece of HTML that needs no script and no network.

Its lines look as on the page (source.css). A line of which more is to be told opens by a click, or by Enter.
"""

import functools
import html
from collections.abc import Iterable, Sequence
from pathlib import Path

from .. import installed, line_marks, reasons, text_report, totals
from ..snapshots import Snapshot, has_tensor_work, was_called
from ..source_text import Sources, divided
from .source import CLASSES, LABELS, coloured

_FOLDER = Path(__file__).parent
_MOST_FUNCTIONS = 30  # of a process; a page shows all
_NAMES = {
    "g": "graph", "a": "assumed", "c": "co-executed", "i": "imperative", "x": "cut", "n": "not run",
    "o": "no operator",
}  # fmt: skip


def of_function(snapshot: Snapshot) -> str:
    """A function or region: how it runs, its lines, and behind them the functions that it calls."""
    return _framed(*_function(snapshot, Sources()))


def of_process(snapshots: Sequence[Snapshot], summary: str) -> str:
    """The summary, and behind the name of each function or region what `of_function` shows."""
    told = [each for each in snapshots if was_called(each) and has_tensor_work(each)]
    told.sort(key=totals.time_of, reverse=True)
    return _framed(_summary(summary), *_folded(told[:_MOST_FUNCTIONS]), _left_out(told))


def of_cell(lines: Sequence[line_marks.Line], others: Sequence[Snapshot], summary: str) -> str:
    """A cell's lines, and behind their names the functions and regions of other places that ran in it."""
    others = sorted(others, key=totals.time_of, reverse=True)
    return _framed(
        _summary(summary), _code(lines), *_folded(others[:_MOST_FUNCTIONS]), _left_out(others)
    )


def _framed(*parts: str) -> str:
    body = "".join(parts)
    shown = [letter for letter in _NAMES if f'class="l {letter}"' in body]
    legend = "".join(f'<li class="{each}">{_NAMES[each]}</li>' for each in shown)
    return (
        f'<div class="torchjanus"><style>{_style()}</style>{body}'
        f'{f"""<ul class="legend" aria-label="Marks of lines">{legend}</ul>""" if legend else ""}</div>'
    )


@functools.cache
def _style() -> str:
    rules = [
        (_FOLDER / name).read_text(encoding="utf-8") for name in ("source.css", "fragment.css")
    ]
    return f".torchjanus {{ {''.join(rules)} }}"


def _summary(text: str) -> str:
    first, *others = divided(text)
    rest = "".join(f"<li>{html.escape(each.strip())}</li>" for each in others)
    listed = f'<ul class="notes" style="padding-left: 28px">{rest}</ul>' if rest else ""
    return f"<h4>{html.escape(first)}</h4>{listed}"


def _left_out(told: Sequence[Snapshot]) -> str:
    more = len(told) - _MOST_FUNCTIONS
    if more <= 0:
        return ""
    text = (
        f"{more} more: torchjanus.report(None, &quot;out.html&quot;) writes a page with all of them"
    )
    return f"<p><small>{text}</small></p>"


# --- functions ------------------------------------------------------------------------------------


def _folded(snapshots: Iterable[Snapshot]) -> Iterable[str]:
    sources = Sources()
    for each in snapshots:
        head, *rest = _function(each, sources)
        yield f'<details class="more"><summary>{_inline(head)}</summary>{"".join(rest)}</details>'


def _inline(head: str) -> str:
    return head.removeprefix("<h4>").removesuffix("</h4>")


def _function(snapshot: Snapshot, sources: Sources) -> list[str]:
    blocks = list(line_marks.blocks(snapshot, sources))
    return [
        _head(snapshot),
        *(_code(each.lines) for each in blocks if each.name is None),
        *(
            _called(each)
            for each in blocks
            if each.name and not each.file.startswith(installed.ALL)
        ),
    ]


def _head(snapshot: Snapshot) -> str:
    """Name, place, and how it runs."""
    place = f"{Path(snapshot['file']).name}:{snapshot['line']}"
    facts = [text_report.state(snapshot), *text_report.counted(snapshot)]
    return (
        f"<h4>{html.escape(snapshot['name'])} <small>{html.escape(place)} · "
        f"{html.escape(' · '.join(facts))}</small></h4>"
    )


def _called(block: line_marks.Block) -> str:
    name = html.escape(f"in {block.name} ({Path(block.file).name}:{block.start})")
    return f'<details class="more"><summary>{name}</summary>{_code(block.lines)}</details>'


# --- lines ----------------------------------------------------------------------------------------


def _code(lines: Sequence[line_marks.Line]) -> str:
    if not lines:
        return ""  # of a cell that is empty behind its magic
    shown, before = [], ""
    texts = coloured("\n".join(line.text for line in lines))
    for line, text in zip(lines, texts, strict=True):
        shown.append(_line(line, text, begins=line.mark != before))
        before = line.mark
    return f'<div class="scroll"><div class="code">{"".join(shown)}</div></div>'


def _line(line: line_marks.Line, text: str, *, begins: bool) -> str:
    label = LABELS.get(line.mark, line.mark) if begins else ""
    content = f"<a>{line.number}</a><b>{label}</b><code>{text}</code>"
    kind = f"l {CLASSES.get(line.mark, '')}".strip()
    if not line.notes and not line.reasons:
        return f'<div class="{kind}">{content}</div>'
    notes = "".join(f"<li>{html.escape(each)}</li>" for each in line.notes)
    notes += "".join(map(_reason, line.reasons))
    return f'<details><summary class="{kind}">{content}</summary><ul class="notes">{notes}</ul></details>'


def _reason(text: str) -> str:
    """The reason with its code in brackets, and what to try."""
    code = text.partition("[")[2].partition("]")[0]
    told = html.escape(text)
    if code not in reasons.entries():
        return f"<li>{told}</li>"
    return f'<li>{told}</li><li class="try"><b>try:</b> {html.escape(reasons.remedy(code))}</li>'
