"""Tests the wheels of this checkout with each Python and torch, in roots of their own.

    python3 tools/matrix.py                             each pair of PAIRS that this commit was not tried with yet
    python3 tools/matrix.py 3.13x2.13.0 --again         this pair, in any case
    python3 tools/matrix.py 3.13x2.15.0 --tests smoke   not the whole suite, but tools/smoke.py
    python3 tools/matrix.py --page                      runs nothing, writes the tables

A root is a folder below --roots for each release of Debian or Ubuntu, made by debootstrap: this needs to be run as
root, on Debian. The wheel of a Python is built on this machine (tools/wheels.py), for the torches of all chosen pairs
with that Python, and what its tests need beside it. A pair gets a new virtual environment in the root, with torch from
PyPI and the wheel, and a copy of this checkout's files for the tests, with the wheel's package in the place of its own.
What a pair showed is kept in docs/versions.json, of which the tables in docs/versions.md and in the README are made; so
a run that was interrupted goes on with what is left.
"""

import argparse
import dataclasses
import datetime
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import wheels
from unpacked_packages import UBUNTU, keyring
from versions import PAIRS, Pair, archive_of

CHECKOUT = Path(__file__).resolve().parent.parent
PAGE = CHECKOUT / "docs" / "versions.md"
README = CHECKOUT / "README.md"
RESULTS = CHECKOUT / "docs" / "versions.json"
BEGIN, END = "<!-- made by make matrix: begin -->", "<!-- made by make matrix: end -->"
HEAD = """\
| Python | torch | release | tests | passed | failed | skipped | commit | date |
|---|---|---|---|--:|--:|--:|---|---|
"""
# python3-dev has the shared library; some tests compile, and train.
INCLUDED = "python3,python3-venv,python3-dev,ca-certificates,git,g++,dataset-fashion-mnist"


@dataclass
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped
        )


