"""A program with lines of each kind, and the page of its report."""

import os
import subprocess
import sys

PROGRAM = '''\
"""A program with lines of each kind."""
import gc

import torch
from torch import nn
import torchjanus


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(6, 12), nn.Linear(12, 3)

    def forward(self, x):
        h = torch.tanh(self.first(x))  # inlined
        if h.sum() > 1e9:  # assumed
            h = h / 2
        return self.second(h)


net = Net()
optimizer = torch.optim.SGD(net.parameters(), 0.01)
for step in range(40):
    loss = net(torch.randn(5, 6)).square().mean()  # graph
    if net is None:
        print("never")  # not run
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def doubled(x):
    return x * 2  # called by a part


for step in range(40):
    y = doubled(torch.randn(5, 3)) + step
    gc.collect(0)  # cut
    z = (y * y).sum(0).exp()

made = {}
exec("def odd(x): return (x * 2 + 1).sin()", made)
odd = made["odd"]
for number in range(60):
    x = torch.randn(5, 3)
    y = (odd(x * 3).exp() - x).square()  # co-executed
    z = odd(y).mean() + (x * x).sum()
    if odd(z).item() > 1e9:
        break


@torchjanus.function
def scaled(x, text="<script>alert('& not run')</script>"):
    class Scale:  # imperative
        by = 2

    return x * Scale.by


for number in range(6):
    scaled(torch.ones(2))
'''
START = """\
import sys
from torchjanus import _core, command

_core.testing.let_times_decide(False)
raise SystemExit(command.main(sys.argv[1:]))
"""


def line_of(comment):
    lines = PROGRAM.splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"# {comment}"))


def write_page(folder):
    """Runs the program, which writes its report; gives the file."""
    (folder / "program.py").write_text(PROGRAM)
    (folder / "start.py").write_text(START)
    done = subprocess.run(
        [sys.executable, "start.py", "run", "--report", "out.html", "program.py"],
        cwd=folder, capture_output=True, text=True, timeout=300,
        env={**os.environ, "TORCHJANUS_CACHE": str(folder / "cache")},
    )  # fmt: skip
    assert done.returncode == 0 and not done.stderr, done.stderr
    return folder / "out.html"
