"""Builds and tests torchjanus with other versions of Python and torch, each pair in a Debian root of its own.

    python3 tools/matrix.py                             each pair of PAIRS, as it says there
    python3 tools/matrix.py 3.13x2.13.0                 this pair only
    python3 tools/matrix.py 3.13x2.13.0 --tests smoke   not the whole suite, but tools/smoke.py

A root is a folder below --roots, made by debootstrap: this needs to be run as root, on Debian. The files of this
checkout are copied to it, changed ones only, and `make build` and the tests run there as on any machine. What a pair
showed becomes a row of docs/versions.md, and of the README's table.
"""

import argparse
import datetime
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

CHECKOUT = Path(__file__).resolve().parent.parent
PAGE = CHECKOUT / "docs" / "versions.md"
README = CHECKOUT / "README.md"
BEGIN, END = "<!-- made by make matrix: begin -->", "<!-- made by make matrix: end -->"
HEAD = """\
| Python | torch | Debian | tests | passed | failed | skipped | commit | date |
|---|---|---|---|--:|--:|--:|---|---|
"""
MIRROR = "http://deb.debian.org/debian"
INCLUDED = "python3,python3-venv,python3-dev,ca-certificates,make,git,procps"


@dataclass(frozen=True)
class Pair:
    python: str
    torch: str
    debian: str
    tests: str

    def __str__(self) -> str:
        return f"{self.python}x{self.torch}"


PAIRS = [
    Pair("3.11", "2.13.0", "bookworm", "whole"),
    Pair("3.13", "2.13.0", "trixie", "whole"),
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
    """A Debian of its own, in which one pair is built and tested."""

    def __init__(self, folder: Path, pair: Pair) -> None:
        self.folder, self.pair = folder, pair
        self.checkout = folder / "checkout"

    def set_up(self) -> None:
        if not (self.folder / "usr" / "bin" / "python3").exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            _run(
                "debootstrap", "--variant=minbase", f"--include={INCLUDED}",
                self.pair.debian, str(self.folder), MIRROR,
            )  # fmt: skip
        # The network as this machine reaches it.
        for file in ("resolv.conf", "hosts", "pip.conf", "ssl/certs/ca-certificates.crt"):
            if (Path("/etc") / file).exists():
                shutil.copy(Path("/etc") / file, self.folder / "etc" / file)
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


# --- the table ------------------------------------------------------------------------------------


def row(pair: Pair, counts: Counts) -> str:
    commit = _output("git", "-C", str(CHECKOUT), "rev-parse", "--short=9", "HEAD").strip()
    if _output("git", "-C", str(CHECKOUT), "status", "--porcelain", "--untracked-files=no"):
        commit += ", changed"
    numbers = f"{counts.passed} | {counts.failed} | {counts.skipped}"
    return (
        f"| {pair.python} | {pair.torch} | {pair.debian} | {pair.tests} | {numbers} "
        f"| {commit} | {datetime.date.today().isoformat()} |"
    )


def write(file: Path, new: dict[tuple[str, ...], str]) -> None:
    """Puts rows into a file's table; those of other pairs and tests stay."""
    before, rest = file.read_text().split(BEGIN)
    table, after = rest.split(END)
    rows = {key_of(line): line for line in table.splitlines() if re.match(r"\| \d", line)} | new
    lines = "\n".join(rows[key] for key in sorted(rows, key=order_of))
    file.write_text(f"{before}{BEGIN}\n{HEAD}{lines}\n{END}{after}")


def key_of(line: str) -> tuple[str, ...]:
    """Python, torch, Debian and tests."""
    return tuple(cell.strip() for cell in line.split("|")[1:5])


def order_of(key: tuple[str, ...]) -> tuple[list[int], ...]:
    return tuple([int(part) for part in each.split(".")] for each in key[:2])


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
    return [
        Pair(pair.python, pair.torch, pair.debian, tests or pair.tests) for pair in pairs
    ]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pairs", nargs="*", metavar="PYTHONxTORCH", help="default: all of PAIRS")
    parser.add_argument("--roots", type=Path, default=CHECKOUT / "build" / "roots")
    parser.add_argument("--tests", choices=("whole", "smoke"), help="default: as PAIRS says")
    arguments = parser.parse_args()
    failed = 0
    for pair in chosen(arguments.pairs, arguments.tests):
        root = Root(arguments.roots.resolve() / str(pair), pair)
        root.set_up()
        with root.mounted():
            counts = root.test()
        print(f"{pair}: {counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped")
        rows = {key_of(line): line for line in [row(pair, counts)]}
        for file in (PAGE, README):
            write(file, rows)
        failed += counts.failed
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
