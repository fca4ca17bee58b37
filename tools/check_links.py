"""Checks that what the documents link to, and the files that they name, exist; `make lint` runs it.

usage: check_links.py [--checkout FOLDER] [--fix]

Two kinds of references are checked in README.md, CONTRIBUTING.md, CHANGELOG.md and docs/**/*.md:

- Links: `[text](path#heading)`. The file must exist, and have that heading. If the text is a file's name in
  backticks, it must be the name of the file that the link leads to.
- Paths in backticks: `folder/file.ext`, from the root of the checkout or from src/. Names in capitals stand
  for other names (`SUBJECT/NAME.py`), and code blocks are not looked at.

With --fix, paths of files that were moved or renamed are corrected. First git's history says where a file
went. Else the only file of that name in the same folder of src/, or anywhere, is taken. What is left is
printed, and has to be corrected by hand.
"""

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**/*.md")
FOLDERS = ("", "src/")  # where a path in backticks may begin
LINK = re.compile(r"\[(?P<label>[^\]]*)\]\((?P<path>[^()#\s:]*)(?P<heading>#[^()\s]*)?\)")
PATH = re.compile(r"(?<!\[)`(?P<path>[\w.-]+(?:/[\w.-]+)+\.[a-z]\w*)`")
PLACEHOLDER = re.compile(r"(^|/)[A-Z]+(/|\.)")
FENCE = re.compile(r"^```.*?^```[^\n]*\n", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Problem:
    """A reference that leads nowhere."""

    page: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.text}"


def slug(heading: str) -> str:
    """The anchor that a heading gets on GitHub."""
    kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return kept.replace(" ", "-")


class Checkout:
    """The files of a checkout, and where they went."""

    def __init__(self, root: Path):
        self.root = root

    def pages(self) -> list[Path]:
        return sorted(page for pattern in PAGES for page in self.root.glob(pattern))

    def exists(self, path: str) -> bool:
        return (self.root / path).exists()

    def _git(self, *arguments: str) -> list[str]:
        command = ["git", "-C", str(self.root), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout.splitlines()

    @cached_property
    def files(self) -> list[str]:
        return self._git("ls-files")

    @cached_property
    def renames(self) -> dict[str, str]:
        """The next name of each file that was renamed; of several, the latest."""
        lines = self._git("log", "-M", "--diff-filter=R", "--name-status", "--format=")
        result: dict[str, str] = {}
        for line in lines:  # the latest first
            _, old, new = line.split("\t")
            result.setdefault(old, new)
        return result

    def moved_to(self, path: str) -> str | None:
        """Where a file is that was at this path, if that is certain."""
        new, seen = path, {path}
        while not self.exists(new) and new in self.renames:
            new = self.renames[new]
            if new in seen:
                break
            seen.add(new)
        if self.exists(new):
            return new
        name, room = PurePosixPath(path).name, PurePosixPath(path).parts[:2]
        same = [file for file in self.files if PurePosixPath(file).name == name]
        near = [file for file in same if PurePosixPath(file).parts[:2] == room]
        for found in (near, same):
            if len(found) == 1:
                return found[0]
        return None


def without_code(text: str) -> str:
    """The text with its code blocks blanked, each line in its place."""
    return FENCE.sub(lambda block: re.sub(r"[^\n]", " ", block[0]), text)


def headings(text: str) -> set[str]:
    return {slug(each) for each in re.findall(r"^#+ (.*)$", without_code(text), re.MULTILINE)}


class Page:
    """One document, whose references are checked and, if asked for, corrected."""

    def __init__(self, checkout: Checkout, path: Path):
        self.checkout = checkout
        self.path = path
        self.name = path.relative_to(checkout.root).as_posix()
        self.text = path.read_text()

    def _from_root(self, target: str) -> str:
        return os.path.normpath((self.path.parent / target).relative_to(self.checkout.root))

    def _from_here(self, target: str) -> str:
        return os.path.relpath(self.checkout.root / target, self.path.parent)

    def _problem(self, position: int, text: str) -> Problem:
        return Problem(self.name, self.text.count("\n", 0, position) + 1, text)

    def problems(self) -> Iterator[Problem]:
        prose = without_code(self.text)
        for found in LINK.finditer(prose):
            text = self._wrong_link(found["label"], found["path"], found["heading"])
            if text:
                yield self._problem(found.start(), text)
        for found in PATH.finditer(prose):
            if self._is_wrong_path(found["path"]):
                yield self._problem(found.start(), f"no file {found['path']}")

    def _wrong_link(self, label: str, path: str, heading: str | None) -> str | None:
        target = self._from_root(path) if path else self.name
        if not self.checkout.exists(target):
            return f"no file {target}"
        named = re.fullmatch(r"`([\w./-]+\.[a-z]\w*)`", label)
        if named and not f"/{target}".endswith(f"/{named[1]}"):
            return f"the link called {named[1]} leads to {target}"
        if heading and heading[1:] not in headings((self.checkout.root / target).read_text()):
            return f"no heading {heading} in {target}"
        return None

    def _is_wrong_path(self, path: str) -> bool:
        if PLACEHOLDER.search(path):
            return False
        return not any(self.checkout.exists(folder + path) for folder in FOLDERS)

    def fix(self) -> bool:
        """Corrects what can be; whether anything was."""
        blocks = FENCE.split(self.text)
        code = [*FENCE.findall(self.text), ""]
        new = "".join(self._fixed(prose) + block for prose, block in zip(blocks, code, strict=True))
        changed = new != self.text
        if changed:
            self.text = new
            self.path.write_text(new)
        return changed

    def _fixed(self, prose: str) -> str:
        return PATH.sub(self._fixed_path, LINK.sub(self._fixed_link, prose))

    def _fixed_link(self, found: re.Match[str]) -> str:
        label, path, heading = found["label"], found["path"], found["heading"] or ""
        if not path or self.checkout.exists(self._from_root(path)):
            return found[0]
        old = self._from_root(path)
        new = self.checkout.moved_to(old)
        if new is None:
            return found[0]
        if label.strip("`") == PurePosixPath(old).name:
            label = f"`{PurePosixPath(new).name}`"
        return f"[{label}]({self._from_here(new)}{heading})"

    def _fixed_path(self, found: re.Match[str]) -> str:
        if not self._is_wrong_path(found["path"]):
            return found[0]
        begins_at_root = self.checkout.exists(found["path"].split("/")[0])
        folder = "" if begins_at_root else "src/"
        new = self.checkout.moved_to(folder + found["path"])
        return found[0] if new is None else f"`{new.removeprefix(folder)}`"


def check(root: Path, fix: bool = False, say: Callable[[str], None] = print) -> list[Problem]:
    """The references of all pages that lead nowhere, after corrections if `fix`."""
    checkout = Checkout(root)
    result: list[Problem] = []
    for path in checkout.pages():
        page = Page(checkout, path)
        if fix and page.fix():
            say(f"corrected {page.name}")
        result += page.problems()
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--checkout", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument("--fix", action="store_true", help="correct the paths of moved files")
    options = parser.parse_args()
    problems = check(options.checkout.resolve(), options.fix)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
