"""Checks how the files of src/ include each other; `make lint` runs it.

usage: check_includes.py [--checkout FOLDER]

A unit is a header and the source file of the same name. Two rules hold:

- No include cycle has more than two units. Where units include each other in a circle, none of them can be
  read, tested or changed alone.
- No include runs up between rooms. CMakeLists.txt says by `janus_room(name KNOWS others)` which rooms a room
  may include; what those know, it knows too. `janus_rooms(folder a b KNOWS others)` states the rooms folder/a
  and folder/b, of which each knows those before it, and the room of the folder itself, which knows them all.
  The linker doesn't see it if a file breaks this rule by a header.

The command prints the figures, and the shortest cycle or the line of every violation.
"""

import argparse
import re
import sys
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

LARGEST_CYCLE = 2  # units: two that belong together may know each other
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
COMMAND = re.compile(r"^\s*(janus_rooms?)\s*\(([^)]*)\)", re.MULTILINE)

Arrows = Mapping[str, Iterable[str]]


@dataclass(frozen=True)
class Include:
    """One line of a file that includes a file of src/. Paths are relative to src/."""

    file: str
    line: int
    target: str

    def __str__(self) -> str:
        return f"src/{self.file}:{self.line} includes {self.target}"


def unit_of(file: str) -> str:
    """The unit that a header or source file belongs to: its path without the suffix."""
    return file.rsplit(".", 1)[0]


@dataclass
class Sources:
    """The files of src/, and the lines by which they include each other."""

    files: set[str]
    includes: list[Include]

    @classmethod
    def read(cls, folder: Path) -> "Sources":
        texts = {
            str(path.relative_to(folder)): path.read_text()
            for path in sorted(folder.rglob("*"))
            if path.suffix in (".h", ".cpp")
        }
        includes = [
            Include(file, text.count("\n", 0, match.start(1)) + 1, match[1])
            for file, text in texts.items()
            for match in INCLUDE.finditer(text)
            if match[1] in texts
        ]
        return cls(set(texts), includes)

    def arrows(self) -> dict[str, dict[str, Include]]:
        """For every unit: the other units that it includes, each with the first line that does."""
        result: dict[str, dict[str, Include]] = {unit_of(file): {} for file in self.files}
        for include in self.includes:
            unit, target = unit_of(include.file), unit_of(include.target)
            if unit != target:
                result[unit].setdefault(target, include)
        return result


