"""What is written when a program has run: whatever has become of its folder, threads and streams, and nothing of it
changes how the program ends."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from torchjanus import at_end, script, summary

TRAIN = """
import gc, os, sys, threading, time
import torch
from torch import nn

net = nn.Linear(8, 8)
optimizer = torch.optim.SGD(net.parameters(), 0.01)

def train(steps=60):
    for _ in range(steps):
        loss = net(torch.ones(4, 8)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
BUFFERED = os.environ | {"TORCHJANUS_DISABLE": "budget,background", "PYTHONUNBUFFERED": ""}
FILES = ("--stats", "s.json", "--report", "r.html", "--trace", "t.json")


def run(folder: Path, text: str, *options: str, how: str = "") -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(text)
    command = [sys.executable, "-m", "torchjanus", "run", *options, "program.py"]
    if how:
        command = ["bash", "-c", f'"$@" {how}', "bash", *command]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=180, env=BUFFERED
    )  # fmt: skip


def functions(file: Path) -> list[dict[str, int]]:
    found: list[dict[str, int]] = json.loads(file.read_text())["functions"]
    return found


def data_of(page: Path) -> dict[str, list[dict[str, object]]]:
    found = re.search(r'id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    assert found
    told: dict[str, list[dict[str, object]]] = json.loads(found[1])
    return told


def are_written(folder: Path) -> None:
    for name in ("s.json", "r.html", "t.json"):
        assert (folder / name).stat().st_size > 0, name


# --- threads --------------------------------------------------------------------------------------


def test_threads_are_waited_for(tmp_path: Path) -> None:
    text = TRAIN + "threading.Thread(target=train, args=(300,)).start()\n"
    done = run(tmp_path, text, *FILES)
    assert (done.returncode, done.stderr) == (0, "")
    (told,) = functions(tmp_path / "s.json")
    assert told["calls"] == 300 and told["hits"] > 0
    assert data_of(tmp_path / "r.html")["functions"][0]["counters"]["calls"] == 300  # type: ignore[index]


LATE = """
import sys, threading, time
def late():
    time.sleep(0.3)
    print("thread", threading.main_thread().is_alive(), file=sys.stderr)
threading.Thread(target=late).start()
threading._register_atexit(lambda: print("hook", file=sys.stderr))
sys.exit({code})
"""


@pytest.mark.parametrize("code", ["3", "'a message'", "None", "(1, 2)", "True"])
def test_threads_and_the_end_come_in_pythons_order(tmp_path: Path, code: str) -> None:
    text = LATE.format(code=code)
    (tmp_path / "program.py").write_text(text)
    plain = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    done = run(tmp_path, text)
    assert (done.returncode, done.stdout, done.stderr) == (
        plain.returncode,
        plain.stdout,
        plain.stderr,
    )


def test_interrupt_while_threads_are_waited_for(tmp_path: Path) -> None:
    text = "import threading, time\nthreading.Thread(target=time.sleep, args=(2,)).start()\nprint('end')\n"
    (tmp_path / "program.py").write_text(text)
    told = []
    for how in ([], ["-m", "torchjanus", "run", "--stats", "s.json"]):
        process = subprocess.Popen(
            [sys.executable, "-u", *how, "program.py"],
            cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout is not None and process.stdout.readline() == "end\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        told.append((*process.communicate(timeout=60), process.returncode))
    assert told[0] == told[1] and "KeyboardInterrupt" in told[0][1]
    assert (tmp_path / "s.json").exists()


# --- streams and folders that are gone ------------------------------------------------------------


@pytest.mark.parametrize("option", [(), ("--explain",)])
def test_stdout_is_closed(tmp_path: Path, option: tuple[str, ...]) -> None:
    done = run(tmp_path, TRAIN + "train()\nsys.stdout.close()\nsys.exit(7)\n", *option, *FILES)
    assert done.returncode == 7 and "Traceback" not in done.stderr
    are_written(tmp_path)
    assert ("ran as graphs" in done.stderr) == bool(option)


@pytest.mark.parametrize("stream", ["stderr", "stdout"])
def test_stream_is_none(tmp_path: Path, stream: str) -> None:
    done = run(tmp_path, TRAIN + f"train()\nsys.{stream} = None\n", "--explain", *FILES)
    assert (done.returncode, done.stdout) == (0, "")
    are_written(tmp_path)


def test_nobody_reads_stdout(tmp_path: Path) -> None:
    text = TRAIN + "train()\nprint('x' * 1000)\n"
    how = "| true; exit ${PIPESTATUS[0]}"
    (tmp_path / "program.py").write_text(text + "time.sleep(0.3)\n")
    plain = subprocess.run(
        ["bash", "-c", f'"$@" {how}', "bash", sys.executable, "program.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, env=BUFFERED,
    )  # fmt: skip
    done = run(tmp_path, text + "time.sleep(0.3)\n", "--explain", *FILES, how=how)
    assert done.returncode == plain.returncode == 120
    are_written(tmp_path)
    assert "ran as graphs" in done.stderr and done.stderr.endswith(plain.stderr)


def test_folder_is_gone(tmp_path: Path) -> None:
    text = TRAIN + "import tempfile\nwith tempfile.TemporaryDirectory() as folder:\n"
    text += "    os.chdir(folder)\n    for i in range(300):\n        y = (net.weight * i).tanh()\n"
    text += "        gc.collect(0)\n        y.sum().backward()\n"
    done = run(tmp_path, text, "--explain", *FILES)
    assert done.returncode == 0 and "can't" not in done.stderr and "error" not in done.stderr
    are_written(tmp_path)


def test_no_path_leads_from_a_folder_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path / "folder")
    (tmp_path / "folder").rmdir()
    cost = summary._Cost("/a/program.py", 3, "statement", "a class", 1)
    assert summary._place(cost) == "/a/program.py:3"


def test_what_cannot_be_written_at_the_end_is_told_and_keeps_nothing_else(tmp_path: Path) -> None:
    text = TRAIN + "train()\nos.mkdir('r.html'), os.mkdir('s.json')\nsys.exit(7)\n"
    done = run(tmp_path, text, *FILES)
    assert done.returncode == 7
    assert done.stderr == (
        f"torchjanus: can't write {tmp_path}/r.html: Is a directory\n"
        f"torchjanus: can't write {tmp_path}/s.json: Is a directory\n"
    )
    assert (tmp_path / "t.json").stat().st_size > 0


def test_a_step_that_fails_is_told_without_a_word_of_eager_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    at_end.attempt("p.html", lambda: {}["no such key"])
    told = capsys.readouterr().err
    assert "p.html could not be made: KeyError: 'no such key'\n  Please report this." in told
    assert "eagerly" not in told


def test_a_file_that_is_not_rewritten_is_said_to_run_eagerly(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "_with_regions", lambda *arguments: {}["no such key"])
    code = script.compile_script("x = 3", "eager.py")
    scope: dict[str, int] = {}
    exec(code, scope)
    assert scope["x"] == 3
    assert capsys.readouterr().err.endswith("  It runs eagerly. Please report this.\n")


# --- what can't be written is told before the program runs ----------------------------------------


@pytest.mark.parametrize(
    ("option", "file", "why"),
    [
        ("--stats", "no/s.json", "No such file or directory"),
        ("--report", "program.py/r.html", "Not a directory"),
        ("--trace", "folder", "Is a directory"),
        ("--tensorboard", "program.py/events", "Not a directory"),
    ],
)
def test_a_file_that_cannot_be_written(tmp_path: Path, option: str, file: str, why: str) -> None:
    (tmp_path / "folder").mkdir()
    done = run(tmp_path, "print('ran')\n", option, file)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"torchjanus: can't write {file}: {why}\n"


def test_files_that_can_be_written_are_not_made_before(tmp_path: Path) -> None:
    done = run(tmp_path, "import os\nprint(sorted(os.listdir()))\n", *FILES, "--tensorboard", "a/b")
    assert done.stdout == "['program.py']\n", done.stderr
    are_written(tmp_path)
    assert list((tmp_path / "a" / "b").iterdir())


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_permissions(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("")
    (tmp_path / "kept").chmod(0o400)
    assert at_end.why_not(tmp_path / "kept") == "Permission denied"
    tmp_path.chmod(0o500)
    assert at_end.why_not(tmp_path / "new") == "Permission denied"


def test_a_name_that_is_too_long(tmp_path: Path) -> None:
    for is_folder in (False, True):
        assert at_end.why_not(tmp_path / ("n" * 300), is_folder=is_folder) == "File name too long"


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_searched(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(0o600)
    for is_folder in (False, True):
        why = at_end.why_not(tmp_path / "closed" / "r.html", is_folder=is_folder)
        assert why == "Permission denied"


# --- processes ------------------------------------------------------------------------------------

SPAWN = (
    TRAIN
    + """
import torch.multiprocessing as mp

def work(rank):
    train(80)

if __name__ == "__main__":
    mp.spawn(work, nprocs=2)
"""
)


def test_the_page_tells_of_processes_that_were_started(tmp_path: Path) -> None:
    done = run(tmp_path, SPAWN, "--report", "r.html")
    assert (done.returncode, done.stderr) == (0, "")
    told = data_of(tmp_path / "r.html")
    assert told["summary"] == [
        "torchjanus: no call of this process ran as a graph; of those that it started, see below"
    ]
    assert len(told["processes"]) == 2
    for each in told["processes"]:
        assert re.fullmatch(
            r"process \d+: 9\d % of the calls \(\d+ of 80\) ran as graphs, .*", str(each["says"])
        )
        (function,) = each["functions"]  # type: ignore[misc]
        assert function.startswith(f"train, loop at line 10 ({tmp_path}/program.py:11)")


def test_a_forked_process_that_ends_as_the_program_does_reports_nothing(tmp_path: Path) -> None:
    text = TRAIN + "train()\nif os.fork() == 0:\n    train(5)\n    sys.exit(0)\nos.wait()\n"
    done = run(tmp_path, text, "--explain", *FILES)
    assert done.returncode == 0
    assert done.stderr.count("ran as graphs") == 2  # the program's, and the line of its child
    assert done.stderr.count("torchjanus: ") == 1


# --- the source on the page -----------------------------------------------------------------------


def test_the_page_shows_the_source_that_ran(tmp_path: Path) -> None:
    text = TRAIN + "open(__file__, 'w').write('another = 1\\n')\ntrain()\n"
    run(tmp_path, text, *FILES)
    page = (tmp_path / "r.html").read_text()
    assert (tmp_path / "program.py").read_text() == "another = 1\n"
    assert "loss.backward()" in page and "another = 1" not in re.sub(r"<i.*?</i>", "", page)
    assert '<div class="l g" id="program.py:14">' in page


def test_the_page_shows_a_program_in_which_nothing_was_found(tmp_path: Path) -> None:
    run(tmp_path, "print('unlike all others')\n", "--report", "r.html")
    assert "'unlike all others'" in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize("name", ["100% 20 & 'so'.py", "b\udcff.py", "ä#ö.py"])
def test_names_of_files(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(TRAIN + "train()\n")
    done = subprocess.run(
        [sys.executable, "-m", "torchjanus", "run", *FILES, "--tensorboard", "events", name],
        cwd=tmp_path, capture_output=True, text=True, timeout=180,
    )  # fmt: skip
    assert done.returncode == 0
    are_written(tmp_path)
