"""Parts of cut loops that Python runs: their reasons stand at their lines, and their runs and times count."""

import re

import pytest
from browser import Browser, chromium

import torchjanus
from torchjanus import _core, line_marks, page, script, summary, text_report, totals
from torchjanus.source_text import Sources

PROGRAM = """
import gc
import torch
w = torch.ones(3, dtype=torch.float64, requires_grad=True)
def slow(count):
    s = 0
    for q in range(count): s += q * q % 7
    return s
for i in range(40):
    gc.collect(0)
    count = slow(2000)
    more = slow(
        1000)
    gc.collect(0)
    z = (w * i).sum().exp()
"""
INNER = """
import gc
import torch
w = torch.ones(3, dtype=torch.float64)
for i in range(40):
    gc.collect(0)
    y = (w * i).tanh()
    for k in range(2):
        y = y * k
    if i > 1000:
        y = y.exp() * 3
    gc.collect(0)
"""


def snapshot_of(text, folder):
    file = folder / "program.py"
    file.write_text(text)
    exec(script.compile_script(text, str(file)), {"__name__": "program"})
    (found,) = (each for each in _core.all_details() if each["file"] == str(file))
    return found


@pytest.fixture
def cut(tmp_path):
    return snapshot_of(PROGRAM, tmp_path)


def line_of(text, statement):
    return 1 + next(i for i, line in enumerate(text.split("\n")) if line.strip() == statement)


def test_reason_stands_at_the_line(cut):
    (block,) = line_marks.blocks(cut, Sources())
    slow = line_of(PROGRAM, "count = slow(2000)")
    at = {line.number: line for line in block.lines}
    assert at[slow].mark == "imperative"
    told = [each for line in (slow, slow + 1, slow + 2) for each in at[line].reasons]
    assert len(told) == 1 and "[no_tensor_work]" in told[0]
    assert not any("no_tensor_work" in each for each in at[slow + 4].reasons)
    assert at[slow + 4].mark == "graph"


def test_calls_of_parts_without_work_do_not_count(cut):
    """Their time does: what stands between graphs may be a `print`."""
    (part,) = (each for each in cut["parts"] if each["state"] == "graph")
    assert totals.hits([cut]) == part["hits"] > 30
    assert totals.calls([cut]) == part["calls"]


def test_time_in_python_is_told(cut):
    screen = summary.first_screen([cut], None, 0.1)
    slow = line_of(PROGRAM, "count = slow(2000)")
    found = re.search(r"1\. .*program.py:(\d+): .* runs in Python, .*: \[no_tensor_work\]", screen)
    assert found and slow <= int(found[1]) <= slow + 2, screen


def test_whole_functions_without_tensor_work_are_no_cost():
    @torchjanus.function
    def plain(n):
        return sum(k * k for k in range(n))

    for _ in range(8):
        plain(1000)
    told = plain.snapshot()
    assert totals.calls([told]) == 0
    assert "no_tensor_work" not in summary.first_screen([told], None, 0.1)


def test_parts_within_one_that_runs_whole_are_not_told_of(tmp_path):
    told = snapshot_of(INNER, tmp_path)
    text = text_report.cut_list(told)
    first, last = line_of(INNER, "y = (w * i).tanh()"), line_of(INNER, "y = y.exp() * 3")
    parts = [each.strip() for each in text if re.match(r" +lines? \d", each)]
    assert [each.partition(":")[0] for each in parts] == [f"lines {first} to {last}"]
    assert "ran 0 of 0 times" not in "\n".join(text)
    (block,) = line_marks.blocks(told, Sources())
    assert not any("no_tensor_work" in each for line in block.lines for each in line.reasons)


@pytest.mark.skipif(chromium() is None, reason="no chromium")
def test_details_of_a_line_say_why_its_part_is_in_python(cut, tmp_path):
    page.write(tmp_path / "r.html", [cut], "r", "r")
    slow = line_of(PROGRAM, "count = slow(2000)")
    with Browser(tmp_path / "chromium") as browser:
        for line in (slow, slow + 2):  # the part's first and last one
            browser.open(tmp_path / "r.html", f"#program.py:{line}")
            told = browser.run(
                """[...document.querySelectorAll("aside .reason")].map((each) => each.textContent)"""
            )
            assert len(told) == 1 and "[no_tensor_work]" in told[0], told
        assert browser.complaints() == []
