"""Kernels on disk: a second process finds those of the first, and whatever is wrong with the folder,
programs compute what they compute."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import torch, torchjanus
import torch.nn.functional as F
x = torch.linspace(-1, 1, 60).view(6, 10)
step = lambda x: F.softmax(x * 0.5, -1) * 3
f = torchjanus.function(step)
for _ in range(5):
    y = f(x)
torch.testing.assert_close(y, step(x))
assert f.stats()["hits"] > 0
"""


@pytest.fixture
def run(tmp_path_factory):
    script = tmp_path_factory.mktemp("program") / "program.py"
    script.write_text(PROGRAM)
    return lambda **environment: run_script(script, environment)


def run_script(script, environment):
    result = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    return result.stderr


def kept(folder):
    return sorted((folder / "kernels").glob("*")) if (folder / "kernels").exists() else []


def test_a_second_process_finds_the_kernels_of_the_first(run, tmp_path):
    run(TORCHJANUS_CACHE=str(tmp_path))
    first = {path: path.stat().st_mtime_ns for path in kept(tmp_path)}
    assert first
    assert run(TORCHJANUS_CACHE=str(tmp_path)) == ""
    assert {path: path.stat().st_mtime_ns for path in kept(tmp_path)} == first


def test_damaged_kernels_are_compiled_again(run, tmp_path):
    run(TORCHJANUS_CACHE=str(tmp_path))
    files = kept(tmp_path)
    for number, path in enumerate(files):
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2] if number % 2 else whole[:-1] + b"?")
    assert run(TORCHJANUS_CACHE=str(tmp_path)) == ""
    assert kept(tmp_path) == files


@pytest.mark.parametrize(
    "switch", [{"TORCHJANUS_DISABLE": "kernel_cache,background"}, {"TORCHJANUS_CACHE": "0"}]
)
def test_it_can_be_switched_off(run, tmp_path, switch):
    run(**{"XDG_CACHE_HOME": str(tmp_path), **switch})
    assert not list(tmp_path.rglob("*"))


CONVOLUTION = """
import torch, torchjanus
import torch.nn.functional as F
x, w = torch.randn(2, 3, 16, 16), torch.randn(8, 3, 3, 3)
step = lambda x: F.conv2d(x, w).relu()
f = torchjanus.function(step)
for _ in range(6):
    y = f(x)
torch.testing.assert_close(y, step(x))
assert f.stats()["hits"] > 0
"""


PRODUCT = (
    CONVOLUTION.replace("torch.randn(2, 3, 16, 16)", "torch.randn(128, 128)")
    .replace("torch.randn(8, 3, 3, 3)", "torch.randn(128, 128)")
    .replace("F.conv2d(x, w)", "F.linear(x, w)")
)


@pytest.mark.parametrize("program", [PROGRAM, CONVOLUTION, PRODUCT])
@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_home_that_cannot_be_written_is_said_once(tmp_path, program, threads):
    """Of kernels, of the fastest way for each product, and of what threads cost together."""
    (tmp_path / "file").write_text("")
    script = tmp_path / "program.py"
    script.write_text(program)
    cache = str(tmp_path / "file")
    said = run_script(script, {"TORCHJANUS_CACHE": cache, "OMP_NUM_THREADS": threads})
    assert said.count("torchjanus:") == 1, said


@pytest.mark.parametrize(
    "program, named",
    [(CONVOLUTION, b"convolution:"), (PRODUCT, b"product:")],
    ids=["convolution", "product"],
)
def test_choices_by_measurement_are_kept(tmp_path, program, named):
    script = tmp_path / "program.py"
    script.write_text(program)
    cache = tmp_path / "cache"
    assert run_script(script, {"TORCHJANUS_CACHE": str(cache)}) == ""
    (kept,) = (cache / "ways").iterdir()
    written = kept.stat().st_mtime_ns
    assert run_script(script, {"TORCHJANUS_CACHE": str(cache)}) == ""
    assert kept.stat().st_mtime_ns == written
    whole = kept.read_bytes()
    assert named in whole
    kept.write_bytes(whole[:-3])
    assert run_script(script, {"TORCHJANUS_CACHE": str(cache)}) == ""
    assert named in kept.read_bytes()


def test_choices_are_not_kept_where_kernels_are_not(tmp_path):
    script = tmp_path / "convolution.py"
    script.write_text(CONVOLUTION)
    cache = tmp_path / "cache"
    run_script(
        script, {"TORCHJANUS_CACHE": str(cache), "TORCHJANUS_DISABLE": "kernel_cache,background"}
    )
    assert not cache.exists()
