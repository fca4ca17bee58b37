"""Writes docs/api.md: the public functions of the package, of their docstrings.

    python tools/api_page.py [--check]

`--check` changes nothing and fails if the page is not what this command makes. What is public is what
`torchjanus.__all__` and `torchjanus.meta.__all__` name; a class is shown with its public members.
"""

import argparse
import inspect
import itertools
import os
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import generated_page

import torchjanus
from torchjanus import command_line

PAGE = Path(__file__).resolve().parents[1] / "docs" / "api.md"
INDENT = "    "
SECTIONS = ("Args", "Returns", "Raises", "Source", "Example")
HEAD = """\
# The Python functions

Made by `make api-page` from the docstrings; `help(torchjanus.function)` shows the same. Tensors are on the CPU, of any
shape and dtype, unless the text says otherwise.
"""
COMMAND = """\
## The command line

```
{run}
```

```
{explain}
```
"""


def page() -> str:
    parts = [
        HEAD,
        *documented("torchjanus", torchjanus),
        *documented("torchjanus.meta", torchjanus.meta),
    ]
    return "\n".join([*parts, commands()])


def documented(prefix: str, module: types.ModuleType) -> Iterator[str]:
    """A part for each public name, modules but for their own text left out."""
    for name in module.__all__:
        value, path = getattr(module, name), f"{prefix}.{name}"
        if prefix != "torchjanus" and name in torchjanus.__all__:
            continue  # is named there
        yield from documented_value(path, value, name == "options")


def documented_value(path: str, value: Any, is_instance: bool) -> Iterator[str]:
    if isinstance(value, types.ModuleType):
        yield f"## {path}\n\n{as_markdown(value)}"
    elif inspect.isclass(value) or is_instance:
        yield f"## {path}\n\n{as_markdown(value)}"
        kind = type(value) if is_instance else value
        for name, member in vars(kind).items():
            if is_shown(kind, name) and inspect.getdoc(member):
                yield f"### {path}.{name}{signature(member)}\n\n{as_markdown(member)}"
    else:
        yield f"## {path}{signature(value)}\n\n{as_markdown(value)}"


def is_shown(kind: type, name: str) -> bool:
    """Of a Region, what a Function has too: the rest is for rewritten code."""
    return not name.startswith("_") and (
        kind is not torchjanus.Region or name in vars(torchjanus.Function)
    )


def signature(value: Any) -> str:
    """The parameters, without types and self; of what is compiled, and of properties, none."""
    if isinstance(value, property):
        return ""
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return "()"
    shown = [
        each.replace(annotation=inspect.Parameter.empty)
        for each in parameters
        if each.name != "self"
    ]
    return str(inspect.Signature(shown))


def as_markdown(value: Any) -> str:
    """A docstring: sections as bold words, items of them as lists, indented code as blocks."""
    lines: list[str] = []
    section = ""
    for line in (inspect.getdoc(value) or "").splitlines():
        if (found := re.fullmatch(r"(\w+):", line)) and found[1] in SECTIONS:
            section = found[1]
            lines.append(f"**{section}**")
        elif section in ("Args", "Raises") and re.match(rf"{INDENT}[\w*]+: ", line):
            name, text = line.strip().split(": ", 1)
            lines.append(f"- `{name}`: {text}")
        elif section and section != "Example" and line.startswith(INDENT):
            nested = "  " if section in ("Args", "Raises") else ""
            lines.append(nested + line.removeprefix(INDENT * (2 if nested else 1)))
        else:
            section = section if not line or line.startswith(INDENT) else ""
            lines.append(line)
    return "\n".join(spaced(lines)).strip() + "\n"


def spaced(lines: list[str]) -> Iterator[str]:
    """One empty line behind each section's name."""
    for line, following in itertools.zip_longest(lines, lines[1:], fillvalue=""):
        yield line
        if line.strip("*") in SECTIONS and following:
            yield ""


def commands() -> str:
    """The help of each command, at one width everywhere."""
    os.environ["COLUMNS"] = "100"
    actions = command_line.parser()._actions
    (subparsers,) = (each for each in actions if isinstance(each, argparse._SubParsersAction))
    helps = {name: each.format_help().strip() for name, each in subparsers.choices.items()}
    return COMMAND.format(**helps)


if __name__ == "__main__":
    generated_page.main(PAGE, page, "api-page", (__doc__ or "").splitlines()[0])
