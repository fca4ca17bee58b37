"""Golden files of the front end: small programs of tests/programs and, beside each, the graphs it becomes.

    python tests/python/harness/golden_programs.py             show what differs
    python tests/python/harness/golden_programs.py --update    take what the front end gives now; then review the diff

A program `SUBJECT/NAME.py` is ordinary PyTorch. It defines

    step       the function to convert
    CALLS      the calls of it: tuples of arguments, and functions without parameters that run between calls
    WATCHED    objects whose state has to agree with eager's; may be left out

It is run anew, from the same seed, for each of the two runs that are compared. Its golden file `SUBJECT/NAME.ir`
has all that the generator gave, in order: the graph before any pass, where its inputs come from, what is done with
its results, what is assumed, and refusals with their reasons. All but the graphs are comments, so that a part of the
file can be given to janus-opt.
"""

from __future__ import annotations

import argparse
import difflib
import itertools
import linecache
import sys
import warnings
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from differential import Observed, Program, compare, default_dtype, observe, seeded

import torch
from torchjanus import _core, text_report

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = ROOT / "tests" / "programs"
TOLERANCE = 1e-10
HOW_TO_UPDATE = "If this is meant: make golden, and review the differences."


def all_programs() -> list[Path]:
    return sorted(PROGRAMS.rglob("*.py"))


def _name(path: Path) -> str:
    """The same in each checkout."""
    return path.relative_to(ROOT).as_posix()


def golden_of(program: Path) -> Path:
    return program.with_suffix(".ir")


def run_program(program: Path) -> tuple[str, Observed, Observed]:
    """The text of what the front end gave, and what the eager and the converted run showed."""
    made: dict[str, list[int]] = {}
    with default_dtype(torch.float64), warnings.catch_warnings():
        # The graph of a warning assumes what the filters are.
        warnings.resetwarnings()
        eager = observe(seeded(lambda: _load(program, {}), {}), converted=False)
        _core.testing.record_generated()
        _core.testing.take_generated()
        ours = observe(seeded(lambda: _load(program, made), {}), converted=True)
    sections = [
        f"// In call {', '.join(map(str, dict.fromkeys(calls)))}:\n{text}"
        for text, calls in made.items()
    ]
    head = f"// What the front end makes of {_name(program)}. Written by `make golden`.\n"
    return "\n".join([head, *sections, _outcome(ours.stats)]), eager, ours


def compare_runs(eager: Observed, ours: Observed) -> None:
    for index, (one, other) in enumerate(zip(eager.steps, ours.steps, strict=True)):
        compare(one, other, f"after call {index}", TOLERANCE)


def difference(program: Path, text: str) -> str:
    """A unified diff from the golden file; empty: as expected."""
    golden = golden_of(program)
    expected = golden.read_text() if golden.exists() else ""
    return "".join(
        difflib.unified_diff(
            expected.splitlines(True),
            text.splitlines(True),
            _name(golden),
            "what the front end makes now",
        )
    )


def _load(program: Path, made: dict[str, list[int]]) -> Program:
    """The program. Behind each of its calls what was generated in it is put down, with the call's number."""
    module = ModuleType(f"{program.parent.name}.{program.stem}")
    sys.modules[module.__name__] = module  # dataclasses look there
    names = vars(module)
    text, file = program.read_text(), _name(program)
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    exec(compile(text, file, "exec"), names)
    calls: list[Any] = []
    numbers = itertools.count(1)

    def put_down() -> None:
        number = next(numbers)
        for text in map(_text, _core.testing.take_generated()):
            made.setdefault(text, []).append(number)

    for each in names["CALLS"]:
        calls += [each] if callable(each) else [each, put_down]
    return Program(names["step"], calls, watch=names.get("WATCHED", ()))


# --- text -----------------------------------------------------------------------------------------


def _text(made: dict[str, Any]) -> str:
    return "\n".join(_refusal(made) if "code" in made else _graph(made)) + "\n"


def _outcome(stats: dict[str, Any]) -> str:
    """How the calls ran, and why some did not run as graphs."""
    counts = ", ".join(f"{stats[each]} {each}" for each in ("calls", "hits", "misses", "aborts"))
    lines = [f"In the end: {stats['state']}; {counts}"]
    for reason in stats["reasons"]:
        lines.append(f"[{reason['code']}] {reason['sentence']} ×{reason['count']}")
    return "".join(f"// {line}\n" for line in lines)


def _refusal(made: dict[str, Any]) -> list[str]:
    return [f"// refused: [{made['code']}] {made['sentence']} | {_line(made) or 'in a library'}"]


def _graph(made: dict[str, Any]) -> list[str]:
    lines = [
        *made["connections"],
        *_notes(made["notes"]),
        *(f"assumes {line}" for line in text_report.grouped(made["assumptions"])),
    ]
    return [made["graph"].rstrip(), *(f"// {line}" for line in lines)]


def _notes(notes: list[dict[str, Any]]) -> Iterable[str]:
    """What was done with each line of the program."""
    by_line: dict[str, Counter[str]] = {}
    for note in notes:
        by_line.setdefault(_line(note), Counter())[note["note"]] += 1
    for line, counts in by_line.items():
        told = [f"{note} ×{count}" if count > 1 else note for note, count in counts.items()]
        yield f"{', '.join(told)} | {line or 'in a library'}"


def _line(span: dict[str, Any]) -> str:
    """The line's text, since its number changes with each line before it; nothing of a library's."""
    if not span["file"].startswith(_name(PROGRAMS)):
        return ""
    return linecache.getline(span["file"], span["line"]).strip()


# --- the command ----------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="rewrite the files that differ")
    parser.add_argument("files", nargs="*", type=Path, help="default: all of tests/programs")
    arguments = parser.parse_args()
    _core.testing.let_times_decide(False)
    failed = 0
    for program in [file.resolve() for file in arguments.files] or all_programs():
        text, eager, ours = run_program(program)
        try:
            compare_runs(eager, ours)
        except AssertionError as error:
            print(f"{_name(program)}: not what eager gives: {error}")
            failed += 1
        if found := difference(program, text):
            if arguments.update:
                golden_of(program).write_text(text)
                print("updated", _name(golden_of(program)))
            else:
                print(found, end="")
                failed += 1
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
