"""Times decide nothing in tests, which count calls and graphs, and the first call of a graph waits for its
kernels; tests of the timing, and of compiling in the background, ask for that. `torchjanus run` has no budget."""

import os
import random
import signal
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis
import pytest

# The same examples in every run, so that a change is judged by what it changed. New ones are looked for with
# `pytest --hypothesis-profile=explore`.
hypothesis.settings.register_profile("fixed", derandomize=True)
hypothesis.settings.register_profile("explore", derandomize=False)
hypothesis.settings.load_profile("fixed")

_DISABLED = {name for name in os.environ.get("TORCHJANUS_DISABLE", "").split(",") if name}
# For child processes as well.
os.environ["TORCHJANUS_DISABLE"] = ",".join(sorted(_DISABLED | {"background", "budget"}))

# Each pass's graph is verified.
os.environ["TORCHJANUS_LOG"] = ",".join(filter(None, (os.environ.get("TORCHJANUS_LOG"), "verify")))

# Several workers (pytest -n) share the cores: torch's threads sleep where they wait, instead of taking the cores from
# the other workers. How many threads there are, on which results depend, stays as it is.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# A shell that starts the tests in the background ignores interrupts for them and for their children.
signal.signal(signal.SIGINT, signal.default_int_handler)

import numpy  # noqa: E402
from reason_literals import unseen  # noqa: E402

import torch  # noqa: E402
from torchjanus import _core  # noqa: E402  (it reads the environment)


def _seed() -> None:
    """Which numbers a test or a module's parameters draw depends on no other test."""
    torch.manual_seed(0)
    random.seed(0)
    numpy.random.seed(0)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    _seed()


@pytest.fixture(autouse=True)
def _without_times() -> Iterator[None]:
    _core.testing.let_times_decide(False)
    yield
    _core.testing.let_times_decide(True)


# What a machine may lack; any other skip fails in continuous integration, where nobody reads of it.
_MAY_BE_SKIPPED = (
    "ale_py",
    "gymnasium",
    "no such layout",
    "since Python 3.12",
    "since Python 3.13",
    "since Python 3.14",
    "symtable",
    "no C++ compiler",
    "no chromium",
    "no qemu-x86_64",
    "root may write everywhere",
    "the libraries of a wheel",
)
_IN_CI = os.environ.get("CI", "").lower() in ("1", "true")


def _fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    why = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if (
        report.skipped
        and not hasattr(report, "wasxfail")
        and not any(each in why for each in _MAY_BE_SKIPPED)
    ):
        report.outcome, report.longrepr = "failed", f"a skip fails in CI: {why}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    outcome = yield
    if _IN_CI:
        _fail_if_skipped(outcome.get_result())


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report() -> Iterator[None]:
    _seed()
    outcome = yield
    if _IN_CI:
        _fail_if_skipped(outcome.get_result())


_core.testing.record_reasons()
_MISSING_REASONS = pytest.StashKey[list[str]]()
_REASONS_OF_OTHERS = pytest.StashKey[set[tuple[str, str]]]()


@pytest.fixture(scope="session")
def reasons_of_other_processes(pytestconfig: pytest.Config) -> set[tuple[str, str]]:
    """What processes that tests start have recorded belongs in here."""
    return pytestconfig.stash.setdefault(_REASONS_OF_OTHERS, set())


def _is_whole_run(session: pytest.Session) -> bool:
    """Whether all tests of the folder ran, as they are when nothing is left out."""
    config = session.config
    return (
        config.args_source == pytest.Config.ArgsSource.TESTPATHS
        and config.option.markexpr == "not slow"
        and not config.option.keyword
        and not config.option.deselect
        and not config.option.collectonly
        and not config.option.ignore
        and not getattr(config.option, "lf", False)
        and not session.shouldstop
        and not session.shouldfail
        and not _DISABLED
    )


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """The controller of several workers (pytest -n) collects what each of them recorded."""
    reasons = node.config.stash.setdefault(_REASONS_OF_OTHERS, set())
    reasons.update(tuple(each) for each in getattr(node, "workeroutput", {}).get("reasons", ()))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Each literal reason of src/ must have been produced: a program that nothing tests is as good as wrong."""
    recorded = {tuple(each) for each in _core.testing.take_recorded_reasons()}
    recorded |= session.config.stash.get(_REASONS_OF_OTHERS, set())
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["reasons"] = sorted(recorded)
        return
    if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        return
    if not _is_whole_run(session):
        return
    missing = unseen(recorded)
    session.config.stash[_MISSING_REASONS] = missing
    if missing:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    for line in config.stash.get(_MISSING_REASONS, []):
        terminalreporter.write_line(line)


@pytest.fixture
def times_decide(_without_times: None) -> None:
    _core.testing.let_times_decide(True)


@pytest.fixture
def simulated(times_decide: None) -> Iterator[Callable[[float, float], None]]:
    """Starts time that passes only as the test says: (milliseconds with graphs, without)."""
    yield _core.testing.simulate_time
    _core.testing.end_simulated_time()
