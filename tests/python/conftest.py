"""Times decide nothing in tests, which count calls and graphs; those of the timing ask for it."""

from collections.abc import Iterator

import pytest

from torchjanus import _core


@pytest.fixture(autouse=True)
def _without_times() -> Iterator[None]:
    _core.testing.let_times_decide(False)
    yield
    _core.testing.let_times_decide(True)


@pytest.fixture
def times_decide(_without_times: None) -> None:
    _core.testing.let_times_decide(True)
