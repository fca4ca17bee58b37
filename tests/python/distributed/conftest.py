"""One process that has loaded torch, from which the ranks of all tests are forked (ranks.py)."""

from collections.abc import Iterator

import pytest
from ranks import Ranks


@pytest.fixture(scope="session")
def ranks(reasons_of_other_processes: set[tuple[str, str]]) -> Iterator[Ranks]:
    with Ranks(reasons_of_other_processes) as started:
        yield started
