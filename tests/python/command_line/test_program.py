"""`torchjanus run` gives a program what Python gives it, and converts all that is the program's own."""

import json
import os
import py_compile
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from torchjanus import command_line, outputs
from torchjanus.program import Program

SHOW = """
import sys
print(sys.path[:2], sys.argv, __file__, __name__, __package__, getattr(__spec__, "name", None))
print(list(globals()), type(__builtins__).__name__)
"""
LOOP = """
import torch

def train():
    net = torch.nn.Linear(3, 3)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(40):
        optimizer.zero_grad()
        net(torch.ones(2, 3)).square().mean().backward()
        optimizer.step()
"""


def python(folder: Path, *arguments: str, **more: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=300,
        env=os.environ | {"TORCHJANUS_DISABLE": "budget,background"} | more,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def run(folder: Path, *arguments: str, **more: str) -> tuple[int, str, str]:
    return python(folder, "-m", "torchjanus", "run", *arguments, **more)


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


# --- modules --------------------------------------------------------------------------------------


def test_what_the_packages_around_a_module_import_is_converted(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "app/__init__.py": "from .loop import train\n",
            "app/loop.py": LOOP,
            "app/inner/long.py": "from app import train\ntrain()\n",
        },
    )
    (tmp_path / "elsewhere").mkdir()
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    for folder in (tmp_path, tmp_path / "elsewhere"):
        done = run(folder, "--stats", "s.json", "-m", "app.inner.long", PYTHONPATH=path)
        assert done == (0, "", "")
        (told,) = json.loads((folder / "s.json").read_text())["functions"]
        assert told["file"] == str(tmp_path / "app" / "loop.py") and told["hits"] > 20


MODULES = {
    "nopkg.mod": "Error while finding module specification for 'nopkg.mod'",
    "raises.mod": "ZeroDivisionError",
    "leaves": "not today",
    "empty": "No module named empty.__main__; 'empty' is a package and cannot be directly executed",
}


@pytest.mark.parametrize("name", MODULES)
def test_a_module_that_does_not_run_fails_as_under_python(name: str, tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "raises/__init__.py": "1 / 0\n",
            "raises/mod.py": "",
            "leaves/__init__.py": "import sys\n",
            "leaves/__main__.py": "import sys\nsys.exit('not today')\n",
            "empty/__init__.py": "",
            "s.json": "kept",
        },
    )
    expected = python(tmp_path, "-m", name)
    assert MODULES[name] in expected[2] and expected[0] == 1
    assert run(tmp_path, "--stats", "s.json", "-m", name) == expected
    was_found = name in ("raises.mod", "leaves")
    assert ((tmp_path / "s.json").read_text() == "kept") is not was_found


def test_a_module_with_a_syntax_error(tmp_path: Path) -> None:
    write(tmp_path, {"bad.py": "print(1\n", "s.json": "kept"})
    code, _, told = run(tmp_path, "--stats", "s.json", "-m", "bad")
    expected = python(tmp_path, "-m", "bad")
    assert code == expected[0] == 1 and told.splitlines()[-4:] == expected[2].splitlines()[-4:]
    assert "torchjanus" not in told and (tmp_path / "s.json").read_text() == "kept"


def test_where_the_file_of_a_module_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(
        tmp_path,
        {"top.py": "", "app/__init__.py": "", "app/__main__.py": "", "space/inner/mod.py": ""},
    )
    monkeypatch.chdir(tmp_path)
    places = {
        "top": "top.py", "app": "app/__main__.py", "space.inner.mod": "space/inner/mod.py",
        "top.below": None, "app.missing": None, "space.inner": None, "nowhere.mod": None, ".top": None,
    }  # fmt: skip
    before = sys.path[:]
    for name, place in places.items():
        program = Program(name, is_module=True, is_own_process=False)
        assert program.file == (None if place is None else tmp_path / place), name
    assert sys.path == before and not {"app", "top", "space"} & set(sys.modules)


# --- scripts, folders and archives ----------------------------------------------------------------


def test_what_a_program_finds_is_what_python_gives_it(tmp_path: Path) -> None:
    write(tmp_path, {"in/show.py": SHOW, "in/__main__.py": SHOW})
    with zipfile.ZipFile(tmp_path / "show.zip", "w") as archive:
        archive.write(tmp_path / "in" / "__main__.py", "__main__.py")
    py_compile.compile(str(tmp_path / "in" / "show.py"), str(tmp_path / "show.pyc"))
    (tmp_path / "bad.pyc").write_bytes(b"no byte code")
    told = "torchjanus: {} runs imperatively: it is {}\n"
    for words, says in (
        (("in/show.py", "--", "a", "--", "--lr"), ""),
        (("in", "a"), ""),
        (("-m", "in.show", "--", "-x"), ""),
        (("show.zip", "a"), told.format("show.zip", "an archive")),
        (("show.pyc",), told.format("show.pyc", "byte code")),
        (("bad.pyc",), ""),
    ):
        code, out, err = python(tmp_path, *words)
        assert run(tmp_path, *words) == (code, out, says + err), words
        assert (code, not out) in ((0, False), (1, True))


