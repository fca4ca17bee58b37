"""A mutation check of the tests: plants wrong changes of state, and shows which test sees them.

usage: mutations.py [--state attribute] [--mutation twice]

Each class of state that a run changes is changed wrongly (src/base/mutation.h), and the tests of that class
run until one sees it: its comparison with eager finds another state, it passes without the fault, and the
fault was planted in it. A crash, another exception or a missing graph does not count. The table has a row for
each state and mutation; the command fails if one is unseen.
"""

import argparse
import os
import re
import select
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

TESTS = Path(__file__).resolve().parent.parent / "tests" / "python"

# By class of state: the files with its tests, those first that are likely to see a fault.
STATES = {
    "attribute": "control/one_sided_writes control/sides objects/heap objects/classes",
    "slot": "control/one_sided_writes control/sides objects/heap objects/classes",
    "item": "control/one_sided_writes control/sides objects/heap objects/containers",
    "set": "control/one_sided_writes control/sides objects/heap objects/containers",
    "list": "control/one_sided_writes control/sides control/lists objects/heap",
    "variable": "control/one_sided_writes language/outside language/context_variables objects/heap",
    "met": "recursion/runtime_stores autograd/gradient_reachability",
    "grad": "control/one_sided_writes autograd/one_sided_gradients autograd/gradients autograd/steps",
    "data": "autograd/data control/replaced objects/state",
    "contents": "control/one_sided_writes objects/state autograd/steps",
    "hook": "autograd/leaf_hooks control/one_sided_writes autograd/custom_gradients autograd/gradients",
    "finalizer": "control/one_sided_writes autograd/consumed_tapes objects/heap",
    "effect": "language/prints language/outside control/one_sided_writes",
    "key_order": "control/one_sided_writes objects/heap objects/containers objects/classes",
}  # fmt: skip
MUTATIONS = ("not_written", "both_sides", "twice")
# What cannot be planted, and why.
WITHOUT_MEANING = {
    ("set", "twice"): "a set holds a member once, however often it is added",
    ("data", "both_sides"): "no graph has both sides: a branch of which one sets .data is followed",
    ("finalizer", "both_sides"): "no graph is made of a run that replaces what has a finalizer",
    ("finalizer", "twice"): "Python calls a finalizer once; one reference less than there are is for `make sanitize`",
}  # fmt: skip
MOST_SECONDS = 120  # for one fault


@dataclass
class Outcome:
    changes: int = 0
    tests: int = 0
    seen_by: str = ""
    crashes: int = 0
    seconds: float = 0


def is_about_state(error: BaseException | None) -> bool:
    """Whether the harness found a difference, but for an exception that only one of the two raised."""
    if not isinstance(error, AssertionError):
        return False
    frames = traceback.extract_tb(error.__traceback__)
    compares = any(
        frame.name == "compare" and frame.filename.endswith("differential.py") for frame in frames
    )
    return compares and re.match(r"after call \d+\.error", str(error)) is None


