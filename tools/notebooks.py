"""Makes examples/notebooks/*.ipynb of the scripts beside them.

    python tools/notebooks.py [--check]

A cell begins at `# %%`, one of text at `# %% [markdown]`. A line `# %name` in a cell of code is a magic. `--check`
changes nothing and fails where a notebook is not what this command makes.
"""

import functools
import json
import re
from pathlib import Path

import generated_page

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "notebooks"
HEAD = re.compile(r"# %%( \[markdown\])?")


def notebook(script: Path) -> str:
    """The notebook as JSON."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {
        "cells": [cell(*each) for each in enumerate(cells(script.read_text()), start=1)],
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def cells(script: str) -> list[tuple[bool, list[str]]]:
    """Whether each is text, and its lines."""
    found: list[tuple[bool, list[str]]] = []
    for line in script.splitlines():
        if head := HEAD.fullmatch(line):
            found.append((head[1] is not None, []))
        else:
            found[-1][1].append(line)
    return found


def cell(number: int, told: tuple[bool, list[str]]) -> dict[str, object]:
    is_text, lines = told
    start = r"# ?" if is_text else r"# (?=%)"
    source = "\n".join(re.sub(f"^{start}", "", line) for line in lines).strip("\n")
    common = {"id": f"cell-{number}", "metadata": {}, "source": source.splitlines(keepends=True)}
    if is_text:
        return {"cell_type": "markdown", **common}
    return {"cell_type": "code", "execution_count": None, **common, "outputs": []}


if __name__ == "__main__":
    for script in sorted(FOLDER.glob("*.py")):
        make = functools.partial(notebook, script)
        generated_page.main(
            script.with_suffix(".ipynb"), make, "notebooks", __doc__.splitlines()[0]
        )
