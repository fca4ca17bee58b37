"""Which compiled library is taken, and what a program does where none fits: all that it does without torchjanus."""

import ast
import os
import platform
import re
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

import pytest

import torch
import torchjanus
from torchjanus import library

PACKAGE = Path(torchjanus.__file__).parent
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
PYTHON = ".".join(platform.python_version_tuple()[:2])
SENTENCE = (
    f"torchjanus: no compiled library fits Python {PYTHON} with torch {torch.__version__}, so everything runs "
    "imperatively; this installation has libraries for "
)
USES = """
    import copy, pickle, torch, torchjanus

    @torchjanus.function
    def double(x):
        "Twice."
        return x * 2

    class Net(torch.nn.Module):
        @torchjanus.function(profile_runs=1)
        def forward(self, x):
            return x + 1

    assert [double(torch.ones(2)).tolist() for _ in range(5)] == [[2.0, 2.0]] * 5
    assert double.__name__ == "double" and double.__doc__ == "Twice."
    assert all(each is double for each in (pickle.loads(pickle.dumps(double)), copy.deepcopy(double)))
    net = Net()
    assert torchjanus.function(net) is net and net(torch.zeros(1)).tolist() == [1.0]
    assert isinstance(double, torchjanus.Function) and torchjanus.function(double) is double
    with torchjanus.lazy(), torchjanus.options.without("batch"):
        torchjanus.fetch(torch.ones(1), lambda x: print("fetched", x.item()))
    torchjanus.synchronize()
    assert double.graph() == torchjanus.graph(double) == ""
    stats = double.stats()
    assert stats["state"] == "imperative" and stats["hits"] == stats["milliseconds"]["running"] == 0
    assert [each["code"] for each in stats["reasons"] + torchjanus.stats()["reasons"]] == ["no_library"] * 2
    assert stats["line"] == stats["reasons"][0]["line"] == 4 and torchjanus.stats()["functions"] == []
    with torchjanus.trace("trace.json"):
        torchjanus.report(double, "page.html")
    for wrong in (int, 3):
        try:
            torchjanus.function(wrong)
        except TypeError as error:
            assert "expected a function, method or module" in str(error)
    print(torchjanus.explain(double))
"""


@pytest.fixture
def package(tmp_path):
    """A copy of the package, by links, without libraries."""
    copied = tmp_path / "packages" / "torchjanus"
    copied.mkdir(parents=True)
    for each in PACKAGE.iterdir():
        if each.name != "libraries":
            (copied / each.name).symlink_to(each)
    return copied


def add(package, version, suffix=SUFFIX):
    folder = package / "libraries" / f"torch-{version}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"_core{suffix}").touch()


def run(package, *arguments, **environment):
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=package.parents[1],
        env={**os.environ, "PYTHONPATH": str(package.parent), "PYTHONSAFEPATH": "1", **environment},
        capture_output=True,
        text=True,
    )


def program(package, text):
    file = package.parents[1] / "program.py"
    file.write_text(textwrap.dedent(text))
    return file.name


def test_the_library_that_fits_lies_in_a_folder_for_torchs_minor_version():
    minor = re.match(r"\d+\.\d+", torch.__version__)[0]
    assert Path(torchjanus._core.__file__).parent == PACKAGE / "libraries" / f"torch-{minor}"
    assert library.is_there()


def test_where_none_fits_a_program_runs_imperatively_with_one_warning(package):
    add(package, "99.1")
    add(package, "99.10")
    add(package, "99.2", ".cpython-399-x86_64-linux-gnu.so")
    done = run(package, program(package, USES))
    assert done.returncode == 0, done.stderr
    sentence = f"{SENTENCE}Python {PYTHON} with torch 99.1 or 99.10; Python 3.99 with torch 99.2"
    assert done.stdout == f"fetched 1.0\n{sentence}\n"
    assert done.stderr.count(sentence) == done.stderr.count("Warning") == 1
    assert "program.py:2: RuntimeWarning: " in done.stderr
    assert sentence in (package.parents[1] / "page.html").read_text()