class Planter:
    """A plugin of pytest that runs the collected tests once for each fault, each in a child process."""

    def __init__(self, faults: list[tuple[str, str]]) -> None:
        self.faults = faults
        self.unseen: list[str] = []
        self.error: BaseException | None = None

    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> None:
        if call.excinfo is not None:
            self.error = call.excinfo.value

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        capture = session.config.pluginmanager.getplugin("capturemanager")
        with capture.global_and_fixture_disabled():
            print(
                f"{'state':10} {'mutation':12} {'planted':>8} {'tests':>6} {'s':>4}  seen first by"
            )
            for state, mutation in self.faults:
                self.print_row(session, state, mutation)
        return True

    def print_row(self, session: pytest.Session, state: str, mutation: str) -> None:
        reason = WITHOUT_MEANING.get((state, mutation))
        if reason is not None:
            print(f"{state:10} {mutation:12} {'-':>8} {'-':>6} {'-':>4}  ({reason})", flush=True)
            return
        outcome = self.look(list(items_of(session, state)), state, mutation)
        if not outcome.seen_by:
            self.unseen.append(f"{state} {mutation}")
        crashes = f" ({outcome.crashes} tests crashed before)" if outcome.crashes else ""
        print(
            f"{state:10} {mutation:12} {outcome.changes:8} {outcome.tests:6} {outcome.seconds:4.0f}  "
            f"{outcome.seen_by or 'UNSEEN'}{crashes}",
            flush=True,
        )

    def look(self, items: list[pytest.Item], state: str, mutation: str) -> Outcome:
        """Runs the tests with the fault; behind a test that ends its process, in a new one."""
        outcome = Outcome()
        began = time.monotonic()
        while outcome.tests < len(items) and not outcome.seen_by:
            left = MOST_SECONDS - (time.monotonic() - began)
            if left < 0 or self.look_in_child(items, state, mutation, outcome, left):
                break
            outcome.crashes += 1
        outcome.seconds = time.monotonic() - began
        return outcome

    def look_in_child(
        self, items: list[pytest.Item], state: str, mutation: str, outcome: Outcome, left: float
    ) -> bool:
        """Whether the child came to its end, or has no time left; what it told is in `outcome`."""
        reading, writing = os.pipe()
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            os.close(reading)
            self.run_child(items[outcome.tests :], state, mutation, writing)
        os.close(writing)
        deadline = time.monotonic() + left
        with os.fdopen(reading) as told:
            while select.select([told], [], [], max(0.0, deadline - time.monotonic()))[0]:
                word, _, value = told.readline().rstrip("\n").partition(" ")
                if word in ("", "end"):
                    break
                if word == "begin":
                    outcome.tests += 1
                elif word == "planted":
                    outcome.changes += int(value)
                else:
                    outcome.seen_by = value
            else:
                os.kill(child, 9)
                word = "end"
        os.waitpid(child, 0)
        return word == "end"

    def run_child(self, items: list[pytest.Item], state: str, mutation: str, pipe: int) -> None:
        from torchjanus._core import testing

        def tell(line: str) -> None:
            os.write(pipe, f"{line}\n".encode())

        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        for item in items:
            tell("begin")
            testing.plant(state, mutation)
            error = self.run_test(item)
            changes = testing.planted_changes()
            testing.plant("none")
            tell(f"planted {changes}")
            if changes > 0 and is_about_state(error) and self.run_test(item) is None:
                tell(f"seen {item.nodeid.rpartition('/')[2]}")
                break
        tell("end")
        os._exit(0)

    def run_test(self, item: pytest.Item) -> BaseException | None:
        self.error = None
        runtestprotocol(item, log=False, nextitem=None)
        return self.error


def file_of(name: str) -> Path:
    """Of the tests that STATES calls `name`."""
    folder, _, subject = name.partition("/")
    return TESTS / folder / f"test_{subject}.py"


def items_of(session: pytest.Session, state: str) -> Iterator[pytest.Item]:
    for name in STATES[state].split():
        yield from (item for item in session.items if item.path == file_of(name))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--state", action="append", choices=STATES, help="only this class")
    parser.add_argument("--mutation", action="append", choices=MUTATIONS, help="only this one")
    options = parser.parse_args()
    states = options.state or list(STATES)
    faults = [(state, each) for state in states for each in options.mutation or MUTATIONS]
    names = sorted({name for state in states for name in STATES[state].split()})
    files = [str(file_of(name)) for name in names]
    planter = Planter(faults)
    began = time.monotonic()
    if (
        pytest.main(["-qq", "--no-summary", "-p", "no:cacheprovider", *files], plugins=[planter])
        != 0
    ):
        print("the tests cannot be run")
        return 1
    print(f"unseen: {', '.join(planter.unseen) or 'none'}; {time.monotonic() - began:.0f} s")
    return int(bool(planter.unseen))


if __name__ == "__main__":
    sys.exit(main())
