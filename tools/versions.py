"""The versions of Python and torch that wheels are built for and that the matrix tries, and the releases of Debian and
Ubuntu that have these Pythons."""

from dataclasses import dataclass

from unpacked_packages import DEBIAN, UBUNTU

# Each Python's release.
PYTHONS = {"3.11": "bookworm", "3.12": "noble", "3.13": "trixie", "3.14": "sid"}
TORCHES = ["2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0"]
# Where the whole suite is run; elsewhere it is tools/smoke.py.
WHOLE = {("3.11", "2.13.0"), ("3.13", "2.15.0"), ("3.14", "2.15.0")}
UBUNTUS = ("noble",)


@dataclass(frozen=True)
class Pair:
    python: str
    torch: str
    release: str
    tests: str

    def __str__(self) -> str:
        return f"{self.python}x{self.torch}"


PAIRS = [
    Pair(python, torch, release, "whole" if (python, torch) in WHOLE else "smoke")
    for python, release in PYTHONS.items()
    for torch in TORCHES
]


def library_of(python: str) -> str:
    """The package with its shared library. Ubuntu's is named for times of 64 bits."""
    return f"libpython{python}" + ("t64" if PYTHONS[python] in UBUNTUS else "")


def archive_of(release: str) -> str:
    return UBUNTU if release in UBUNTUS else DEBIAN