# --- cycles ---------------------------------------------------------------------------------------------
def components(arrows: Arrows) -> list[list[str]]:
    """The strongly connected components (Tarjan 1972), each sorted, the largest first."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_units: list[str] = []
    is_open: set[str] = set()
    result: list[list[str]] = []

    def enter(unit: str) -> tuple[str, Iterable[str]]:
        number[unit] = lowest[unit] = len(number)
        open_units.append(unit)
        is_open.add(unit)
        return unit, iter(arrows.get(unit, ()))

    def close(unit: str) -> None:
        component: list[str] = []
        while not component or component[-1] != unit:
            component.append(open_units.pop())
            is_open.discard(component[-1])
        result.append(sorted(component))

    for start in sorted(arrows):
        path = [enter(start)] if start not in number else []
        while path:
            unit, targets = path[-1]
            for target in targets:
                if target not in number:
                    path.append(enter(target))
                    break
                if target in is_open:
                    lowest[unit] = min(lowest[unit], number[target])
            else:
                path.pop()
                if path:
                    lowest[path[-1][0]] = min(lowest[path[-1][0]], lowest[unit])
                if lowest[unit] == number[unit]:
                    close(unit)
    return sorted(result, key=lambda each: (-len(each), each))


def cycle_through(arrows: Arrows, start: str, within: set[str]) -> list[str]:
    """The shortest cycle that starts and ends at a unit of a component."""
    previous = {start: start}
    queue = deque([start])
    while queue:
        unit = queue.popleft()
        for target in sorted(arrows[unit]):
            if target == start:
                path = [start, unit]
                while path[-1] != start:
                    path.append(previous[path[-1]])
                return path[::-1]
            if target in within and target not in previous:
                previous[target] = unit
                queue.append(target)
    raise ValueError(f"{start} is on no cycle")


def shortest_cycle(arrows: Arrows, component: list[str]) -> list[str]:
    """The shortest cycle of a component; its first unit is repeated at its end."""
    within = set(component)
    return min((cycle_through(arrows, unit, within) for unit in component), key=len)


# --- rooms ----------------------------------------------------------------------------------------------
@dataclass
class Rooms:
    """Which rooms there are, and which other rooms each may include, directly or through others."""

    knows: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    @classmethod
    def read(cls, checkout: Path) -> "Rooms":
        """The rooms that CMakeLists.txt states."""
        rooms = cls()
        text = re.sub(r"#.*", "", (checkout / "CMakeLists.txt").read_text())
        for command, arguments in COMMAND.findall(text):
            words = arguments.split()
            if command == "janus_room":
                rooms._add(words)
            else:
                rooms._add_folder(words)
        rooms._resolve()
        return rooms

    def _add(self, words: list[str]) -> None:
        """Adds `name OPTIONS KNOWS others`."""
        known = words[words.index("KNOWS") + 1 :] if "KNOWS" in words else []
        self.knows[words[0]].update(known)

    def _add_folder(self, words: list[str]) -> None:
        """Adds `folder a b KNOWS others`."""
        end = words.index("KNOWS") if "KNOWS" in words else len(words)
        known = words[end + 1 :]
        for word in words[1:end]:
            name = f"{words[0]}/{word}"
            self._add([name, "KNOWS", *known])
            known.append(name)
        self._add([words[0], "KNOWS", *known])

    def _resolve(self) -> None:
        """Adds what the known rooms know."""
        for name, known in self.knows.items():
            if unknown := sorted(known - self.knows.keys()):
                raise SystemExit(f"the room {name} KNOWS {unknown[0]}, which is no room")
        grew = True
        while grew:
            grew = False
            for known in self.knows.values():
                more = set().union(*(self.knows[other] for other in known)) - known
                known |= more
                grew |= bool(more)

    def of(self, file: str) -> str | None:
        """The innermost room whose folder has the file."""
        folder = file
        while "/" in folder:
            folder = folder.rsplit("/", 1)[0]
            if folder in self.knows:
                return folder
        return None

    def runs_up(self, include: Include) -> bool:
        room, target = self.of(include.file), self.of(include.target)
        return room is not None and target is not None and target not in self.knows[room] | {room}


# --- the check ------------------------------------------------------------------------------------------
@dataclass
class Findings:
    """What the check found. `violations` has a paragraph for each broken rule."""

    units: int
    arrows: int
    cycles: list[list[str]]
    upward: list[Include]
    violations: list[str]

    def figures(self) -> str:
        """One line for people and for the log of continuous integration."""
        large = [str(len(cycle)) for cycle in self.cycles if len(cycle) > LARGEST_CYCLE]
        sizes = f" ({', '.join(large)} units)" if large else ""
        return (
            f"includes: {self.units} units, {self.arrows} arrows, "
            f"{len(self.cycles) - len(large)} cycles of two units, {len(large)} larger{sizes}, "
            f"{len(self.upward)} upward arrows"
        )


def describe_cycle(arrows: Mapping[str, Mapping[str, Include]], component: list[str]) -> str:
    cycle = shortest_cycle(arrows, component)
    lines = [
        f"{len(component)} units include each other: {' '.join(component)}",
        "  the shortest cycle:",
    ]
    lines += [f"    {arrows[unit][target]}" for unit, target in pairwise(cycle)]
    return "\n".join(lines)


def check(checkout: Path) -> Findings:
    """Checks the files of a checkout."""
    sources, rooms = Sources.read(checkout / "src"), Rooms.read(checkout)
    arrows = sources.arrows()
    cycles = [each for each in components(arrows) if len(each) > 1]
    upward = [include for include in sources.includes if rooms.runs_up(include)]
    violations = [describe_cycle(arrows, cycle) for cycle in cycles if len(cycle) > LARGEST_CYCLE]
    violations += [
        f"{include}, but {rooms.of(include.file)} does not know {rooms.of(include.target)}"
        for include in upward
    ]
    violations += [
        f"the room {name} knows itself" for name in rooms.knows if name in rooms.knows[name]
    ]
    violations += [
        f"src/{file} is in no room" for file in sorted(sources.files) if rooms.of(file) is None
    ]
    return Findings(len(arrows), sum(map(len, arrows.values())), cycles, upward, violations)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--checkout", type=Path, default=Path(__file__).resolve().parent.parent)
    findings = check(parser.parse_args().checkout)
    for violation in findings.violations:
        print(violation, file=sys.stderr)
    print(findings.figures())
    return 1 if findings.violations else 0


if __name__ == "__main__":
    raise SystemExit(main())
