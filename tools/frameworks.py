"""Runs the programs of tests/frameworks eagerly and under `torchjanus run`, and compares them.

    python tools/frameworks.py [PROGRAM…] [--rounds N] [--times N… | --seconds N…] [--again] [--jobs N]
                               [--output FOLDER] [--page]

Each round runs each program twice, one after the other: as `python PROGRAM` and as `torchjanus run PROGRAM`, each
in a process of its own with one thread. What they print must be equal, line by line. Of several rounds the first
converted run, which finds no compiled kernels on disk, is left out of the figures. `--times 1 5` runs each program
in its own length and five times as long: its only argument is the count of its steps or epochs. `--seconds 10 60`
gives it that many steps or epochs that it takes about that long eagerly, imports included. `--again`: the first length
is run converted once more, with what the run before has kept on disk. `--jobs`: programs that run at once, on a core
each. Writes frameworks.json; `--page` makes docs/frameworks.md of it.
"""

import argparse
import concurrent.futures
import dataclasses
import functools
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))
import record  # noqa: E402

PROGRAMS = ROOT / "tests" / "frameworks" / "programs"
PAGE = ROOT / "docs" / "frameworks.md"
PACKAGES = (
    "transformers", "accelerate", "lightning", "timm", "torchvision", "torch-geometric", "stable-baselines3",
    "gymnasium", "torchmetrics", "tqdm", "numpy",
)  # fmt: skip
LENGTH = re.compile(
    r"^[A-Z]+ = int\(sys\.argv\[1\]\) if len\(sys\.argv\) > 1 else (\d+)$", re.MULTILINE
)
NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:e[-+]?\d+)?|nan|inf", re.IGNORECASE)
TOLERANCE = 1e-3  # of a number that is not exactly equal: relative, or absolute below 1
LIMIT = 900  # seconds that a program may take


@dataclass
class Run:
    """One process: what it printed, and the seconds it took."""

    lines: list[str]
    errors: str
    code: int
    wall: float
    processor: float
    stats: dict[str, Any] | None = None


def environment(cache: Path) -> dict[str, str]:
    """The environment of both: one thread, nothing from the network, and a cache of this run's own.

    The checkout's modules are compiled once, as pip compiles those of installed packages.
    """
    one = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    quiet = {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1", "PYTHONHASHSEED": "0"}
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, **one, **quiet, "TORCHJANUS_CACHE": str(cache)}


def length(program: Path) -> int:
    """How many steps or epochs it makes if it is given no argument."""
    found = LENGTH.search(program.read_text())
    if found is None:
        raise ValueError(
            f"{program}: no line 'STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else …'"
        )
    return int(found.group(1))


@dataclass(frozen=True)
class Length:
    """How long a program runs, and how the table calls that."""

    name: str
    times: int | None = None
    seconds: float | None = None
    again: bool = False  # whether a second converted run follows, for which the first has kept what it found out

    @property
    def columns(self) -> list[str]:
        """The names of its columns."""
        return [self.name, *([f"{self.name}, again"] if self.again else [])]

    def count(self, program: Path) -> int | None:
        """The program's argument; None: its own length."""
        if self.seconds is not None:
            return count_for(program, self.seconds)
        if self.times is None or self.times == 1:
            return None
        return self.times * length(program)


@functools.cache
def _seconds_by_count(program: Path) -> tuple[float, float]:
    """The seconds that the program takes in any case, and those of each step or epoch: of two eager runs."""
    own, apart = length(program), 4
    with tempfile.TemporaryDirectory() as cache:
        short, long = (
            run(program, Path(cache), converted=False, count=count).processor
            for count in (own, apart * own)
        )
    each = max(long - short, 0.01) / ((apart - 1) * own)
    return short - each * own, each


def count_for(program: Path, seconds: float) -> int:
    """How many steps or epochs take so long eagerly; never fewer than the program has by itself."""
    fixed, each = _seconds_by_count(program)
    return max(length(program), round((seconds - fixed) / each))


