"""What the package brings besides its library: reports and views are small, and loaded when they are asked for."""

import json
import subprocess
import sys
from pathlib import Path

import torchjanus

PACKAGE = Path(torchjanus.__file__).parent
# Asked for by an option or a call; the packages are extras, or come with other programs.
LATE = (
    "torchjanus.page", "torchjanus.live", "torchjanus.event_files", "torchjanus.graph_def",
    "torchjanus.happenings", "torchjanus.annotated_cell", "torchjanus.graph_progress", "torchjanus.command",
    "torchjanus.at_end", "torchjanus.history", "torchjanus.children", "torchjanus.spawned", "rich", "IPython",
    "ipykernel", "jinja2", "plotly", "matplotlib", "pandas", "tensorboard", "torch.utils.tensorboard",
    "google.protobuf",
)  # fmt: skip
MOST_MODULES = 50  # of ours, and of Python's own library


def imported() -> list[str]:
    """Names of the modules that `import torchjanus` loads beyond torch's."""
    code = (
        "import json, sys, torch\nbefore = set(sys.modules)\nimport torchjanus\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_import_loads_few_modules_and_none_of_what_is_shown() -> None:
    names = imported()
    late = [
        name
        for name in names
        if name.startswith(tuple(f"{each}." for each in LATE)) or name in LATE
    ]
    assert late == [] and len(names) <= MOST_MODULES, names
    others = {name.split(".")[0] for name in names} - sys.stdlib_module_names - {"torchjanus"}
    assert {name for name in others if not name.startswith("_sysconfigdata")} == set()


def test_all_but_the_library_is_under_a_megabyte() -> None:
    files = [
        each
        for each in PACKAGE.rglob("*")
        if each.is_file() and "__pycache__" not in each.parts and each.suffix != ".so"
    ]
    assert PACKAGE / "page" / "page.js" in files
    assert sum(each.stat().st_size for each in files) < 1_000_000


def test_reports_pages_and_views_are_a_quarter_of_that() -> None:
    names = (
        "page/*", "annotated_cell.py", "event_files.py", "graph_def.py", "graph_progress.py", "happenings.py",
        "live.py", "notebook.py", "reasons.*", "summary.py", "text_report.py", "timeline.py",
    )  # fmt: skip
    files = [each for name in names for each in PACKAGE.glob(name) if each.is_file()]
    assert len(files) > len(names)
    assert sum(each.stat().st_size for each in files) < 250_000
