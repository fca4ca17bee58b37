"""Timelines: in the format of Chrome's tracing, and with all that happened."""

import json
import os
import subprocess
import sys
import threading

import pytest

import torch
import torchjanus
from torchjanus import _core

PROGRAM = """
import time
import torch
import torchjanus
from torch import nn

net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(net.parameters(), 0.01)


def train(steps):
    for step in range(steps):
        loss = (net(torch.ones(4, 8)) - 1).square().mean()  # forward
        if loss < 0:
            loss = loss * 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # update


while not any(each["hits"] for each in torchjanus.stats()["functions"]):
    train(4)
    time.sleep(0.01)
train(30)
net.bias = nn.Linear(1, 1)  # another guard fails
train(4)
"""


def line_of(comment):
    lines = PROGRAM.splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"# {comment}"))


ROUNDING = 50  # microseconds by which a span may stand out of the one around it


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The timeline of a script, whose kernels are compiled in the background."""
    folder = tmp_path_factory.mktemp("trace")
    (folder / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "torchjanus", "run", "--trace", "out.json", "program.py"],
        cwd=folder, capture_output=True, text=True, timeout=300,
        env={**os.environ, "TORCHJANUS_DISABLE": "budget", "TORCHJANUS_CACHE": str(folder / "cache")},
    )  # fmt: skip
    assert done.returncode == 0 and not done.stderr, done.stderr
    return json.loads((folder / "out.json").read_text())


def spans(told, category):
    return [
        each for each in told["traceEvents"] if each.get("cat") == category and each["ph"] == "X"
    ]


def test_events_have_what_the_format_asks_for(told):
    assert told["traceEvents"] and told["otherData"]["left out"] == 0
    for event in told["traceEvents"]:
        assert isinstance(event["name"], str) and event["name"]
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int)
        assert isinstance(event.get("args", {}), dict)
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name") and event["args"]["name"]
            continue
        assert event["ph"] in ("X", "i") and isinstance(event["cat"], str) and event["ts"] > 0
        assert event["dur"] > 0 if event["ph"] == "X" else event["s"] == "t"


def test_spans_of_a_thread_nest(told):
    complete = [each for each in told["traceEvents"] if each["ph"] == "X"]
    for thread in {each["tid"] for each in complete}:
        open_until = []
        of_thread = [each for each in complete if each["tid"] == thread]
        for each in sorted(of_thread, key=lambda each: (each["ts"], -each["dur"])):
            while open_until and open_until[-1] <= each["ts"] + ROUNDING:
                open_until.pop()
            end = each["ts"] + each["dur"]
            assert not open_until or end <= open_until[-1] + ROUNDING, each
            open_until.append(end)


def test_what_happened_is_there(told):
    names = {
        each["args"]["name"] if each["ph"] == "M" else each["name"] for each in told["traceEvents"]
    }
    loop = next(each["name"] for each in spans(told, "graph")).removeprefix("graph of ")
    expected = {
        loop, f"{loop} (profiled)", f"generate {loop}", f"graph of {loop}", "guards", "compile a kernel",
        "guard_failed", "program.py", "MainThread",
    }  # fmt: skip
    assert expected <= names, expected - names
    calls = spans(told, "call")
    runs = [each for each in calls if each["args"]["details"] == "as a graph"]
    assert 20 <= len(runs) < len(calls)


def test_kernels_are_named_by_operators_and_line(told):
    kernels = spans(told, "kernel")
    places = {each["args"]["line"].rpartition(os.sep)[2] for each in kernels}
    expected = {f"program.py:{line_of(each)}" for each in ("forward", "update")}
    assert expected <= places, places
    assert any("mul" in each["name"].split() for each in kernels), {
        each["name"] for each in kernels
    }
    assert any(each["name"] in ("mm", "linear") for each in spans(told, "operator"))


def test_background_work_has_a_thread_of_its_own(told):
    (main,) = {each["tid"] for each in spans(told, "call")}
    background = {each["tid"] for each in spans(told, "background")}
    assert main not in background
    names = {
        each["tid"]: each["args"]["name"]
        for each in told["traceEvents"]
        if each["name"] == "thread_name"
    }
    assert {names[each] for each in background} == {"torchjanus"}


def test_trace_in_a_program(tmp_path):
    @torchjanus.function
    def f(x):
        return (x * 2).relu()

    for _ in range(5):
        f(torch.ones(3))
    with torchjanus.trace(tmp_path / "one.json"):
        f(torch.ones(3))
        other = threading.Thread(target=f, args=(torch.ones(3),), name="another")
        other.start()
        other.join()
    f(torch.ones(3))
    told = json.loads((tmp_path / "one.json").read_text())
    assert [each["name"] for each in spans(told, "call")] == [f.__qualname__] * 2
    assert len({each["tid"] for each in spans(told, "call")}) == 2
    assert _core.end_timeline() == []


def test_threads_that_have_ended_are_the_programs(tmp_path):
    @torchjanus.function
    def f(x):
        return (x * 2).relu()

    for _ in range(5):
        f(torch.ones(3))
    with torchjanus.trace(tmp_path / "out.json"):
        held = threading.Thread(target=f, args=(torch.ones(3),), name="held")
        let_go = threading.Thread(target=f, args=(torch.ones(3),), name="let go")
        for each in (held, let_go):
            each.start()
            each.join()
        del each, let_go
    told = json.loads((tmp_path / "out.json").read_text())
    names = {each["args"]["name"] for each in told["traceEvents"] if each["name"] == "thread_name"}
    assert names == {"held", "thread that has ended"} and f.stats()["hits"] >= 4


def test_no_more_events_are_kept_than_asked_for():
    @torchjanus.function
    def f(x):
        return (x * 2).relu()

    for _ in range(5):
        f(torch.ones(3))
    _core.begin_timeline(3)
    for _ in range(5):
        f(torch.ones(3))
    assert len(_core.end_timeline()) == 3
    assert _core.left_out_of_timeline() > 0


def test_a_forked_process_keeps_no_events(tmp_path):
    @torchjanus.function
    def f(x):
        return (x * 2).relu()

    for _ in range(5):
        f(torch.ones(3))
    _core.begin_timeline(1000)
    process = os.fork()
    if process == 0:
        f(torch.ones(3))
        os._exit(len(_core.end_timeline()))
    assert os.waitpid(process, 0)[1] == 0
    assert _core.end_timeline() == []
