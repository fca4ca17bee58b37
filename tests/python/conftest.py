"""Graphs are not timed against Python in tests, which count calls; those of the timing ask for it."""

from collections.abc import Iterator

import pytest

from torchjanus import _core


@pytest.fixture(autouse=True)
def _without_contests() -> Iterator[None]:
    _core.testing.hold_contests(False)
    yield
    _core.testing.hold_contests(True)


@pytest.fixture
def contests(_without_contests: None) -> None:
    _core.testing.hold_contests(True)