class Root:
    """A system of its own, in which the wheel of a pair's Python is tested with the pair's torch."""

    def __init__(
        self, folder: Path, pair: Pair, torches: tuple[str, ...], keep: bool = False
    ) -> None:
        """`torches`: what the wheel is for. `keep`: the environment stays, to look into what failed."""
        self.folder, self.pair, self.torches, self.keep = folder, pair, torches, keep
        self.checkout, self.environment = folder / "checkout", folder / "environment"

    def set_up(self) -> None:
        if not (self.folder / "usr" / "bin" / "python3").exists():
            bootstrap(self.pair.release, self.folder)
        # The network as this machine reaches it.
        for file in ("resolv.conf", "hosts", "pip.conf", "ssl/certs/ca-certificates.crt"):
            if (Path("/etc") / file).exists():
                shutil.copy(Path("/etc") / file, self.folder / "etc" / file)
        self._copy_checkout()

    def _copy_checkout(self) -> None:
        """Its files; install() puts the wheel's package there."""
        shutil.rmtree(self.checkout, ignore_errors=True)
        for name in _output("git", "-C", str(CHECKOUT), "ls-files", "-z").split("\0"):
            if (CHECKOUT / name).is_file() and not name.startswith("torchjanus/"):
                (self.checkout / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(CHECKOUT / name, self.checkout / name)

    @contextmanager
    def mounted(self) -> Iterator[None]:
        """With this machine's devices. The environment is removed at the end: torch brings along CUDA, 5 GB."""
        mounted: list[Path] = []
        try:
            for name in ("proc", "dev"):
                target = self.folder / name
                if not target.is_mount():
                    _run("mount", "--rbind", "--make-rslave", f"/{name}", str(target))
                    mounted.append(target)
            yield
        finally:
            for target in reversed(mounted):
                subprocess.run(["umount", "--lazy", str(target)])
            if not self.keep:
                shutil.rmtree(self.environment, ignore_errors=True)

    def run(self, command: str, must_succeed: bool = True) -> str:
        """The command's output; it is shown while it runs."""
        environment = {
            "PATH": "/environment/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8",
            "CI": "true", "JOBS": str(os.cpu_count()), "TORCHJANUS_BUILD": "/checkout/build",
        }  # fmt: skip
        line = ["chroot", str(self.folder), "bash", "-c", f"cd /checkout && {command}"]
        output = ""
        with subprocess.Popen(
            line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            assert process.stdout is not None
            for text in process.stdout:
                print(f"{self.pair}: {text}", end="", flush=True)
                output += text
        if must_succeed and process.returncode != 0:
            raise RuntimeError(f"{self.pair}: {command}: exit status {process.returncode}")
        return output

    # --- testing ----------------------------------------------------------------------------------

    def test(self) -> Counts:
        self.install(wheel_of(self.pair.python, self.torches))
        if self.pair.tests == "smoke":
            return self.smoke()
        built = self.copy_built()
        return self.programs(built) + self.pytest()

    def install(self, wheel: Path) -> None:
        shutil.copy(wheel, self.checkout)
        packages = f"torch=={self.pair.torch} 'torchjanus[test] @ file:///checkout/{wheel.name}'"
        self.run("python3 -m venv --clear /environment")
        self.run(f"pip install --quiet --no-cache-dir {packages}")
        # What a test runs in this folder has the same package.
        self.run("ln -s /environment/lib/python*/site-packages/torchjanus torchjanus")

    def smoke(self) -> Counts:
        output = self.run("python tools/smoke.py", must_succeed=False)
        found = re.search(r"(\d+) passed, (\d+) failed", output)
        return Counts(int(found[1]), int(found[2])) if found else Counts(failed=1)

    def copy_built(self) -> list[Path]:
        """What tests need beside the wheel, as paths in the checkout's build folder."""
        files = wheels.build_tests(self.pair.python)
        for file in files:
            target = self.checkout / "build" / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(wheels.build_folder(self.pair.python) / file, target)
        return files

    def programs(self, built: list[Path]) -> Counts:
        """The C++ tests that have an interpreter inside. What the others test does not know Python."""
        total = Counts()
        for file in built:
            if file.name.startswith("test_"):
                command = f"TORCHJANUS_LOG=verify build/{file}"
                total += counted(self.run(command, must_succeed=False))
        return total

    def pytest(self) -> Counts:
        result = self.checkout / "build" / "matrix.xml"
        command = "pytest -n $JOBS --dist loadfile -W ignore --junitxml=build/matrix.xml"
        self.run(command, must_succeed=False)
        if not result.exists():
            return Counts(failed=1)
        total = Counts()
        for suite in xml.parse(result).getroot().iter("testsuite"):
            tests, failures, errors, skipped = (
                int(suite.attrib[name]) for name in ("tests", "failures", "errors", "skipped")
            )
            total += Counts(tests - failures - errors - skipped, failures + errors, skipped)
        return total


def bootstrap(release: str, folder: Path) -> None:
    archive = archive_of(release)
    components, script = "main", []
    if archive == UBUNTU:
        # debootstrap of an older Debian does not know the release by name.
        components, script = "main,universe", ["/usr/share/debootstrap/scripts/gutsy"]
    folder.mkdir(parents=True, exist_ok=True)
    _run(
        "debootstrap", "--variant=minbase", f"--keyring={keyring(archive)}",
        f"--components={components}", f"--include={INCLUDED}", release, str(folder), archive, *script,
    )  # fmt: skip


@functools.cache
def wheel_of(python: str, torches: tuple[str, ...]) -> Path:
    return wheels.build(python, list(torches), CHECKOUT / "dist")


def counted(output: str) -> Counts:
    """What a program of GoogleTest says at its end. One that says nothing has failed."""
    passed, skipped, failed = (
        int(found[1]) if (found := re.search(rf"\[  {name} +\] (\d+) test", output)) else 0
        for name in ("PASSED", "SKIPPED", "FAILED")
    )
    return Counts(passed, failed, skipped) if passed + failed else Counts(failed=1)


# --- what was found ---------------------------------------------------------------------------------

Result = dict[str, str | int]


def result_of(pair: Pair, counts: Counts) -> Result:
    return {
        **dataclasses.asdict(pair),
        **dataclasses.asdict(counts),
        "commit": commit(),
        "date": datetime.date.today().isoformat(),
    }


def commit() -> str:
    name = _output("git", "-C", str(CHECKOUT), "rev-parse", "--short=9", "HEAD").strip()
    changed = _output("git", "-C", str(CHECKOUT), "status", "--porcelain", "--untracked-files=no")
    # The files that this command writes itself are no change.
    own = {str(file.relative_to(CHECKOUT)) for file in (PAGE, README, RESULTS)}
    return name if {line[3:] for line in changed.splitlines()} <= own else f"{name}, changed"


def key_of(result: Result) -> tuple[str, ...]:
    return tuple(str(result[name]) for name in ("python", "torch", "release", "tests"))


def order_of(result: Result) -> tuple[list[int], list[int], str]:
    numbers = [[int(part) for part in str(result[each]).split(".")] for each in ("python", "torch")]
    return numbers[0], numbers[1], str(result["tests"])


def kept() -> list[Result]:
    found: list[Result] = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    return found


def keep(new: Result) -> None:
    """In place of the same pair's earlier one with the same tests. A test sees whether the tables are behind, so they
    are written at once: the next pair may run it."""
    others = [each for each in kept() if key_of(each) != key_of(new)]
    lines = ",\n".join(f"  {json.dumps(each)}" for each in sorted([*others, new], key=order_of))
    RESULTS.write_text(f"[\n{lines}\n]\n")
    write_tables()


# --- the tables -----------------------------------------------------------------------------------


def table(results: list[Result]) -> str:
    """All results, one a line."""
    columns = (
        "python",
        "torch",
        "release",
        "tests",
        "passed",
        "failed",
        "skipped",
        "commit",
        "date",
    )
    rows = (" | ".join(str(each[column]) for column in columns) for each in results)
    return HEAD + "".join(f"| {row} |\n" for row in rows)


def grid(results: list[Result]) -> str:
    """A line for each Python and a column for each torch, with the latest result of the pair."""
    latest: dict[tuple[str, str], Result] = {}
    for each in sorted(results, key=lambda each: (each["date"], each["tests"] == "whole")):
        latest[str(each["python"]), _minor(str(each["torch"]))] = each
    pythons, torches = (sorted({pair[i] for pair in latest}, key=_key) for i in (0, 1))
    lines = [["Python", *(f"torch {each}" for each in torches)], ["---"] * (len(torches) + 1)]
    for python in pythons:
        lines.append([python, *(cell(latest.get((python, each))) for each in torches)])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def cell(result: Result | None) -> str:
    if result is None:
        return "not tried"
    failed = f", {result['failed']} failed" if result["failed"] else ""
    return f"{result['tests']}: {result['passed']} passed{failed}, {result['date']}"


def write_tables() -> None:
    results = kept()
    for file, made in ((PAGE, table(results)), (README, grid(results))):
        write_between(file, BEGIN, END, made)


def write_between(file: Path, begin: str, end: str, made: str) -> None:
    """In place of what stands between the two lines."""
    before, rest = file.read_text().split(begin)
    after = rest.split(end)[1]
    file.write_text(f"{before}{begin}\n{made}{end}{after}")


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _key(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


# --- the command ----------------------------------------------------------------------------------


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def chosen(names: list[str], tests: str | None) -> list[Pair]:
    known = {str(pair): pair for pair in PAIRS}
    unknown = set(names) - set(known)
    if unknown:
        raise SystemExit(f"no such pair: {', '.join(unknown)}; there are {', '.join(known)}")
    pairs = [known[name] for name in names] if names else PAIRS
    return [dataclasses.replace(pair, tests=tests or pair.tests) for pair in pairs]


def is_known(pair: Pair, results: list[Result]) -> bool:
    """Whether this commit was tried with the pair, by the same tests."""
    now = (*dataclasses.astuple(pair), commit())
    return any((*key_of(each), each["commit"]) == now for each in results)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pairs", nargs="*", metavar="PYTHONxTORCH", help="default: all of PAIRS")
    parser.add_argument("--roots", type=Path, default=CHECKOUT / "build" / "roots")
    parser.add_argument("--tests", choices=("whole", "smoke"), help="default: as PAIRS says")
    parser.add_argument("--again", action="store_true", help="also what this commit was tried with")
    parser.add_argument("--keep", action="store_true", help="the roots keep their environments")
    parser.add_argument("--page", action="store_true", help="run nothing, write the tables")
    arguments = parser.parse_args()
    if arguments.page:
        write_tables()
        return 0
    failed = 0
    pairs = chosen(arguments.pairs, arguments.tests)
    for pair in pairs:
        if is_known(pair, kept()) and not arguments.again:
            print(f"{pair}: this commit was tried already (--again tries it once more)")
            continue
        torches = tuple(each.torch for each in pairs if each.python == pair.python)
        root = Root(arguments.roots.resolve() / pair.release, pair, torches, arguments.keep)
        root.set_up()
        with root.mounted():
            counts = root.test()
        print(f"{pair}: {counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped")
        keep(result_of(pair, counts))
        failed += counts.failed
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
