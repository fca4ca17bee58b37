"""Reports as a page: one HTML file that needs neither a network nor a server.

`data.py` collects what the page shows, `source.py` writes the marked source as HTML, and `page.js` shows details of it
when they are asked for.
"""

import html
import json
from pathlib import Path
from string import Template
from typing import Any

from .. import __version__
from . import source
from .data import Collected, collect

__all__ = ["collect", "write"]

_FOLDER = Path(__file__).parent


def write(file: Path, snapshots: list[dict[str, Any]], title: str, summary: str) -> None:
    """Writes the page on what `_details` of functions and regions gave.

    `summary`: lines about the whole, which stand at the top.
    """
    collected = collect(snapshots)
    file.write_text(_page(collected, title, summary), encoding="utf-8")


def _page(collected: Collected, title: str, summary: str) -> str:
    data = {
        "title": title,
        "version": __version__,
        "summary": summary.splitlines(),
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
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
