"""One process that has loaded torch, from which the ranks of all tests are forked (ranks.py)."""

from collections.abc import Iterator

import pytest
from ranks import Ranks


@pytest.fixture(scope="session")
def ranks() -> Iterator[Ranks]:
    with Ranks() as started:
        yield started
