"""The debug switches: fallbacks as errors, and names that do not exist."""

import os
import subprocess
import sys

import pytest

import torch
import torchjanus

ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("TORCHJANUS_")}


@pytest.fixture
def strict():
    torchjanus.options.strict = True
    yield
    torchjanus.options.strict = False


def refused(x):
    y = x + 1
    y.note = 1
    x.zero_()
    return y


def here(f, offset):
    return f"{__file__}:{f.__code__.co_firstlineno + offset}"


def test_fallback_raises_each_time_if_strict(strict):
    f = torchjanus.function(refused)
    for _ in range(3):
        f(torch.ones(2))
    for _ in range(3):
        x = torch.ones(2)
        with pytest.raises(RuntimeError) as raised:
            f(x)
        text = str(raised.value)
        assert text.startswith("torchjanus: refused stays imperative: ")
        assert here(refused, 2) in text and "[heap_write]" in text
        assert x.tolist() == [1, 1]  # nothing ran


def test_what_can_never_be_converted_raises_if_strict(strict):
    def rows(x):
        yield x

    f = torchjanus.function(rows)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"rows stays imperative: .*\[generator\]"):
            f(torch.ones(2))
    g = torchjanus.function(len)
    with pytest.raises(RuntimeError, match=r"len stays imperative: .*test_switches.*\[no_source\]"):
        g([])


def test_what_runs_as_a_graph_or_holds_no_tensors_does_not_raise(strict):
    f = torchjanus.function(lambda x: x + 1)
    g = torchjanus.function(lambda n: n + 1)
    for i in range(8):
        assert f(torch.ones(2)).tolist() == [2, 2]
        assert g(i) == i + 1
    assert f.stats()["hits"] > 0
    assert g.stats()["state"] == "imperative"


def test_exception_of_the_user_is_its_own_if_strict(strict):
    f = torchjanus.function(lambda x, i: x[i])
    for i in (0, 1, 2, 0, 1, 2):
        f(torch.ones(3), torch.tensor([i]))
    with pytest.raises(IndexError):
        f(torch.ones(3), torch.tensor([7]))


def test_switched_off_again_it_runs_imperatively():
    f = torchjanus.function(refused)
    torchjanus.options.strict = True
    try:
        for _ in range(3):
            f(torch.ones(2))
        with pytest.raises(RuntimeError, match="stays imperative"):
            f(torch.ones(2))
    finally:
        torchjanus.options.strict = False
    for _ in range(3):
        assert f(torch.ones(2)).tolist() == [2, 2]


SCRIPT = """
import torch
w = torch.ones(2, requires_grad=True)
for i in range(9):
    (w * i).sum().backward()
    (w + i).note = i
    print(i)
"""


def test_script_fails_if_strict(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(SCRIPT)
    command = [sys.executable, "-m", "torchjanus", "run", str(path)]
    relaxed = subprocess.run(command, capture_output=True, text=True)
    assert relaxed.returncode == 0 and relaxed.stdout.split() == [str(i) for i in range(9)]
    strict = subprocess.run(
        command, capture_output=True, text=True, env={**ENVIRONMENT, "TORCHJANUS_STRICT": "1"}
    )
    assert strict.returncode == 1
    assert "RuntimeError: torchjanus: <module>, loop at line 4 stays imperative" in strict.stderr
    assert f"{path}:6: [heap_write]" in strict.stderr


def test_unknown_names_are_reported_once():
    outcome = subprocess.run(
        [sys.executable, "-c", "import torchjanus"],
        env={**ENVIRONMENT, "TORCHJANUS_LOG": "pass,spec:2", "TORCHJANUS_DISABLE": "fuse,fusion"},
        capture_output=True, text=True,
    )  # fmt: skip
    lines = outcome.stderr.splitlines()
    assert len(lines) == 2
    assert "TORCHJANUS_LOG names spec, which does not exist" in lines[0]
    assert "speculate" in lines[0] and "verify" in lines[0]
    assert "TORCHJANUS_DISABLE names fusion, which does not exist" in lines[1]
    assert "merge_common" in lines[1] and "kernels" in lines[1]


def test_values_that_mean_nothing_are_reported():
    wrong = {"TORCHJANUS_LOG": "pass:x", "TORCHJANUS_STOP_AFTER": "1x", "TORCHJANUS_STRICT": "si"}
    outcome = subprocess.run(
        [sys.executable, "-c", "import torchjanus; print(torchjanus.options.strict)"],
        env={**ENVIRONMENT, **wrong}, capture_output=True, text=True,
    )  # fmt: skip
    assert outcome.stdout == "False\n"
    assert outcome.stderr.splitlines() == [
        "torchjanus: TORCHJANUS_LOG=x is ignored: a number is expected",
        "torchjanus: TORCHJANUS_STOP_AFTER=1x is ignored: a number is expected",
        "torchjanus: TORCHJANUS_STRICT=si is ignored: 1 or 0 is expected",
    ]


def test_known_names_are_not_reported():
    outcome = subprocess.run(
        [sys.executable, "-c", "import torchjanus"],
        env={
            **ENVIRONMENT, "TORCHJANUS_LOG": "speculate:2,pass", "TORCHJANUS_DISABLE": "kernels,fold"
        },
        capture_output=True, text=True,
    )  # fmt: skip
    assert (outcome.returncode, outcome.stderr) == (0, "")
