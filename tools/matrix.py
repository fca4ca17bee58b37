"""Builds and tests torchjanus with other versions of Python and torch, in roots of their own.

    python3 tools/matrix.py                             each pair of PAIRS that this commit was not tried with yet
    python3 tools/matrix.py 3.13x2.13.0 --again         this pair, in any case
    python3 tools/matrix.py 3.13x2.13.0 --tests smoke   not the whole suite, but tools/smoke.py
    python3 tools/matrix.py --page                      runs nothing, writes the tables

A root is a folder below --roots for each release of Debian or Ubuntu, made by debootstrap: this needs to be run as
root, on Debian. The files of this checkout are copied to it, once for each torch and changed ones only, and
`make build` and the tests run there as on any machine. So a run that was interrupted goes on where it was. What a
pair showed is kept in docs/versions.json, of which the tables in docs/versions.md and in the README are made.
"""

import argparse
import dataclasses
import datetime
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

from unpacked_packages import DEBIAN, UBUNTU, keyring

CHECKOUT = Path(__file__).resolve().parent.parent
PAGE = CHECKOUT / "docs" / "versions.md"
README = CHECKOUT / "README.md"
RESULTS = CHECKOUT / "docs" / "versions.json"
BEGIN, END = "<!-- made by make matrix: begin -->", "<!-- made by make matrix: end -->"
HEAD = """\
| Python | torch | release | tests | passed | failed | skipped | commit | date |
|---|---|---|---|--:|--:|--:|---|---|
"""
INCLUDED = "python3,python3-venv,python3-dev,ca-certificates,make,git,procps"


@dataclass(frozen=True)
class Distribution:
    mirror: str
    components: tuple[str, ...] = ("main",)
    suites: tuple[str, ...] = ("{release}",)
    script: str = ""  # debootstrap's, for releases that it does not know

    def set_up(self, release: str, folder: Path) -> None:
        script = [f"/usr/share/debootstrap/scripts/{self.script}"] if self.script else []
        _run(
            "debootstrap", "--variant=minbase", f"--keyring={keyring(self.mirror)}",
            f"--components={','.join(self.components)}", f"--include={INCLUDED}",
            release, str(folder), self.mirror, *script,
        )  # fmt: skip
        suites = (suite.format(release=release) for suite in self.suites)
        lines = (f"deb {self.mirror} {each} {' '.join(self.components)}\n" for each in suites)
        (folder / "etc" / "apt" / "sources.list").write_text("".join(lines))


OF_DEBIAN = Distribution(DEBIAN)
# Its updates have LLVM 19.
OF_UBUNTU = Distribution(UBUNTU, ("main", "universe"), ("{release}", "{release}-updates"), "gutsy")
UBUNTUS = ("noble",)


def distribution_of(release: str) -> Distribution:
    return OF_UBUNTU if release in UBUNTUS else OF_DEBIAN


@dataclass(frozen=True)
class Pair:
    python: str
    torch: str
    release: str
    tests: str

    def __str__(self) -> str:
        return f"{self.python}x{self.torch}"


