"""Reports on co-execution: counts, what looked in which line, and which lines were noted."""

import json
import os
import subprocess
import sys
import textwrap

import torch
import torchjanus
from torch import nn

PROGRAM = """
import numpy
import torch
from torch import nn

model = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 3))
made = {}
exec("def odd(x): return (x * 2 + 1).sin()", made)
odd = made["odd"]

def evaluated(x):
    return odd(x).exp() * 3

for number in range(60):
    x, y = torch.randn(5, 6), torch.randn(5, 3)
    loss = (evaluated(model(odd(x))) - y).square().mean()  # a line
    odd(loss).backward()  # gradients
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.sub_(odd(parameter.grad) * 1e-3)
            parameter.grad = None
    if odd(loss).item() > 1e9:  # a look
        break
    later = odd(loss.detach())
"""


def line_of(comment):
    lines = PROGRAM.splitlines()
    return next(number for number, line in enumerate(lines, start=1) if line.endswith(comment))


def run(tmp_path):
    """The statistics and the text of a script whose loop is co-executed."""
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "start.py").write_text(
        textwrap.dedent("""
        import json, runpy, sys
        import torchjanus
        from torchjanus import _core, script, text_report

        _core.testing.let_times_decide(False)
        code = script.compile_script(open("program.py").read(), "program.py")
        exec(code, {"__name__": "__main__"})
        stats = [each for each in _core.all_stats() if each["state"] == "cut"]
        print(json.dumps({"stats": stats, "text": str(text_report.explain_all())}))
        """)
    )
    environment = {**os.environ, "TORCHJANUS_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "start.py"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    return told["stats"], told["text"]


def test_a_loop(tmp_path):
    (stats,), text = run(tmp_path)
    told = stats["co_execution"]
    assert told["state"] == "co-executed"
    assert told["is_loop"]
    assert told["iterations"] >= 40
    assert told["in_graphs"] > told["noted"] / 3
    assert told["one_by_one"] > 0
    assert told["noted"] >= told["in_graphs"] + told["one_by_one"] + told["never_run"]
    assert told["segments"] >= told["graphs"] > 0
    assert told["pending"]["operators"] > 0  # nobody looks at `later`
    assert told["pending"]["bytes"] > 0
    looks = {(each["line"], each["by"]): each for each in told["looks"]}
    look = looks[line_of("# a look"), "aten::_local_scalar_dense"]
    assert look["file"] == "program.py"
    assert 10 <= look["count"] <= 60
    assert look["milliseconds"] > 0
    noted = {each["line"]: each["operators"] for each in told["lines"]}
    assert told["sampled"] >= 3
    assert noted[line_of("# a line")] >= 8 * told["sampled"]
    assert noted[line_of("# gradients")] >= 5 * told["sampled"]
    assert "operators noted in" in text
    assert f"looked at in program.py:{line_of('# a look')} by item()" in text
    marks = [line.split() for line in text.splitlines() if line.endswith(("# a line", "# a look"))]
    assert marks[0][:2] == ["co-executed", str(line_of("# a line"))]
    assert "operators noted an iteration" in text
    assert "^ looked at by item()" in text


def test_a_function():
    model = nn.Linear(4, 4)
    made = {"model": model}
    exec(
        "def odd(x):\n    return (model(x) * 2 + 1).sin().exp() * 3 + x.abs() - x.square()\n", made
    )

    step = torchjanus.function(made["odd"])
    for _ in range(40):
        assert step(torch.ones(2, 4)).sum().item() < 1e9
    told = torchjanus.stats(step)["co_execution"]
    assert told["state"] == "co-executed"
    assert not told["is_loop"]
    assert {each["file"] for each in told["lines"]} == {"<string>"}
    text = torchjanus.explain(step)
    assert f"operators noted in {told['iterations']} calls" in text


def test_what_is_given_up_says_why():
    made = {}
    exec("def odd(x):\n    for _ in range(9):\n        x = x * 2 - x\n    return x\n", made)
    step = torchjanus.function(made["odd"])
    for size in range(2, 60):
        step(torch.ones(size))
    assert "given up: its operators differ from call to call" in torchjanus.explain(step)
