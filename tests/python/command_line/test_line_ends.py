"""Lines are counted as Python counts them: form feeds and Unicode's own line separators divide none."""

import ast
import os
import re
import subprocess
import sys

import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from notebook_cells import Notebook, without_watch

import torchjanus
from torchjanus.page.source import coloured
from torchjanus.source_text import SourceFile, divided

# Within a string and a comment each of them may stand; between statements, a form feed.
ODD = "\f\v\x1c\x1d\x1e\x85\u2028\u2029"
PROGRAM = """\
import torch
{form_feed}
w = torch.ones(3, requires_grad=True)
text = "{odd}"  # {odd}
{form_feed}def twice(x):
    '''Of {odd}
    x.'''
    return x * 2
for i in range(20):
    (twice(w) * i).tanh().sum().backward()
    k = len(text) if i < 90 else 0
"""
PLAIN, WITH_ODD = PROGRAM.format(form_feed="", odd="."), PROGRAM.format(form_feed="\f", odd=ODD)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_divided_as_python_does(end):
    text = WITH_ODD.replace("\n", end)
    assert divided(text) == WITH_ODD[:-1].split("\n")
    statements = zip(ast.parse(PLAIN).body, ast.parse(text).body, strict=True)
    assert all(one.lineno == other.lineno for one, other in statements)


def test_texts_without_lines_or_without_a_last_end():
    assert divided("") == []
    assert divided("\n") == [""]
    assert divided("a\n\nb") == ["a", "", "b"]


def run(folder, source, end):
    """Marks, numbers and first words of lines, as told at the end of the run and by its page."""
    folder.mkdir()
    (folder / "program.py").write_bytes(source.replace("\n", end).encode())
    done = subprocess.run(
        [sys.executable, "-m", "torchjanus", "run", "--explain", "--report", "r.html", "program.py"],
        cwd=folder, capture_output=True, timeout=180, env={**os.environ, "PYTHONUTF8": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = [
        line
        for line in divided((done.stdout + done.stderr).decode())
        if re.match(r" +[a-z]* +\d+ \|", line)
    ]
    page = (folder / "r.html").read_text(encoding="utf-8")
    shown = re.findall(r'<div class="l ([a-z]?)" id="program.py:(\d+)">', page)
    return [line.partition("|")[0] for line in told], shown


@pytest.mark.parametrize("end", ["\n", "\r"])
def test_reports_of_a_run_mark_the_same_lines(tmp_path, end):
    expected = run(tmp_path / "plain", PLAIN, "\n")
    assert any("graph" in each for each in expected[0]) and len(expected[1]) == 11
    assert run(tmp_path / "odd", WITH_ODD, end) == expected


def test_sources_that_linecache_reads_are_parsed(tmp_path):
    (tmp_path / "program.py").write_text(WITH_ODD)
    source = SourceFile(str(tmp_path / "program.py"))
    assert source.tree is not None and len(source.lines) == len(divided(PLAIN))
    assert source.span(5, "twice") == (5, 8)


def test_colours_go_on_through_odd_characters():
    lines = coloured("\n".join(divided(WITH_ODD)))
    assert len(lines) == len(divided(PLAIN))
    assert lines[3].count("<i class=") == 2


def test_cells_mark_the_same_lines():
    def marks(text):
        shown = notebook.shell.display_pub = CapturingDisplayPublisher()
        notebook.cell(f"%%torchjanus\n{text}")
        (report,) = shown.outputs
        assert report["data"]["text/html"].count("<code>") == len(divided(text))
        return re.findall(r"(?m)^( *[a-z ]* +\d+) \|", report["data"]["text/plain"])

    with without_watch():
        notebook = Notebook()
        notebook.cell("%load_ext torchjanus")
        expected = marks(PLAIN)
        assert any("graph" in each for each in expected)
        assert marks(WITH_ODD) == expected
        torchjanus.unload_ipython_extension(notebook.shell)
