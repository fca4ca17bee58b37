"""Reports as a page: one HTML file that needs neither a network nor a server.

`data.py` collects what the page shows, `source.py` writes the marked source as HTML, and `page.js` shows details of it
when they are asked for.
"""

import html
import json
import re
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Any

from .. import __version__
from ..source_text import divided, printable
from ..summary import of_child as summary_of_child
from ..text_report import headline_of
from . import source
from .data import Collected, collect

__all__ = ["collect", "write"]

_FOLDER = Path(__file__).parent


def write(
    file: Path,
    snapshots: list[dict[str, Any]],
    title: str,
    summary: str,
    *,
    program: str | None = None,
    children: Mapping[int, list[dict[str, Any]]] | None = None,
) -> None:
    """Writes the page on what `_details` of functions and regions gave.

    Args:
        file, snapshots, title: Where to write it, on what, and under which heading.
        summary: Lines about the whole, which stand at the top.
        program: The program's file, which is shown in any case.
        children: Counters of the processes that the program started, by their numbers.
    """
    collected = collect(snapshots, program)
    collected.data["processes"] = [
        {"says": summary_of_child(number, each), "functions": list(map(headline_of, each))}
        for number, each in (children or {}).items()
    ]
    file.write_text(_page(collected, printable(title), summary), encoding="utf-8")


def _page(collected: Collected, title: str, summary: str) -> str:
    data = {
        "title": title,
        "version": __version__,
        "summary": divided(summary),
        **collected.data,
    }
    shares = source.Shares(collected.files)
    return Template(_part("page.html")).substitute(
        title=html.escape(title),
        style=_part("source.css") + _part("page.css"),
        script=_part("page.js"),
        source="\n".join(source.as_html(each, shares) for each in collected.files if each.lines),
        data=_embedded(data),
    )


def _part(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def _embedded(data: dict[str, Any]) -> str:
    """JSON that can stand within a script element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    text = re.sub("[\ud800-\udfff]", lambda found: f"\\{printable(found[0])}", text)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
