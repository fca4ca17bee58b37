"""`torchjanus run` gives a program what Python gives it, and converts all that is the program's own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


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


@pytest.mark.parametrize("terms", [1500, 3000])
def test_an_expression_of_many_terms(terms: int, tmp_path: Path) -> None:
    write(tmp_path, {"program.py": f"print({' + '.join(['1'] * terms)})\n"})
    code, out, err = python(tmp_path, "program.py")
    actual = run(tmp_path, "--explain", "program.py")
    assert actual[:2] == (code, out)
    if code == 0 and terms == 1500:
        why = f"{tmp_path}/program.py runs imperatively: an expression in it is nested too deeply"
        assert actual[2].startswith(f"torchjanus: {why}\n")
        assert actual[2].count(why) == 2 and "internal error" not in actual[2]
    if code:
        assert actual[2] == err and "RecursionError" in err