def test_a_python_without_global_lock_is_named(monkeypatch):
    monkeypatch.setattr(sys, "abiflags", "t")
    assert f"fits Python {PYTHON}t with torch {torch.__version__}," in library.sentence()


def test_programs_find_the_counters_that_graphs_have():
    def double(x):
        return x * 2

    there = torchjanus.function(double).stats()
    module = ast.parse((PACKAGE / "imperative.py").read_text())
    named = {
        target.id: ast.literal_eval(node.value)
        for node in module.body if isinstance(node, ast.Assign)
        for target in node.targets if target.id in ("COUNTERS", "STAGES")
    }  # fmt: skip
    assert all(there[name] == 0 for name in named["COUNTERS"])
    assert list(there["milliseconds"]) == list(named["STAGES"])


def test_another_python_has_a_library_of_its_own(package):
    minor = re.match(r"\d+\.\d+", torch.__version__)[0]
    add(package, minor, ".cpython-399-x86_64-linux-gnu.so")
    done = run(package, "-c", "import torchjanus; print(torchjanus.explain())")
    assert done.stdout == f"{SENTENCE}Python 3.99 with torch {minor}\n"


def test_an_installation_without_libraries_says_so(package):
    done = run(package, "-c", "import torchjanus; print(torchjanus.explain())")
    assert done.stdout == f"{SENTENCE}no versions\n"


def test_strict_raises_where_none_fits(package):
    done = run(
        package, "-c", "import torchjanus; torchjanus.function(print)", TORCHJANUS_STRICT="1"
    )
    assert done.returncode == 1 and f"RuntimeError: {SENTENCE}" in done.stderr


def test_operators_written_inline_work_where_none_fits(package):
    text = """
        import torch, torchjanus
        twice = torchjanus.code("twice(Tensor x) -> Tensor y",
                                "for (int64_t i = 0; i < x.count; ++i) y[i] = 2 * x[i];")
        print(twice(torch.ones(2)).tolist())
        print(torchjanus.meta.reindex(torch.arange(3), (3,), lambda i: (2 - i,)).tolist())
    """
    done = run(package, program(package, text))
    assert done.stdout == "[2.0, 2.0]\n[2, 1, 0]\n", done.stderr


def test_run_leaves_a_script_to_python(package):
    text = """
        import sys, __main__
        print(sys.argv, __name__, sys.flags.optimize, "torchjanus" in sys.modules)
        sys.exit(7)
    """
    name = program(package, text)
    done = run(package, "-O", "-m", "torchjanus", "run", name, "--lr", "1")
    assert (done.returncode, done.stdout) == (7, f"['{name}', '--lr', '1'] __main__ 1 False\n")
    assert done.stderr.count(SENTENCE) == 1
    module = run(package, "-m", "torchjanus", "run", "-m", "json.tool", "--help")
    assert module.returncode == 0 and "usage:" in module.stdout


def test_data_parallel_is_refused_where_none_fits(package):
    name = program(package, "print('ran')")
    done = run(package, "-m", "torchjanus", "run", "--data-parallel", name)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.endswith("--data-parallel needs one\n")


def test_explain_needs_no_library(package):
    done = run(package, "-m", "torchjanus", "explain", "heap_wrote")
    assert done.returncode == 2 and "near: heap_write" in done.stderr
    done = run(package, "-m", "torchjanus", "explain", "no_library")
    assert done.returncode == 0 and done.stdout.startswith("[no_library] No compiled library fits")


def test_reports_that_nobody_writes_are_told(package):
    name = program(package, "print('ran')")
    asked = ("--explain", "--stats", "s.json", "--tensorboard", "events")
    done = run(package, "-m", "torchjanus", "run", *asked, name)
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert done.stderr.endswith(
        "and torch, so nothing is written for --explain, --stats, --tensorboard\n"
    )
    done = run(package, "-m", "torchjanus", "run", "--report", "no/such/r.html", name)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("can't write no/such/r.html: No such file or directory\n")
