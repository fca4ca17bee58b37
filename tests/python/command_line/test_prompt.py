"""Functions that have no file: typed at Python's prompt, or in cells of a notebook."""

import linecache
import os
import pty
import select
import sys
import time
import types

import pytest

import torch
import torchjanus


def session(statements, timeout=60):
    """What an interactive Python prints to a terminal when these lines are typed."""
    process, terminal = pty.fork()
    if process == 0:
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONSTARTUP"}
        os.execve(
            sys.executable, [sys.executable, "-q"], {**environment, "TERM": "dumb", "HOME": "/"}
        )
    output, end = b"", time.monotonic() + timeout

    def wait_for_prompt():
        nonlocal output
        while not output.endswith((b">>> ", b"... ")) and time.monotonic() < end:
            if select.select([terminal], [], [], 1.0)[0]:
                output += os.read(terminal, 65536)

    try:
        wait_for_prompt()
        for line in statements:
            output += b"\n"  # what was there before is no prompt for this line
            os.write(terminal, line.encode() + b"\n")
            wait_for_prompt()
    finally:
        os.close(terminal)
        os.waitpid(process, 0)
    return output.decode()


needs_terminal = pytest.mark.skipif(
    sys.version_info >= (3, 13), reason="the prompt keeps the source since Python 3.13"
)


@needs_terminal
def test_functions_typed_at_the_prompt():
    text = session(
        """\
import torch, torchjanus
x = torch.ones(2)
def run(f, *arguments):
    for _ in range(6): result = f(*arguments)
    return "hits", f.stats()["hits"], result.tolist()

def plain(x):
    return x + 1

run(torchjanus.function(plain), x)
@torchjanus.function
def decorated(x, scale=3):
    y = x * scale
    return y + 1

run(decorated, x)
def plain(x):
    return x + 2

run(torchjanus.function(plain), x)
one, two = torchjanus.function(lambda x: x * 5), torchjanus.function(lambda x: x * 6)
run(one, x), run(two, x)
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(2))
    def forward(self, x):
        return self.w * x + 7

model = torchjanus.function(Model())
for _ in range(6): result = model(x)

"model", torchjanus.stats(model)["hits"], result.tolist()
@torchjanus.function
def repeated(x):
    x = x + 1
    x = x + 1
    return x

run(repeated, x)
print("line of", torchjanus.explain(decorated).count("y = x * scale"))
print("blocks beside it:", torchjanus.explain(decorated).count("  in decorated"))
""".split("\n")
    )
    assert "blocks beside it: 0" in text, text
    assert "('hits', 3, [2.0, 2.0])" in text, text
    assert "('hits', 3, [4.0, 4.0])" in text, text
    assert "('hits', 3, [3.0, 3.0])" in text, text
    assert "(('hits', 3, [5.0, 5.0]), ('hits', 3, [6.0, 6.0]))" in text, text
    assert "('model', 3, [8.0, 8.0])" in text, text
    assert "line of 1" in text, text
    assert "no_source" not in text and "Traceback" not in text, text


@needs_terminal
def test_what_the_history_does_not_hold_says_so():
    text = session(
        """\
import torch, torchjanus, readline
readline.clear_history()
space = {}
exec(compile("def hidden(x): return x + 1", "<stdin>", "exec"), space)
f = torchjanus.function(space["hidden"])
f(torch.ones(2)).tolist(), f.stats()["reasons"][0]["sentence"]
""".split("\n")
    )
    assert "([2.0, 2.0], 'there is no source of hidden: Python keeps no text of <stdin>" in text, (
        text
    )
    assert "no history holds it" in text


# --- notebooks ------------------------------------------------------------------------------------


class Notebook:
    """Runs cells as IPython does: each with a file name of its own that linecache knows, statement by
    statement, in one namespace."""

    def __init__(self):
        self.space = {"__name__": "__main__"}
        self.count = 0

    def run(self, cell):
        import ast

        self.count += 1
        name = f"/tmp/ipykernel_1/{self.count}{abs(hash(cell)) % 10**9}.py"
        linecache.cache[name] = (len(cell), None, cell.splitlines(True), name)
        module = ast.parse(cell)
        *statements, last = module.body
        for statement in statements:
            code = compile(ast.Module([statement], []), name, "exec")
            exec(code, self.space)
        if isinstance(last, ast.Expr):
            return eval(compile(ast.Expression(last.value), name, "eval"), self.space)
        return exec(compile(ast.Module([last], []), name, "exec"), self.space)


def test_cells_of_a_notebook():
    notebook = Notebook()
    notebook.run("""\
import torch
import torch.nn.functional as F
import torchjanus
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = [(torch.randn(5, 4), torch.randint(0, 3, (5,))) for _ in range(8)]
""")
    notebook.run("""\
@torchjanus.function
def train_step(x, y):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss

losses = [train_step(x, y).item() for x, y in data]
""")
    assert notebook.run('train_step.stats()["hits"]') == 5
    assert "loss.backward()" in notebook.run("train_step.explain()")
    # The cell is edited and run again: another function of the same name, in another text.
    notebook.run("""\
@torchjanus.function
def train_step(x, y):
    loss = F.cross_entropy(model(x), y) * 0
    return loss

zeros = [train_step(x, y).item() for x, y in data]
""")
    assert notebook.space["zeros"] == [0.0] * 8
    assert notebook.run('train_step.stats()["hits"]') == 5
    assert notebook.run("""\
f, g = (torchjanus.function(h) for h in (lambda x: x + 1, lambda x: x - 1))
for _ in range(6):
    results = f(torch.ones(2)).tolist(), g(torch.ones(2)).tolist()
(results, f.stats()["hits"], g.stats()["hits"])
""") == (([2.0, 2.0], [0.0, 0.0]), 3, 3)


def test_cell_with_magics_beside_the_function():
    lines = ["%timeit 1\n", "@torchjanus.function\n", "def f(x):\n", "    return x * 2\n"]
    name = "/tmp/ipykernel_1/magics.py"
    linecache.cache[name] = (1, None, lines, name)
    space = {"torchjanus": torchjanus}
    exec(compile("\n" + "".join(lines[1:]), name, "exec"), space)
    for _ in range(6):
        assert space["f"](torch.ones(2)).tolist() == [2.0, 2.0]
    assert space["f"].stats()["hits"] == 3


def test_cell_under_a_magic_that_compiles_it(monkeypatch):
    """`%%time` gives the code below it a file name of its own."""
    cell = "%%time\n\n@torchjanus.function\ndef f(x):\n    return x * 2\n"
    older = "%%time\n\n@torchjanus.function\ndef f(x):\n    return x * 3\n"
    shell = types.SimpleNamespace(
        history_manager=types.SimpleNamespace(input_hist_raw=["", cell, older, "1 + 1"])
    )
    ipython = types.SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    space = {"torchjanus": torchjanus}
    exec(compile(cell.partition("\n")[2], "<timed exec>", "exec"), space)
    for _ in range(6):
        assert space["f"](torch.ones(2)).tolist() == [2.0, 2.0]
    assert space["f"].stats()["hits"] == 3
    shell.history_manager.input_hist_raw.clear()
    exec(compile("def g(x):\n    return x", "<timed exec>", "exec"), space)
    g = torchjanus.function(space["g"])
    g(torch.ones(2))
    (reason,) = g.stats()["reasons"]
    assert reason["code"] == "no_source" and "no history holds it" in reason["sentence"]