def run(program: Path, cache: Path, *, converted: bool, count: int | None = None) -> Run:
    """The program in a process of its own; it is told its length only if that is not what it has by itself."""
    arguments = [] if count is None else [str(count)]
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryFile("w+") as output,
        tempfile.TemporaryFile("w+") as errors,
    ):
        stats = Path(folder) / "stats.json"
        how = ["-m", "torchjanus", "run", "--stats", str(stats)] if converted else []
        start = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, *how, str(program), *arguments], stdout=output, stderr=errors, cwd=folder,
            env=environment(cache),
        )  # fmt: skip
        limit = threading.Timer(LIMIT, process.kill)
        limit.start()
        _, status, usage = os.wait4(process.pid, 0)  # of this child alone, and those it waited for
        limit.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - start
        found = json.loads(stats.read_text()) if stats.exists() else None
        for each in (output, errors):
            each.seek(0)
        return Run(
            output.read().splitlines(), errors.read(), process.returncode, wall,
            usage.ru_utime + usage.ru_stime, found,
        )  # fmt: skip


def difference(eager: Sequence[str], converted: Sequence[str]) -> tuple[str, str]:
    """`equal`, `close` (numbers differ by at most TOLERANCE) or `differs`; and the worst pair of lines."""
    if list(eager) == list(converted):
        return "equal", ""
    if len(eager) != len(converted):
        return "differs", f"{len(eager)} lines eagerly, {len(converted)} converted"
    worst, shown = 0.0, ""
    for left, right in zip(eager, converted, strict=True):
        apart = _apart(left, right)
        if apart > worst:
            worst, shown = apart, f"{left!r} / {right!r}"
    return ("close" if worst <= TOLERANCE else "differs"), f"{worst:.1e}: {shown}"


def _apart(left: str, right: str) -> float:
    """By how much the numbers of two lines differ; infinite if their words do."""
    if NUMBER.sub("#", left) != NUMBER.sub("#", right):
        return float("inf")
    pairs = zip(NUMBER.findall(left), NUMBER.findall(right), strict=True)
    return max((_distance(a, b) for a, b in pairs if a != b), default=0.0)


def _distance(left: str, right: str) -> float:
    a, b = float(left), float(right)
    return abs(a - b) / max(1.0, abs(a), abs(b)) if a == a and b == b else float("inf")


