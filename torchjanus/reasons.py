"""What each reason's code means, with an example and what to do: `torchjanus explain CODE`, docs/reasons.md."""

import functools
import textwrap
from dataclasses import dataclass
from pathlib import Path

_FILE = Path(__file__).with_name("reasons.toml")
_MOST_NEAR = 3
_WIDTH = 100


@dataclass(frozen=True)
class Entry:
    """What is written about one code."""

    code: str
    meaning: str
    remedy: str
    example: str
    instead: str = ""

    def text(self) -> str:
        """As the command line shows it."""
        parts = [
            f"[{self.code}] {self.meaning}",
            textwrap.fill(f"What to do: {self.remedy}.", _WIDTH),
        ]
        if self.example:
            parts.append(f"Example:\n\n{textwrap.indent(self.example.strip(), '    ')}")
        if self.instead:
            parts.append(f"Instead:\n\n{textwrap.indent(self.instead.strip(), '    ')}")
        return "\n\n".join(parts)


_NO_LIBRARY = Entry(
    "no_library",
    "No compiled library fits this Python and this torch, so everything runs imperatively.",
    "install a Python and a torch that there is a library for; `torchjanus.explain()` names them",
    example="",
)


@functools.cache
def entries() -> dict[str, Entry]:
    """All that is written, by code, in the order of src/speculate/reason.h."""
    import tomllib  # late, as `import torchjanus` needs none of this

    with _FILE.open("rb") as file:
        return {code: Entry(code, **told) for code, told in tomllib.load(file).items()}


def _everything() -> dict[str, Entry]:
    """And the one of Python's side (imperative.py), which no program brings about."""
    return entries() | {_NO_LIBRARY.code: _NO_LIBRARY}


def remedy(code: str) -> str:
    """What to try, in a line."""
    return entries()[code].remedy


def near(code: str) -> list[str]:
    """Codes that somebody who wrote this one may mean, the nearest first."""
    import difflib

    names = list(_everything())
    asked = code.strip("[] ").lower().replace("-", "_")
    within = [name for name in names if asked and asked in name]
    close = difflib.get_close_matches(asked, names, n=_MOST_NEAR, cutoff=0.5)
    return list(dict.fromkeys([*within, *close]))[:_MOST_NEAR]


def explained(code: str) -> str | None:
    """The text on a code, written with or without its brackets; None: there is no such code."""
    found = _everything().get(code.strip("[] "))
    return None if found is None else found.text()


def overview() -> str:
    """A line for each code."""
    told = _everything()
    width = max(map(len, told))
    return "\n".join(f"{code:{width}}  {each.meaning}" for code, each in told.items())
