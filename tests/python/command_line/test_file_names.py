"""Programs whose file, or its folder, has a name that is no UTF-8: they run as graphs, and every report names them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys, traceback, warnings
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(8, 3).double()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(16, 8, dtype=torch.float64)
for step in range(30):
    loss = net(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step > 20:
        warnings.warn(f"late")
try:
    for step in range(9):
        loss = net(x[: 16 - step // 8 * 16].reshape(16, 8)).square().mean()
        loss.backward()
except RuntimeError as error:
    print(ascii(traceback.format_exc()))
print(loss.item(), ascii(__file__), ascii(sys.argv))
"""
NAMES = ["train\udcff.py", "folder\udcff/train.py"]
LINE = PROGRAM.splitlines().index("    loss = net(x).square().mean()") + 1


def run(folder: Path, *command: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, timeout=300,
        env=os.environ | {"TORCHJANUS_CACHE": "0"},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_scripts_run_as_graphs_and_are_reported(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(PROGRAM)
    reports = ("--report", "r.html", "--trace", "t.json", "--stats", "s.json", "--tensorboard", "t")
    plain = run(tmp_path, name)
    assert run(tmp_path, "-m", "torchjanus", "run", *reports, name) == plain
    assert plain[0] == 0 and "\\udcff" in plain[1]
    shown = name.replace("\udcff", "\\udcff")
    first = json.loads((tmp_path / "s.json").read_text())["functions"][0]
    assert first["file"] == str(tmp_path / shown) and first["hits"] > 0
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    kernels = [each for each in events if each.get("cat") in ("kernel", "operator")]
    assert any(each["args"]["line"] == f"{tmp_path / shown}:{LINE}" for each in kernels)
    assert (tmp_path / shown).name in (tmp_path / "r.html").read_text()
    told = run(tmp_path, "-m", "torchjanus", "run", "--explain", name)
    assert f"{tmp_path / shown}:{LINE}" in told[2] and "as a graph" in told[2]
    assert re.search(rf"graph +{LINE} \|     loss = net\(x\)\.square\(\)\.mean\(\)", told[2])


@pytest.mark.parametrize("name", NAMES)
def test_functions_are_explained_with_their_lines(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(
        "import torch, torchjanus\n@torchjanus.function\ndef f(x):\n    return (x * 2).tanh()\n"
        "for _ in range(9):\n    value = f(torch.ones(3, dtype=torch.float64))\n"
        "assert torch.equal(value, f.__wrapped__(torch.ones(3, dtype=torch.float64)))\n"
        "print(f.stats()['hits'], f.stats()['file'])\nprint(torchjanus.explain(f), f.graph())\n"
        "torchjanus.report(f, 'f.html')\n"
        "with torch.profiler.profile() as profiled:\n    f(torch.ones(3, dtype=torch.float64))\n"
        "print([each.key for each in profiled.key_averages() if each.key.startswith('torchjanus::')])\n"
    )
    code, printed, errors = run(tmp_path, name)
    assert code == 0, errors
    hits, file = printed.splitlines()[0].split(" ", 1)
    assert int(hits) > 0 and file == str(tmp_path / name.replace("\udcff", "\\udcff"))
    assert (
        "4 |     return (x * 2).tanh()" in printed and "tanh" in (tmp_path / "f.html").read_text()
    )
    assert f"torchjanus::mul tanh ({file}:4)" in printed.replace("\\\\", "\\")
