"""A page on programs that were trained in several ways: curves against time, tables, links to reports."""

import html
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

STYLE = """
:root { color-scheme: light dark; --text: #1c1c1c; --ground: #ffffff; --rule: #cccccc; --link: #0b57a4; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e6e6; --ground: #17191c; --rule: #4a4d52; --link: #8ab8f0; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--ground);
  max-width: 860px; margin: 0 auto; padding: 16px; }
svg { width: 100%; min-width: 560px; height: auto; }
div { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { padding: 3px 14px 3px 0; text-align: right; border-bottom: 1px solid var(--rule); }
th:first-child, td:first-child { text-align: left; }
a { color: var(--link); }
"""


@dataclass
class Section:
    """A program: its curves as SVG, a table whose first row heads it, and reports by what they are of."""

    title: str
    pictures: Sequence[str]
    table: Sequence[Sequence[str]]
    reports: Mapping[str, Path] = field(default_factory=dict)
    note: str = ""


def write(file: Path, title: str, sections: Sequence[Section]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    body = "\n".join(part for section in sections for part in of_section(section, file.parent))
    file.write_text(
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{html.escape(title)}</title>'
        f"<style>{STYLE}</style></head>\n<body><h1>{html.escape(title)}</h1>\n{body}\n</body></html>\n",
        encoding="utf-8",
    )


def of_section(section: Section, folder: Path) -> list[str]:
    pictures = [f"<div>{each}</div>" for each in section.pictures]
    parts = [f"<section><h2>{html.escape(section.title)}</h2>", *pictures]
    if section.table:
        head, *rows = section.table
        parts.append(f"<div><table><thead>{of_row(head, 'th')}</thead><tbody>")
        parts += [of_row(row, "td") for row in rows]
        parts.append("</tbody></table></div>")
    if section.note:
        parts.append(f"<p>{html.escape(section.note)}</p>")
    for of_what, path in section.reports.items():
        link = html.escape(os.path.relpath(path, folder))
        parts.append(f'<p><a href="{link}">{html.escape(of_what)}</a></p>')
    return [*parts, "</section>"]


def of_row(cells: Sequence[str], kind: str) -> str:
    return f"<tr>{''.join(f'<{kind}>{html.escape(cell)}</{kind}>' for cell in cells)}</tr>"
