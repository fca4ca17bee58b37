"""Writes docs/reasons.md: every code of a reason with its meaning, an example and a remedy, of torchjanus/reasons.toml.

    python tools/reasons_page.py [--check]

`--check` changes nothing and fails if the page is not what this command makes.
"""

from pathlib import Path

import generated_page

from torchjanus import reasons

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reasons.md"
HEAD = """\
# Reasons

Made by `make reasons-page` from `torchjanus/reasons.toml`. Reports name a code in brackets where something is not in a
graph, or where a graph was left: `train.py:12: [heap_write] the assignment to self.n changes an object …`. The codes
are stable. `torchjanus explain CODE` prints what stands here.

In the examples `f` is the converted function. They are run by a test, after
`import contextlib, functools, types`, `import torch, torchjanus` and `from torch import nn`.
What is converted, construct by construct, is in [conversion.md](conversion.md).
"""


def page() -> str:
    rows = [f"| [`{each.code}`](#{each.code}) | {each.meaning} |" for each in entries()]
    table = "\n".join(["| code | meaning |", "|---|---|", *rows])
    return "\n".join([HEAD, table, "", *map(section, entries())])


def entries() -> list[reasons.Entry]:
    return list(reasons.entries().values())


def section(entry: reasons.Entry) -> str:
    text = f"## {entry.code}\n\n{entry.meaning}\n\n**What to do:** {entry.remedy}.\n\n{block(entry.example)}"
    return f"{text}\nInstead:\n\n{block(entry.instead)}" if entry.instead else text


def block(code: str) -> str:
    return f"```python\n{code.strip()}\n```\n"


if __name__ == "__main__":
    generated_page.main(PAGE, page, "reasons-page", (__doc__ or "").splitlines()[0])