def test_a_safe_path_holds_no_folder_of_the_script(tmp_path: Path) -> None:
    write(tmp_path, {"show.py": SHOW, "helper.py": ""})
    expected = python(tmp_path, "show.py", PYTHONSAFEPATH="1")
    assert run(tmp_path, "show.py", PYTHONSAFEPATH="1") == expected
    write(tmp_path, {"below/import_it.py": "import helper\n"})
    code, _, told = run(tmp_path, "below/import_it.py")  # nor the current folder, where -m looks
    assert code == 1 and told.endswith("ModuleNotFoundError: No module named 'helper'\n")


def test_a_folder_is_converted(tmp_path: Path) -> None:
    write(tmp_path, {"app/__main__.py": "from loop import train\ntrain()\n", "app/loop.py": LOOP})
    assert run(tmp_path, "--stats", "s.json", "app") == (0, "", "")
    assert [
        each["hits"] > 20 for each in json.loads((tmp_path / "s.json").read_text())["functions"]
    ] == [True]


@pytest.mark.parametrize("text", ["", "print('no newline')", "\n\n# nothing"])
def test_small_scripts(text: str, tmp_path: Path) -> None:
    write(tmp_path, {"program.py": text})
    assert run(tmp_path, "program.py") == python(tmp_path, "program.py")


@pytest.mark.parametrize("before", [(), ("--stats", "s.json"), ("--",), ("-m",)])
def test_arguments_of_the_program_are_its_own(before: tuple[str, ...]) -> None:
    line = ["run", *before, "program", "--", "--stats", "--", "-m", "x"]
    options = command_line.parser().parse_args(line)
    assert (options.script, options.arguments) == ("program", ["--", "--stats", "--", "-m", "x"])
    assert (options.stats is not None, options.module) == ("--stats" in before, "-m" in before)


@pytest.mark.parametrize("line", [["run"], ["run", "--"], ["run", "-m"]])
def test_a_program_has_to_be_named(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        command_line.parser().parse_args(line)
    assert left.value.code == 2 and "arguments are required: SCRIPT" in capsys.readouterr().err


@pytest.mark.parametrize("terms", [1500, 3000])
def test_an_expression_of_many_terms(terms: int, tmp_path: Path) -> None:
    write(tmp_path, {"program.py": f"print({' + '.join(['1'] * terms)})\n"})
    code, out, err = python(tmp_path, "program.py")
    actual = run(tmp_path, "--explain", "program.py")
    assert actual[:2] == (code, out)
    assert "internal error" not in actual[2]
    if sys.version_info < (3, 12) and terms == 1500:  # later Pythons parse that
        why = f"{tmp_path}/program.py runs imperatively: an expression in it is nested too deeply"
        assert actual[2].startswith(f"torchjanus: {why}\n")
        assert actual[2].count(why) == 2
    if code:
        assert actual[2] == err and "RecursionError" in err


@pytest.mark.parametrize("name", ["./program.py", ".//program.py", "../inner/program.py"])
def test_paths_are_not_shortened(name: str, tmp_path: Path) -> None:
    write(tmp_path, {"inner/program.py": "print(__file__)\nraise ValueError\n"})
    assert run(tmp_path / "inner", name) == python(tmp_path / "inner", name)


# --- files that must not be overwritten -----------------------------------------------------------


def test_nothing_is_written_where_nothing_ran(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"s.json": "kept", "r.html": "kept", "broken.py": "print(1\n", "train.py": "x = 1"},
    )
    asked = ("--explain", "--stats", "s.json", "--report", "r.html", "--trace", "t.json")
    code, _, told = run(tmp_path, *asked, "missing.py")
    assert code == 2 and told == (
        f"torchjanus: can't open file '{tmp_path}/missing.py': [Errno 2] No such file or directory\n"
    )
    assert run(tmp_path, *asked, "broken.py") == python(tmp_path, "broken.py")
    assert run(tmp_path, "--report", "train.py", "out.html") == (
        2, "", "torchjanus: --report train.py would overwrite a file of source code\n"
    )  # fmt: skip
    assert (tmp_path / "train.py").read_text() == "x = 1"
    assert {each.name: each.read_text() for each in tmp_path.glob("*.[jh]*")} == {
        "s.json": "kept", "r.html": "kept"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (["--report", "a.html", "--trace", "b/../a.html", "p"],
         ["--report a.html and --trace b/../a.html are the same file"]),
        (["--stats", "a", "--tensorboard", "a", "p"], ["--stats a and --tensorboard a are the same file"]),
        (["--report", "p", "p"], ["--report p would overwrite the program itself, p"]),
        (["--stats", "link", "p"], ["--stats link would overwrite the program itself, p"]),
        (["--trace", "other.IPYNB", "p"], ["--trace other.IPYNB would overwrite a file of source code"]),
        (["--report", "new.py", "--tensorboard", "b", "p"], []),
        (["--stats", "/dev/null", "--report", "/dev/null", "p"], []),
    ],
)  # fmt: skip
def test_files_that_would_be_lost(
    line: list[str], says: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"p": "", "other.IPYNB": "", "b/c": ""})
    (tmp_path / "link").hardlink_to(tmp_path / "p")
    monkeypatch.chdir(tmp_path)
    options = command_line.parser().parse_args(["run", *line])
    program = Program("p", is_module=False, is_own_process=False)
    told = list(outputs.problems(options, program.file))
    assert [each.replace(f"{tmp_path}/", "") for each in told] == [
        f"torchjanus: {each}" for each in says
    ]
