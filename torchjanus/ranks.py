"""Several processes of one program, its ranks, as `torchrun` and other launchers start them."""

import os
from pathlib import Path


def _place() -> tuple[int, int] | None:
    """This process's rank, and how many there are; None: it is the only one."""
    rank, size = (os.environ.get(name, "") for name in ("RANK", "WORLD_SIZE"))
    if not (rank.isdecimal() and size.isdecimal()) or int(size) < 2:
        return None
    return int(rank), int(size)


def own_file(file: Path) -> Path:
    """`s.json`, or in a process of several `s.rank1.json`: no two ranks write the same file."""
    place = _place()
    return file if place is None else file.with_name(f"{file.stem}.rank{place[0]}{file.suffix}")


def headline() -> str:
    """What stands above a report, so that those of several ranks can be told apart."""
    place = _place()
    return "" if place is None else f"torchjanus: rank {place[0]} of {place[1]}\n"
