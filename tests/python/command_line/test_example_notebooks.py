"""The notebooks under examples/ are what their scripts say, run without an error, and show what they are to show."""

import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "examples" / "notebooks"
# As graphs, of calls of annotated cells; the loop around the tree-LSTM's step is counted, too.
LEAST_SHARE = {"beam_search": 0.6, "gan": 0.8, "tree_lstm": 0.4}


def test_notebooks_are_up_to_date():
    subprocess.run([sys.executable, ROOT / "tools" / "notebooks.py", "--check"], check=True)
    assert {each.stem for each in FOLDER.glob("*.ipynb")} == LEAST_SHARE.keys()


@pytest.mark.parametrize("name", LEAST_SHARE)
def test_notebook_runs_and_shows_graphs(name, monkeypatch, tmp_path):
    monkeypatch.setenv("TORCHJANUS_CACHE", str(tmp_path))
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    nbformat.validate(notebook)
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    outputs = [each for cell in notebook.cells for each in cell.get("outputs", ())]
    assert {each.output_type for each in outputs} <= {"stream", "display_data", "execute_result"}
    assert not [each for each in outputs if each.get("name") == "stderr"]
    shown = [each.data for each in outputs if each.output_type != "stream"]
    texts = [each["text/plain"] for each in shown]
    reports = [each for each in texts if each.startswith("this cell")]
    assert len(reports) == sum(cell.source.startswith("%%torchjanus") for cell in notebook.cells)
    calls = [re.search(r"(\d+) of (\d+) calls ran as graphs", each) for each in reports]
    hits, all_calls = (sum(int(each[at]) for each in calls) for at in (1, 2))
    assert hits >= LEAST_SHARE[name] * all_calls, reports
    assert any(re.match(r"torchjanus: \d+ graphs? ready after", each) for each in texts), texts
    assert "torchjanus" in shown[-1]["text/html"] and outputs[-1].output_type == "execute_result"


FAILS = """\
{first}
import torch
def divide(number):
    print("dividing by", number)
    return torch.ones(3).sum() / (1 / number)
for i in range(6):
    divide(4 - i)
"""


def outputs_in_kernel(*sources):
    """Of each cell of a new kernel what it has printed, and its result or error."""
    cells = [nbformat.v4.new_code_cell(each) for each in sources]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=300, kernel_name="python3", allow_errors=True).execute()
    for cell in notebook.cells:
        printed = "".join(each.text for each in cell.outputs if each.output_type == "stream")
        yield (
            printed,
            [each for each in cell.outputs if each.output_type in ("error", "execute_result")],
        )


def frames(error):
    """Where its traceback leads, and the line of each cell."""
    text = re.sub(r"\x1b\[[\d;]*m", "", "\n".join(error["traceback"]))
    place = r"line \d+, in \w+|Cell In\[2\], line \d+|^-+> \d+ .*$|^\w+Error: .*$"
    return re.findall(place, text, re.MULTILINE)


def test_cell_that_fails_in_a_kernel_fails_as_it_does_without_the_magic():
    last = "i, 'and the next cell runs'"
    plain = [*outputs_in_kernel("import torchjanus", FAILS.format(first="# no magic"), last)]
    shown = [*outputs_in_kernel("%load_ext torchjanus", FAILS.format(first="%%torchjanus"), last)]
    assert [printed for printed, _ in shown] == [printed for printed, _ in plain]
    (error,), (expected,) = shown[1][1], plain[1][1]
    assert error["ename"] == "ZeroDivisionError" and "torchjanus/" not in "".join(
        error["traceback"]
    )
    assert frames(error) == frames(expected) and len(frames(error)) >= 4
    assert shown[2][1][0]["data"] == plain[2][1][0]["data"]
