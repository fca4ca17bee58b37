"""What is written to stderr beside the program's own: it never raises, whatever the program has put there."""

import io
import subprocess
import sys
from pathlib import Path

import pytest

from torchjanus import messages


class OnlyWrites:
    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text += text
        return len(text)


class Refuses:
    def write(self, text: str) -> int:
        raise AttributeError("not today")

    def flush(self) -> None:
        raise KeyError("flush")


class WithoutText(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def closed() -> io.StringIO:
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.fixture(autouse=True)
def nothing_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "_reported", set())


@pytest.mark.parametrize(
    "stream", [None, Refuses(), closed(), object()], ids=["none", "refuses", "closed", "no stream"]
)
def test_a_stream_that_takes_nothing(monkeypatch: pytest.MonkeyPatch, stream: object) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    messages.tell("a line")
    messages.internal_error("nothing could be shown", ValueError("why"))


def test_no_stream_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sys, "stderr")
    messages.tell("a line")
    messages.internal_error("nothing could be shown", ValueError("why"))


def test_a_stream_that_can_only_write(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = OnlyWrites()
    monkeypatch.setattr(sys, "stderr", stream)
    messages.tell("a line")
    assert stream.text == "a line\n"


def test_a_failure_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = OnlyWrites()
    monkeypatch.setattr(sys, "stderr", stream)
    for _ in range(2):
        messages.internal_error("the picture could not be made", OSError("full"), "It is left out.")
    assert stream.text == (
        "torchjanus: internal error: the picture could not be made: OSError: full\n"
        "  It is left out. Please report this.\n"
    )


def test_a_failure_without_text(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = OnlyWrites()
    monkeypatch.setattr(sys, "stderr", stream)
    messages.internal_error("the picture could not be made", WithoutText())
    assert "WithoutText: ?" in stream.text


WRITES = """\
import sys
from torchjanus import messages
sys.stderr.write("the program's own\\n")
messages.tell("a line")
messages.internal_error("nothing could be shown", ValueError("why"))
"""


def test_the_interpreters_own_stream(tmp_path: Path) -> None:
    """What the program wrote stands before."""
    ended = subprocess.run(
        [sys.executable, "-c", WRITES], cwd=tmp_path, capture_output=True, text=True
    )
    assert ended.returncode == 0
    assert ended.stderr.splitlines()[:2] == ["the program's own", "a line"]
    assert "internal error: nothing could be shown" in ended.stderr


def test_the_interpreters_own_stream_that_takes_nothing(tmp_path: Path) -> None:
    """Nothing of ours waits in it: since Python 3.13 it would change the exit code."""
    with open("/dev/full", "w") as full:
        code = WRITES.replace('sys.stderr.write("the program\'s own\\n")\n', "")
        ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, stderr=full)
    assert ended.returncode == 0
