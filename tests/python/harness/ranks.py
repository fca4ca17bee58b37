"""Programs on several ranks, in processes that are forked from one that has loaded torch already.

    with Ranks() as ranks:
        outcomes = ranks.run("rank_programs:train", 2, name="lenet", way="step")

A program is a function of a module of this folder, named as above. It is called in each rank, within a process group
of gloo, and gives what pickle can hold. Nothing waits for ever: after the given seconds all ranks are killed.
"""

import importlib
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

MOST_SECONDS = 60


@dataclass
class Outcome:
    """How a rank has ended."""

    value: Any  # what the program gave
    error: str | None  # the class of what it raised
    message: str
    exit: (
        int | None
    )  # minus the signal that ended it; None: it was still running when the time was over
    printed: str


class Ranks:
    """The process that the ranks are forked from. It runs one program at a time.

    The reasons that ranks record are added to `reasons`."""

    def __init__(self, reasons: set[tuple[str, str]] | None = None) -> None:
        self.reasons = set() if reasons is None else reasons
        self.folder = tempfile.TemporaryDirectory()
        self.count = 0
        self.server = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
        )

    def __enter__(self) -> "Ranks":
        return self

    def __exit__(self, *_: Any) -> None:
        self.server.stdin.close()
        try:
            self.server.wait(10)
        finally:
            self.server.kill()
            self.folder.cleanup()

    def outcomes(
        self, program: str, ranks: int = 2, seconds: float = MOST_SECONDS, **arguments: Any
    ) -> list[Outcome]:
        """Runs the program to its end on so many ranks."""
        self.count += 1
        folder = Path(self.folder.name, str(self.count))
        folder.mkdir()
        asked = {"program": program, "ranks": ranks, "seconds": seconds, "folder": str(folder)}
        print(json.dumps(asked | {"arguments": arguments}), file=self.server.stdin, flush=True)
        exits = json.loads(self.server.stdout.readline())
        for rank, exit in enumerate(exits):
            recorded = folder / f"{rank}.reasons"
            if exit is not None and recorded.exists():
                self.reasons.update(pickle.loads(recorded.read_bytes()))
        return [_outcome(folder, rank, exit) for rank, exit in enumerate(exits)]

    def run(self, program: str, ranks: int = 2, **arguments: Any) -> list[Any]:
        """What the program gave on each rank. It must end well on all of them."""
        outcomes = self.outcomes(program, ranks, **arguments)
        for rank, each in enumerate(outcomes):
            assert each.exit == 0, f"rank {rank}: {each.exit}, {each.error}\n{each.printed}"
        return [each.value for each in outcomes]


def _outcome(folder: Path, rank: int, exit: int | None) -> Outcome:
    told = folder / f"{rank}.told"
    value, error, message = pickle.loads(told.read_bytes()) if told.exists() else (None, None, "")
    return Outcome(value, error, message, exit, (folder / f"{rank}.printed").read_text())


def one_after_the_other(compare: Callable[..., Any], cases: Sequence[dict[str, Any]]) -> list[Any]:
    """What each case gives in a rank, or its traceback as a text. What is begun is printed, in case it never ends."""
    found = []
    for case in cases:
        print(case, flush=True)
        try:
            found.append(compare(**case))
        except Exception:
            found.append(traceback.format_exc())
    return found


# --- in the process that the ranks are forked from -----------------------------------------------------------------


def _serve() -> None:
    import torch.distributed

    import torch
    import torchjanus

    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    torchjanus._core.testing.let_times_decide(False)
    torchjanus._core.testing.record_reasons()
    for line in sys.stdin:
        print(json.dumps(_run(json.loads(line))), flush=True)


def _run(asked: dict[str, Any]) -> list[int | None]:
    """The exit code of each rank; None: it was killed here, as the time was over."""
    end = time.monotonic() + asked["seconds"]
    running = {_start(rank, asked): rank for rank in range(asked["ranks"])}
    exits: list[int | None] = [None] * asked["ranks"]
    try:
        while running and time.monotonic() < end:
            time.sleep(0.01)
            for process in list(running):
                ended, status = os.waitpid(process, os.WNOHANG)
                if ended:
                    exits[running.pop(process)] = os.waitstatus_to_exitcode(status)
    finally:
        for process in running:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
    return exits


def _start(rank: int, asked: dict[str, Any]) -> int:
    process = os.fork()
    if process == 0:
        exit = 1
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            _be_rank(rank, asked)
            exit = 0
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(exit)
    return process


def _be_rank(rank: int, asked: dict[str, Any]) -> None:
    from torch import distributed
    from torchjanus import _core

    folder = Path(asked["folder"])
    printed = os.open(folder / f"{rank}.printed", os.O_WRONLY | os.O_CREAT)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    told: tuple[Any, str | None, str] = (None, None, "")
    try:
        distributed.init_process_group(
            "gloo",
            init_method=f"file://{folder}/store",
            rank=rank,
            world_size=asked["ranks"],
            timeout=timedelta(seconds=asked["arguments"].pop("patience", MOST_SECONDS)),
        )
        module, function = asked["program"].split(":")
        program = getattr(importlib.import_module(module), function)
        told = (program(**asked["arguments"]), None, "")
        distributed.destroy_process_group()
    except BaseException as error:
        traceback.print_exc()
        told = (None, type(error).__name__, str(error))
        raise
    finally:
        (folder / f"{rank}.told").write_bytes(pickle.dumps(told))
        recorded = _core.testing.take_recorded_reasons()
        (folder / f"{rank}.reasons").write_bytes(pickle.dumps({*recorded}))


if __name__ == "__main__":
    _serve()
