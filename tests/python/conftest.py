"""Times decide nothing in tests, which count calls and graphs, and the first call of a graph waits for its
kernels; tests of the timing, and of compiling in the background, ask for that."""

import os
import signal
from collections.abc import Iterator

import hypothesis
import pytest

# The same examples in every run, so that a change is judged by what it changed. New ones are looked for with
# `pytest --hypothesis-profile=explore`.
hypothesis.settings.register_profile("fixed", derandomize=True)
hypothesis.settings.register_profile("explore", derandomize=False)
hypothesis.settings.load_profile("fixed")

_DISABLED = {name for name in os.environ.get("TORCHJANUS_DISABLE", "").split(",") if name}
# For child processes as well.
os.environ["TORCHJANUS_DISABLE"] = ",".join(sorted(_DISABLED | {"background"}))

# A shell that starts the tests in the background ignores interrupts for them and for their children.
signal.signal(signal.SIGINT, signal.default_int_handler)

from torchjanus import _core  # noqa: E402  (it reads the environment)


@pytest.fixture(autouse=True)
def _without_times() -> Iterator[None]:
    _core.testing.let_times_decide(False)
    yield
    _core.testing.let_times_decide(True)


@pytest.fixture
def times_decide(_without_times: None) -> None:
    _core.testing.let_times_decide(True)
