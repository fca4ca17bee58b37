"""What the documents link to and the files that they name exist; what tools/check_links.py corrects."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TOOL = ROOT / "tools" / "check_links.py"


def check_links(checkout, *arguments):
    command = [sys.executable, TOOL, "--checkout", checkout, *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_links_and_paths_of_the_documents_exist():
    done = check_links(ROOT)
    assert done.returncode == 0, done.stdout


@pytest.fixture
def checkout(tmp_path):
    """A git repository with a page and two source files."""
    write(tmp_path, "src/front/merge.h", "#pragma once\n// Joins the states of two sides.\n")
    write(tmp_path, "src/front/loop.h", "#pragma once\n// A loop.\n")
    write(tmp_path, "docs/whole.md", "# The whole\n\n## Parts of it\n")
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    return tmp_path


def write(checkout, name, text):
    path = checkout / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def git(checkout, *arguments):
    who = ["-c", "user.name=test", "-c", "user.email=test@test"]
    subprocess.run(["git", "-C", checkout, *who, *arguments], check=True)


def commit(checkout):
    git(checkout, "add", "-A")
    git(checkout, "commit", "-q", "-m", "a commit")


@pytest.mark.parametrize(
    "text",
    [
        "[`merge.h`](../../src/front/merge.h)",
        "[the parts](../whole.md#parts-of-it)",
        "[below](#here)\n\n# Here",
        "`src/front/merge.h` or `front/merge.h`",
        "`SUBJECT/NAME.py`, `tests/**/*.ir`, `~/.cache/name`",
        "```\n[a link](nowhere.md) and `no/file.h`\n```\n",
        "[elsewhere](https://example.org/nowhere.md)",
    ],
)
def test_what_exists(checkout, text):
    write(checkout, "docs/parts/page.md", text)
    assert check_links(checkout).returncode == 0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[x](nowhere.md)", "no file docs/parts/nowhere.md"),
        ("[x](../whole.md#nothing)", "no heading #nothing in docs/whole.md"),
        (
            "[`loop.h`](../../src/front/merge.h)",
            "the link called loop.h leads to src/front/merge.h",
        ),
        ("`front/none.h`", "no file front/none.h"),
    ],
)
def test_what_does_not_exist(checkout, text, problem):
    write(checkout, "docs/parts/page.md", f"# Page\n\n{text}\n")
    done = check_links(checkout)
    assert done.stdout == f"docs/parts/page.md:3: {problem}\n"
    assert done.returncode == 1


def test_paths_of_moved_and_renamed_files_are_corrected(checkout):
    text = "[`merge.h`](../../src/front/merge.h), `front/loop.h`, `src/front/loop.h`\n```\n`front/loop.h`\n```\n"
    write(checkout, "docs/parts/page.md", text)
    (checkout / "src/front/control").mkdir()
    git(checkout, "mv", "src/front/merge.h", "src/front/control/join.h")
    commit(checkout)
    # This one is not committed: it is found by its name.
    git(checkout, "mv", "src/front/loop.h", "src/front/control/loop.h")
    assert check_links(checkout, "--fix").returncode == 0
    assert (checkout / "docs/parts/page.md").read_text() == (
        "[`join.h`](../../src/front/control/join.h), `front/control/loop.h`, `src/front/control/loop.h`\n"
        "```\n`front/loop.h`\n```\n"
    )


def test_what_is_not_certain_is_left(checkout):
    write(checkout, "docs/parts/page.md", "`src/front/gone.h`\n")
    write(checkout, "src/one/gone.h", "1\n")
    write(checkout, "src/two/gone.h", "2\n")
    git(checkout, "add", "-A")
    done = check_links(checkout, "--fix")
    assert done.stdout == "docs/parts/page.md:1: no file src/front/gone.h\n"
