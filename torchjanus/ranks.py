"""Several processes of one program, its ranks, as `torchrun` and other launchers start them."""

import os
from pathlib import Path


def _place() -> tuple[int, int] | None:
    """This process's rank, and how many there are; None: it is the only one."""
    if not are_launched() or int(os.environ["WORLD_SIZE"]) < 2:
        return None
    return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def are_launched() -> bool:
    """Whether a launcher has said which rank this process is."""
    return all(os.environ.get(name, "").isdecimal() for name in ("RANK", "WORLD_SIZE"))


def is_alone() -> bool:
    """Whether this process is the only one of its program."""
    return _place() is None


def is_first() -> bool:
    """Whether it is rank 0, or the only one."""
    place = _place()
    return place is None or place[0] == 0


def own_file(file: Path) -> Path:
    """`s.json`, or in a process of several `s.rank1.json`: no two ranks write the same file."""
    place = _place()
    return file if place is None else file.with_name(f"{file.stem}.rank{place[0]}{file.suffix}")


def headline() -> str:
    """What stands above a report, so that those of several ranks can be told apart."""
    place = _place()
    return "" if place is None else f"torchjanus: rank {place[0]} of {place[1]}\n"