def leaves(function: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The parts that may run as graphs: the whole, or the parts of a cut one."""
    for part in function.get("parts", ()):
        yield from leaves(part)
    if "parts" not in function:
        yield function


def cuts(function: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from function.get("cuts", ())
    for part in function.get("parts", ()):
        yield from cuts(part)


def conversion(stats: Mapping[str, Any] | None) -> dict[str, Any]:
    """What the statistics say about the program's steps: of the costliest region or function, and why not more.

    `share` is the part of its runs that were graphs; where it is cut, of its leaf that was a graph most often, times
    the part of the run's milliseconds that were not spent on the cut statements.
    """
    functions = [each for each in (stats or {}).get("functions", ()) if _runs(each)]
    if not functions:
        return {"regions": 0, "runs": 0, "share": 0.0, "pieces": 0, "cuts": 0, "reasons": []}
    main = max(functions, key=_milliseconds_in_python)
    runs = _runs(main)
    found = list(leaves(main))
    share = max(each["hits"] for each in found) / runs
    in_python = sum(_in_python(each)["milliseconds"] for each in cuts(main))
    as_graph = sum(each.get("as_graph", {"milliseconds": 0})["milliseconds"] for each in found)
    if in_python + as_graph:
        share *= as_graph / (as_graph + in_python)
    return {
        "regions": len(functions),
        "runs": runs,
        "share": min(share, 1.0),
        "pieces": sum(each["state"] == "graph" for each in found),
        "cuts": len(list(cuts(main))),
        "reasons": [reason for each in functions for reason in _reasons(each)],
    }


def _milliseconds_in_python(function: Mapping[str, Any]) -> float:
    """What all its runs would take in Python, by the profiled ones."""
    profiled = function["milliseconds"]["profiling"] / min(max(function["calls"], 1), 3)
    return profiled * _runs(function)


def _in_python(cut: Mapping[str, Any]) -> Mapping[str, float]:
    """Runs and milliseconds of the statement that a cut leaves to Python; there are none before the first run."""
    return cut.get("in_python", {"runs": 0, "milliseconds": 0.0})


def _runs(function: Mapping[str, Any]) -> int:
    of_cuts = [_in_python(each)["runs"] for each in cuts(function)]
    return max([function["calls"], *of_cuts, *(each["calls"] for each in leaves(function))])


def _reasons(function: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Code, sentence and place of what keeps statements out of graphs, and milliseconds they took in Python."""
    for cut in cuts(function):
        milliseconds = _in_python(cut)["milliseconds"]
        yield _reason({**cut, **cut["reason"]}, milliseconds)
    for each in leaves(function):
        for reason in each["reasons"]:
            if reason["code"] != "no_tensor_work":
                yield _reason(reason, None)


def _reason(found: Mapping[str, Any], milliseconds: float | None) -> dict[str, Any]:
    place = re.sub(r"^.*/(site-packages|python3\.\d+|programs)/", "", found["file"])
    return {
        "code": found["code"],
        "sentence": found["sentence"],
        "place": f"{place}:{found['line']}",
        "count": found.get("count"),
        "milliseconds": milliseconds,
    }


def measure(program: Path, rounds: int, lengths: Sequence[Length]) -> dict[str, Any]:
    """A program's row of the table: its figures by length, and what its longest run says of its steps."""
    row: dict[str, Any] = {"title": _title(program), "lengths": {}}
    for each_length in lengths:
        count = each_length.count(program)
        with tempfile.TemporaryDirectory() as cache:
            pairs = []
            for _ in range(rounds):
                eager, converted = (
                    run(program, Path(cache), converted=each, count=count) for each in (False, True)
                )
                pairs.append((eager, converted))
            row["lengths"][each_length.name] = {"count": count, **_figures(pairs)}
            row.update(conversion(pairs[-1][1].stats))
            if each_length.again:
                second = run(program, Path(cache), converted=True, count=count)
                row["lengths"][each_length.columns[1]] = _figures([(pairs[-1][0], second)])
    return row


def _figures(pairs: Sequence[tuple[Run, Run]]) -> dict[str, Any]:
    """Seconds of eager and converted runs, and whether they printed the same."""
    warm = pairs[1:] or pairs
    found: dict[str, Any] = {
        name: {
            "processor": _middle(each[place].processor for each in warm),
            "wall": _middle(each[place].wall for each in warm),
        }
        for place, name in enumerate(("eager", "converted"))
    }
    results = [difference(eager.lines, converted.lines) for eager, converted in pairs]
    if any(eager.lines != pairs[0][0].lines for eager, _ in pairs):
        results.append(("unsteady", "two eager runs differ"))
    order = ("equal", "close", "differs", "unsteady")
    found["output"], found["difference"] = max(results, key=lambda each: order.index(each[0]))
    failed = [each for pair in pairs for each in pair if each.code]
    if failed:
        found["output"], found["difference"] = "failed", failed[0].errors.splitlines()[-1]
    errors = (line for _, converted in pairs for line in converted.errors.splitlines())
    found["internal_errors"] = sorted({line for line in errors if "internal error" in line})
    found["seconds_until_first_graph"] = (warm[-1][1].stats or {}).get("seconds_until_first_graph")
    return found


def _middle(values: Iterator[float]) -> float:
    found = sorted(values)
    return (found[(len(found) - 1) // 2] + found[len(found) // 2]) / 2


def _title(program: Path) -> str:
    return program.read_text().split('"""')[1].split("\n")[0].rstrip(".")


def about(rounds: int, lengths: Sequence[Length], jobs: int) -> dict[str, Any]:
    found = {
        **record.about(rounds),
        "threads": 1,
        "lengths": [column for each in lengths for column in each.columns],
        "jobs": jobs,
        "packages": {},
    }
    for package in PACKAGES:
        found["packages"][package] = importlib.metadata.version(package)
    return found


def speed(row: Mapping[str, Any], length: str) -> float:
    found = row["lengths"][length]
    return found["eager"]["processor"] / found["converted"]["processor"]


def table(rows: Mapping[str, Mapping[str, Any]], lengths: Sequence[str]) -> str:
    heads = "".join(f" {length}: eager s | converted s | speed |" for length in lengths)
    lines = [
        f"| program |{heads} in graphs | graphs | cuts | output |",
        f"|---|{'--:|--:|--:|' * len(lengths)}--:|--:|--:|---|",
    ]
    for name, row in rows.items():
        seconds = "".join(
            f" {found['eager']['processor']:.1f} | {found['converted']['processor']:.1f} | "
            f"{speed(row, length):.2f} × |"
            for length, found in row["lengths"].items()
        )
        lines.append(
            f"| [{name}](../tests/frameworks/programs/{name}.py) |{seconds} {row['share']:.0%} | {row['pieces']} | "
            f"{row['cuts']} | {_output(row)} |"
        )
    return "\n".join(lines)


def _output(row: Mapping[str, Any]) -> str:
    order = ("equal", "close", "differs", "unsteady", "failed")
    return max((each["output"] for each in row["lengths"].values()), key=order.index)


def totals(rows: Mapping[str, Mapping[str, Any]], lengths: Sequence[str]) -> str:
    """One sentence a length, and one on how much ran as graphs."""
    mostly = sum(row["share"] >= 0.9 for row in rows.values())
    lines = [f"Of {len(rows)} programs {mostly} have 90 % of their steps in graphs."]
    for length in lengths:
        found = sorted(speed(row, length) for row in rows.values())
        slower = sum(each < 1 / 1.03 for each in found)
        lines.append(
            f"{length}: median {found[len(found) // 2]:.2f} × eager's speed, "
            f"from {found[0]:.2f} to {found[-1]:.2f}; {slower} take more than 1.03 × eager's time."
        )
    return "\n".join(lines)


def page(found: Mapping[str, Any]) -> str:
    about = found["about"]
    versions = ", ".join(f"{name} {version}" for name, version in about["packages"].items())
    return f"""# Programs that are built on packages

Made by `make bench-frameworks`: programs as users of these packages write them, unmodified, under `torchjanus run`,
beside the same programs under `python`. Seconds are the processor's, for the whole program: imports, warm-up and
compilation included, with no compiled kernels on disk. Each program has about as many steps or epochs as take the
time at the head of the column eagerly. *Again*: the next run, which knows what the one before has found out and finds
its kernels. *In graphs*: the share of the steps, or where they are cut, of the time of
those. *Output*: whether every printed loss, metric and sum of parameters is the same; *close*: to {TOLERANCE:g}. Long
trainings can differ more: they amplify the rounding of float32.

{table(found["rows"], about["lengths"])}

{totals(found["rows"], about["lengths"])}

{about["machine"]} ({about["instructions"]}), {about["cores"]} cores, one thread, {about["jobs"]} programs at once, load
{about["load"]} at the start; torch {about["torch"]}, {versions}; Python {about["python"]}, torchjanus
{about["torchjanus"]} at {about["commit"]}; {about["date"]}; rounds: {about["rounds"]}.
"""


def summary(name: str, row: Mapping[str, Any]) -> str:
    figures = "".join(
        f" {found['eager']['processor']:6.2f} {found['converted']['processor']:6.2f} {speed(row, length):5.2f} ×"
        for length, found in row["lengths"].items()
    )
    worst = max(row["lengths"].values(), key=lambda each: each["output"] != "equal")
    errors = [line for each in row["lengths"].values() for line in each["internal_errors"]]
    return (
        f"{name:36}{figures} {row['share']:5.0%} of {row['runs']:5} in {row['pieces']} graphs, {row['cuts']} cuts; "
        f"{_output(row)} {worst['difference']} {errors or ''}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "programs", nargs="*", help="names in tests/frameworks/programs; all by default"
    )
    parser.add_argument("--rounds", type=int, default=1)
    lengths = parser.add_mutually_exclusive_group()
    lengths.add_argument(
        "--times",
        type=int,
        nargs="+",
        default=[1],
        help="in lengths that each program has by itself",
    )
    lengths.add_argument(
        "--seconds", type=int, nargs="+", help="that each program takes eagerly, about"
    )
    parser.add_argument(
        "--again",
        action="store_true",
        help="the first length once more, after what was kept on disk",
    )
    parser.add_argument("--jobs", type=int, default=1, help="programs that run at once")
    parser.add_argument(
        "--page", action="store_true", help="make docs/frameworks.md of the results"
    )
    record.add_output(parser)
    options = parser.parse_args()
    names = options.programs or sorted(each.stem for each in PROGRAMS.glob("*.py"))
    measured_lengths = (
        [Length(f"× {each}", times=each) for each in options.times]
        if options.seconds is None
        else [Length(f"{each} s", seconds=each) for each in options.seconds]
    )
    measured_lengths[0] = dataclasses.replace(measured_lengths[0], again=options.again)
    of_run, rows = about(options.rounds, measured_lengths, options.jobs), {}

    def measured(name: str) -> tuple[str, dict[str, Any]]:
        return name, measure(PROGRAMS / f"{name}.py", options.rounds, measured_lengths)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for name, row in pool.map(measured, names):
            rows[name] = row
            print(summary(name, row), flush=True)
            record.write(options.output, "frameworks", of_run, rows)
    if options.page:
        PAGE.write_text(page({"about": of_run, "rows": rows}))


if __name__ == "__main__":
    main()
