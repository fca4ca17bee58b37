"""tools/matrix.py: what it keeps of each pair of Python and torch, and the tables of it. No root is set up here."""

import json
import subprocess
import sys
from pathlib import Path

import matrix as tool
import pytest

CHECKOUT = Path(__file__).resolve().parents[3]


@pytest.fixture
def matrix(monkeypatch, tmp_path):
    """The tool with files of its own, at a commit that is called here."""
    for name, file in (("PAGE", "page.md"), ("README", "readme.md"), ("RESULTS", "results.json")):
        monkeypatch.setattr(tool, name, tmp_path / file)
    for file in (tool.PAGE, tool.README):
        file.write_text(f"before\n{tool.BEGIN}\nold\n{tool.END}\nafter\n")
    monkeypatch.setattr(tool, "commit", lambda: "here")
    return tool


def keep(tool, python, torch, tests="smoke", passed=30, failed=0):
    pair = tool.Pair(python, torch, "sid", tests)
    tool.keep(tool.result_of(pair, tool.Counts(passed, failed, 1)))
    return pair


def test_a_result_takes_the_place_of_the_pairs_earlier_one(matrix):
    keep(matrix, "3.14", "2.15.0", passed=1)
    keep(matrix, "3.9", "2.15.0")
    keep(matrix, "3.14", "2.15.0", tests="whole")
    keep(matrix, "3.14", "2.15.0", passed=2)
    found = [(each["python"], each["tests"], each["passed"]) for each in matrix.kept()]
    assert found == [("3.9", "smoke", 30), ("3.14", "smoke", 2), ("3.14", "whole", 30)]


def test_a_pair_is_known_if_this_commit_was_tried_with_the_same_tests(matrix, monkeypatch):
    pair = keep(matrix, "3.14", "2.15.0")
    assert matrix.is_known(pair, matrix.kept())
    assert not matrix.is_known(matrix.Pair("3.14", "2.15.0", "sid", "whole"), matrix.kept())
    monkeypatch.setattr(matrix, "commit", lambda: "there")
    assert not matrix.is_known(pair, matrix.kept())


def test_tables_are_made_of_what_is_kept(matrix):
    keep(matrix, "3.11", "2.13.0")
    keep(matrix, "3.14", "2.15.1", passed=28, failed=2)
    date = matrix.kept()[0]["date"]
    page = matrix.PAGE.read_text()
    assert page.startswith(f"before\n{matrix.BEGIN}\n{matrix.HEAD}| 3.11 |")
    assert f"| 3.14 | 2.15.1 | sid | smoke | 28 | 2 | 1 | here | {date} |" in page
    assert page.endswith(f"{matrix.END}\nafter\n") and "old" not in page
    assert matrix.README.read_text().splitlines()[2:-2] == [
        "| Python | torch 2.13 | torch 2.15 |",
        "| --- | --- | --- |",
        f"| 3.11 | smoke: 30 passed, {date} | not tried |",
        f"| 3.14 | not tried | smoke: 28 passed, 2 failed, {date} |",
    ]


def test_what_was_tried_is_not_tried_again(matrix, monkeypatch, tmp_path, capsys):
    tried = []

    class Root(matrix.Root):
        def set_up(self):
            assert self.torches == ("2.15.0",)
            tried.append(str(self.folder.relative_to(tmp_path)))

        def mounted(self):
            return matrix.contextmanager(lambda: iter([None]))()

        def test(self):
            return matrix.Counts(30, 0, 0)

    monkeypatch.setattr(matrix, "Root", Root)
    line = ["matrix.py", "3.14x2.15.0", "--tests", "smoke", "--roots", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", line)
    assert matrix.main() == 0 and matrix.main() == 0
    assert tried == ["sid"]
    assert "was tried already" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", [*line, "--again"])
    assert matrix.main() == 0 and tried == ["sid", "sid"]


def test_a_root_may_be_another_distribution(matrix, monkeypatch, tmp_path):
    lines = []
    monkeypatch.setattr(matrix, "_run", lambda *command: lines.append(command))
    monkeypatch.setattr(matrix, "keyring", lambda mirror: f"keys of {mirror}")
    matrix.bootstrap("trixie", tmp_path)
    matrix.bootstrap("noble", tmp_path)
    # debootstrap of an older Debian does not know the release.
    assert lines[0][-3:] == ("trixie", str(tmp_path), "http://deb.debian.org/debian")
    assert lines[1][-4:-1] == ("noble", str(tmp_path), "http://archive.ubuntu.com/ubuntu")
    assert lines[1][-1] == "/usr/share/debootstrap/scripts/gutsy"
    assert "--components=main,universe" in lines[1]
    assert "--keyring=keys of http://archive.ubuntu.com/ubuntu" in lines[1]


def test_an_unknown_pair_is_named(matrix):
    with pytest.raises(SystemExit, match=r"no such pair: 2.7x1.0; there are 3\.11x"):
        matrix.chosen(["2.7x1.0"], None)


def test_a_root_has_the_files_without_the_package(matrix, tmp_path, monkeypatch):
    checkout = tmp_path / "here"
    for name in ("torchjanus/of_the_package.py", "tests/kept.py", "removed.py", "not_listed.py"):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text("1")
    subprocess.run(["git", "-C", checkout, "init", "-q"], check=True)
    listed = ["torchjanus", "tests", "removed.py"]
    subprocess.run(["git", "-C", checkout, "add", *listed], check=True)
    monkeypatch.setattr(matrix, "CHECKOUT", checkout)
    root = matrix.Root(
        tmp_path / "root", matrix.Pair("3.14", "2.15.0", "sid", "smoke"), ("2.15.0",)
    )
    (root.checkout / "build").mkdir(parents=True)
    (checkout / "removed.py").unlink()
    root._copy_checkout()
    files = [each for each in root.checkout.rglob("*") if each.is_file()]
    assert [str(each.relative_to(root.checkout)) for each in files] == ["tests/kept.py"]


@pytest.mark.parametrize(
    ("output", "counts"),
    [
        ("[==========] 7 tests from 2 test suites ran. (4 ms total)\n[  PASSED  ] 7 tests.\n", (7, 0, 0)),
        ("[  PASSED  ] 1 test.\n[  SKIPPED ] 2 tests, listed below:\n[  FAILED  ] 3 tests, listed", (1, 3, 2)),
        ("Segmentation fault\n", (0, 1, 0)),
    ],
)  # fmt: skip
def test_the_last_lines_of_a_program_of_tests_are_counted(output, counts):
    assert tool.counted(output) == tool.Counts(*counts)


def test_the_checkouts_tables_are_made_of_its_results():
    results = json.loads(tool.RESULTS.read_text())
    assert tool.table(results) in tool.PAGE.read_text()
    assert tool.grid(results) in tool.README.read_text()