PAIRS = [
    Pair("3.11", "2.11.0", "bookworm", "smoke"),
    Pair("3.11", "2.12.1", "bookworm", "smoke"),
    Pair("3.11", "2.13.0", "bookworm", "whole"),
    Pair("3.11", "2.14.1", "bookworm", "smoke"),
    Pair("3.11", "2.15.0", "bookworm", "smoke"),
    Pair("3.12", "2.11.0", "noble", "smoke"),
    Pair("3.13", "2.13.0", "trixie", "smoke"),
    Pair("3.13", "2.15.0", "trixie", "whole"),
    Pair("3.14", "2.15.0", "sid", "whole"),
]


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
    """A system of its own with a checkout in which one pair is built and tested."""

    def __init__(self, folder: Path, pair: Pair) -> None:
        self.folder, self.pair = folder, pair
        self.checkout = folder / f"checkout-{pair.torch}"

    def set_up(self) -> None:
        if not (self.folder / "usr" / "bin" / "python3").exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            distribution_of(self.pair.release).set_up(self.pair.release, self.folder)
        # The network as this machine reaches it.
        for file in ("resolv.conf", "hosts", "pip.conf", "ssl/certs/ca-certificates.crt"):
            if (Path("/etc") / file).exists():
                shutil.copy(Path("/etc") / file, self.folder / "etc" / file)
        # A mirror may stand still for longer than the lists are valid.
        old_lists = self.folder / "etc" / "apt" / "apt.conf.d" / "old-lists"
        old_lists.write_text('Acquire::Check-Valid-Until "false";\n')
        self._copy_checkout()

    def _copy_checkout(self) -> None:
        """Files that are the same stay as they are, and so does what was built of them."""
        listed = _output("git", "-C", str(CHECKOUT), "ls-files", "-z").split("\0")
        names = {name for name in listed if name and (CHECKOUT / name).exists()}
        before = self.checkout / "files of the checkout"
        for name in set(before.read_text().splitlines() if before.exists() else ()) - names:
            (self.checkout / name).unlink(missing_ok=True)
        for name in names:
            source, target = CHECKOUT / name, self.checkout / name
            if not target.exists() or source.read_bytes() != target.read_bytes():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)
        before.write_text("\n".join(sorted(names)))

    @contextmanager
    def mounted(self) -> Iterator[None]:
        """With this machine's devices, and the cache of what was compiled."""
        cache = Path(_output("ccache", "-k", "cache_dir").strip() or "/root/.cache/ccache")
        places = {"/proc": "proc", "/dev": "dev", str(cache): "root/.cache/ccache"}
        mounted: list[Path] = []
        try:
            for source, name in places.items():
                target = self.folder / name
                target.mkdir(parents=True, exist_ok=True)
                if not target.is_mount():
                    _run("mount", "--bind", source, str(target))
                    mounted.append(target)
            yield
        finally:
            for target in reversed(mounted):
                subprocess.run(["umount", "--lazy", str(target)])

    def run(self, command: str, must_succeed: bool = True) -> str:
        """The command's output; it is shown while it runs."""
        environment = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8", "CI": "true",
            "JOBS": str(os.cpu_count()),
        }  # fmt: skip
        line = ["chroot", str(self.folder), "bash", "-c", f"cd /{self.checkout.name} && {command}"]
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
        self.run(f"make build TORCH={self.pair.torch}")
        return self.smoke() if self.pair.tests == "smoke" else self.ctest() + self.pytest()

    def smoke(self) -> Counts:
        output = self.run(".venv/bin/python tools/smoke.py", must_succeed=False)
        found = re.search(r"(\d+) passed, (\d+) failed", output)
        return Counts(int(found[1]), int(found[2])) if found else Counts(failed=1)

    def ctest(self) -> Counts:
        output = self.run(".venv/bin/ctest --test-dir build/dev -j $JOBS", must_succeed=False)
        found = re.search(r"(\d+) tests failed out of (\d+)", output)
        if found is None:
            return Counts(failed=1)
        return Counts(int(found[2]) - int(found[1]), int(found[1]))

    def pytest(self) -> Counts:
        result = self.checkout / "build" / "matrix.xml"
        result.unlink(missing_ok=True)
        self.run(
            ".venv/bin/python -m pytest -n $JOBS --dist loadfile -W ignore --junitxml=build/matrix.xml",
            must_succeed=False,
        )
        if not result.exists():
            return Counts(failed=1)
        total = Counts()
        for suite in xml.parse(result).getroot().iter("testsuite"):
            tests, failures, errors, skipped = (
                int(suite.attrib[name]) for name in ("tests", "failures", "errors", "skipped")
            )
            total += Counts(tests - failures - errors - skipped, failures + errors, skipped)
        return total


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
    """In place of the same pair's earlier one with the same tests."""
    others = [each for each in kept() if key_of(each) != key_of(new)]
    lines = ",\n".join(f"  {json.dumps(each)}" for each in sorted([*others, new], key=order_of))
    RESULTS.write_text(f"[\n{lines}\n]\n")


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
        before, rest = file.read_text().split(BEGIN)
        after = rest.split(END)[1]
        file.write_text(f"{before}{BEGIN}\n{made}{END}{after}")


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
    parser.add_argument("--page", action="store_true", help="run nothing, write the tables")
    arguments = parser.parse_args()
    failed = 0
    for pair in chosen(arguments.pairs, arguments.tests) if not arguments.page else []:
        if is_known(pair, kept()) and not arguments.again:
            print(f"{pair}: this commit was tried already (--again tries it once more)")
            continue
        root = Root(arguments.roots.resolve() / pair.release, pair)
        root.set_up()
        with root.mounted():
            counts = root.test()
        print(f"{pair}: {counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped")
        keep(result_of(pair, counts))
        failed += counts.failed
    write_tables()
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
