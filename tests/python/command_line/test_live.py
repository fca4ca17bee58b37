"""The live view: the program prints, returns and raises what it does without it, and the view tells what happened."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import textwrap
import time

import pytest

from torchjanus import command, command_line, happenings, live

PROGRAM = """
import gc, os, sys, threading, time
import torch, torchjanus
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)).double()
optimizer = torch.optim.SGD(net.parameters(), 0.01)
start = time.monotonic()
steps = 0
while time.monotonic() - start < 1.2 or not any(each["hits"] for each in torchjanus.stats()["functions"]):
    loss = (net(torch.ones(4, 8, dtype=torch.float64)) - steps % 3).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    steps += 1
    if steps <= 5:
        print(steps, loss.item())
time.sleep(0.6)  # for a last look
print([each.name for each in threading.enumerate()], type(sys.stdout), sys.stdout.isatty(), os.get_terminal_size)
print("to stderr", file=sys.stderr)
os.system("echo of a process")
{end}
"""
COLUMNS, ROWS = 100, 30


def run(folder, arguments, *, stdout, lines=ROWS, term="xterm"):
    """Runs a script with stderr on a terminal, and stdout there or into a pipe: what each got, and the code."""
    master, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, COLUMNS, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "torchjanus", "run", *arguments, "program.py"],
        cwd=folder, stdin=subprocess.DEVNULL, stdout=terminal if stdout == "terminal" else subprocess.PIPE,
        stderr=terminal,
        env={**os.environ, "TERM": term, "TORCHJANUS_CACHE": str(folder / "cache"), "PYTHONUNBUFFERED": "1",
             "PYTHON_COLORS": "0", "TORCHJANUS_DISABLE": "budget"},
    )  # fmt: skip
    os.close(terminal)
    got = {master: b""}
    if process.stdout is not None:
        got[process.stdout.fileno()] = b""
    opened, deadline = set(got), time.monotonic() + 250
    while opened and time.monotonic() < deadline:
        for file in select.select(list(opened), [], [], 1)[0]:
            try:
                data = os.read(file, 65536)
            except OSError:  # how a terminal says that nobody has it open
                data = b""
            got[file] += data
            opened -= set() if data else {file}
    code = process.wait(timeout=60)
    shown = got.pop(master).decode()
    os.close(master)
    return shown, (b"".join(got.values())).decode(), code


def without_view(shown):
    """What the program wrote: all else is between saving and restoring the cursor."""
    shown = re.sub(rf"(\x1bD){{{live._ROWS}}}\x1b\[{live._ROWS}A", "", shown)
    return re.sub(r"\x1b7.*?\x1b8", "", shown, flags=re.DOTALL)


def texts_of_view(shown):
    drawn = "".join(re.findall(r"\x1b7(.*?)\x1b8", shown, flags=re.DOTALL))
    return re.sub(r"\x1b\[[\d;]*[A-Za-z]", "\n", drawn)


@pytest.fixture
def program(tmp_path):
    def write(end):
        (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM.format(end=end)))
        return tmp_path

    return write


ENDS = {
    "as usual": ("", 0),
    "with a code": ("sys.exit(7)", 7),
    "with an error": ("raise KeyError('of the program')", 1),
}


@pytest.mark.parametrize("end", ENDS)
def test_program_writes_and_returns_the_same(program, end):
    text, code = ENDS[end]
    folder = program(text)
    plain = run(folder, [], stdout="terminal")
    shown, _, its_code = run(folder, ["--live"], stdout="terminal")
    assert its_code == plain[2] == code
    assert "\x1b" not in plain[0]
    assert without_view(shown) == plain[0]
    told = texts_of_view(shown)
    assert "steps/s" in told and "a graph was made in" in told and "program.py" in told
    assert shown.rindex("\x1b[r") > shown.rindex("\x1b[1;"), "the rows are given back"


def test_redirected_stdout_has_nothing_of_the_view(program):
    folder = program("")
    plain = run(folder, [], stdout="pipe")
    shown, printed, code = run(folder, ["--live"], stdout="pipe")
    assert (printed, code) == plain[1:]
    assert without_view(shown) == plain[0] == "to stderr\r\n"
    assert "steps/s" in texts_of_view(shown)


@pytest.mark.parametrize("how", [{"term": "dumb"}, {"lines": live._ROWS + 2}])
def test_nothing_is_shown_where_there_is_no_room_for_it(program, how):
    folder = program("")
    assert run(folder, ["--live"], stdout="terminal", **how) == run(
        folder, [], stdout="terminal", **how
    )


def test_nothing_is_shown_where_stderr_is_no_terminal(program):
    folder = program("")
    arguments = [sys.executable, "-m", "torchjanus", "run", "--live", "program.py"]
    done = subprocess.run(arguments, cwd=folder, capture_output=True, timeout=250)
    assert done.stderr == b"to stderr\n" and b"\x1b" not in done.stdout


def test_view_ends_where_the_program_leaves_the_terminal(program):
    folder = program("os.dup2(os.open('errors', os.O_WRONLY | os.O_CREAT), 2); time.sleep(0.6)")
    shown, _, code = run(folder, ["--live"], stdout="terminal")
    assert code == 0 and (folder / "errors").read_bytes() == b""
    assert "steps/s" in texts_of_view(shown)


def test_forked_process_leaves_the_view_alone(program):
    folder = program("if os.fork() == 0: sys.exit(0)\nos.wait()")
    shown, _, code = run(folder, ["--live"], stdout="terminal")
    assert code == 0 and shown.count("\x1b[r") == 1


def test_terminal_that_is_closed_changes_nothing(tmp_path):
    waiting = "while not os.path.exists('closed'):\n    time.sleep(0.05)\ntime.sleep(0.6)\n"
    (tmp_path / "program.py").write_text(f"import os, time\n{waiting}raise SystemExit(7)\n")
    master, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "torchjanus", "run", "--live", "--explain", "--report", "r.html", "program.py"],
        cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=terminal,
        env={**os.environ, "TERM": "xterm"},
    )  # fmt: skip
    os.close(terminal)
    shown = b""
    while b"no function or loop" not in shown:
        shown += os.read(master, 65536)
    os.close(master)
    (tmp_path / "closed").write_text("")
    assert (process.communicate(timeout=120)[0], process.returncode) == (b"", 7)
    assert (tmp_path / "r.html").stat().st_size > 0


def test_one_rank_shows_it(monkeypatch):
    monkeypatch.setattr(live, "begin", lambda title: title)
    options = command_line.parser().parse_args(["run", "--live", "program.py"])
    assert command._live(options) == "program.py"
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank, shown in (("0", "program.py"), ("1", None)):
        monkeypatch.setenv("RANK", rank)
        assert command._live(options) == shown
    assert command._live(command_line.parser().parse_args(["run", "program.py"])) is None


# --- what is shown --------------------------------------------------------------------------------


def stats(**changes):
    return {
        "name": "step", "file": "train.py", "line": 3, "state": "profiling", "calls": 0, "passed": 0, "hits": 0,
        "generated": 0, "holds_graphs": False, "reasons": [], "in_python": {"runs": 0, "milliseconds": 0.0},
        "milliseconds": dict.fromkeys(("profiling", "generating", "optimising", "compiling", "running"), 0.0),
        **changes,
    }  # fmt: skip


def milliseconds(**changes):
    return {**stats()["milliseconds"], **changes}


REASON = {"code": "guard_failed", "sentence": "x was 3", "file": "/a/train.py", "line": 9}


def test_happenings_between_two_moments():
    before = [stats(calls=3)]
    made = stats(
        calls=9, state="graph", generated=1, milliseconds=milliseconds(generating=4, compiling=6)
    )
    assert list(happenings.between(before, [made])) == ["step: a graph was made in 10 ms"]
    assert list(happenings.between([made], [made])) == []
    left = {**made, "reasons": [{**REASON, "count": 1}]}
    assert list(happenings.between([made], [left])) == ["train.py:9: [guard_failed] x was 3"]
    again = {**left, "reasons": [{**REASON, "count": 50}]}
    assert list(happenings.between([again], [{**left, "reasons": [{**REASON, "count": 51}]}])) == []
    cut = {
        **stats(state="cut"),
        "parts": [],
        "cuts": [{"line": 5, "code": "statement", "sentence": "class", "reason": {}}],
    }
    assert list(happenings.between(before, [cut])) == ["step is cut at line 5: [statement] class"]
    given_up = stats(calls=9, state="imperative")
    assert list(happenings.between(before, [given_up])) == ["step stays imperative"]


def test_figures_are_those_of_the_last_seconds():
    def look(seconds, **changes):
        return live._Look(seconds, [stats(**changes)])

    assert "no function or loop" in live.figures([look(0.0)])
    first = look(1.0, calls=10, hits=5, generated=1, milliseconds=milliseconds(running=100))
    last = look(3.0, calls=50, hits=45, generated=1, milliseconds=milliseconds(running=1600))
    told = live.figures([first, last])
    assert told == "20 steps/s   ████████░░ 75 % as graphs   45 of 50 calls   1 graph   step"


def test_rows_are_as_many_and_as_wide_as_the_view():
    looks = [live._Look(0.0, [stats()]), live._Look(1.0, [stats(name="n" * 200, calls=9)])]
    view = live.View("a title\n" * 30, terminal=None)
    view.looks.extend(looks)
    view.events.extend([(61.0, "an event\x1b[2J\n" * 20), (3700.0, "✓" * 200)])
    lines = list(view._lines(80))
    assert len(lines) == live._ROWS
    plain = [re.sub(r"\x1b\[[\d;]*m", "", each) for each in lines]
    assert all(len(each) <= 80 and each.isprintable() for each in plain), plain
    assert plain[2].startswith("1:01  an event") and plain[3].startswith("1:01:40  ✓")
