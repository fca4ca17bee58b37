"""`print` as a program, for files whose `write` is Python code of the program's own.

The front end inlines it in the place of builtins.print, so that what `write` does to the program's objects, or raises,
happens where it does eagerly. All other files are written after the run.
"""

from typing import Any


def print_to(
    *texts: str,
    sep: str | None = " ",
    end: str | None = "\n",
    file: Any,
    flush: bool = False,
) -> None:
    """Writes the texts of the values as builtins.print does: each, and what is between, by a call of its own."""
    between = " " if sep is None else sep
    is_first = True
    for text in texts:
        if not is_first:
            file.write(between)
        is_first = False
        file.write(text)
    file.write("\n" if end is None else end)
    if flush:
        file.flush()
