"""A rank that fails: the others end with the error that eager gives, after a whole number of steps."""

import re

import pytest
import torch.distributed

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="no torch.distributed")

PATIENCE = 4  # seconds that a rank waits for another one


def ended(ranks, fault, place, way):
    """Of each rank: its exit code, the class of the error, whether it says that the other is gone or late, and what it
    has printed."""
    outcomes = ranks.outcomes(
        "rank_faults:train", fault=fault, place=place, way=way, patience=PATIENCE, seconds=30
    )
    found = []
    for each in outcomes:
        steps = re.findall("^steps.*$", each.printed, re.MULTILINE)
        # Gloo says it in several ways, by what it sees first.
        is_gone = bool(re.search("closed by peer|Connection reset|Broken pipe", each.message))
        is_late = bool(re.search("timed out|timeout", each.message, re.IGNORECASE))
        found.append((each.exit, each.error, is_gone, is_late, steps))
    return found


@pytest.mark.parametrize(
    ("fault", "place"),
    [
        ("raise", "between"),
        ("raise", "all_reduce"),
        ("kill", "between"),
        ("kill", "behind"),
        ("interrupt", "between"),
        ("hang", "all_reduce"),
        ("hang", "between"),
        ("raise", "backward"),
        ("kill", "backward"),
    ],
)
def test_a_rank_that_fails(ranks, fault, place):
    eager = ended(ranks, fault, place, "eager")
    assert eager[0][0] == 1 and (eager[0][3] if fault == "hang" else eager[0][2]), eager
    assert ended(ranks, fault, place, "step") == eager
    if place != "all_reduce":
        assert ended(ranks, fault, place, "inside") == eager


@pytest.mark.parametrize(
    ("fault", "place", "failing"),
    [
        ("kill", "buffers", 0),
        ("raise", "all_gather", 1),
        ("kill", "broadcast", 1),
        ("hang", "broadcast", 1),
        ("raise", "reduce_scatter", 1),
    ],
)
def test_a_rank_that_others_wait_for(ranks, fault, place, failing):
    eager = ended(ranks, fault, place, "eager")
    other = eager[1 - failing]
    assert other[0] == 1 and other[3 if fault == "hang" else 2], eager
    assert ended(ranks, fault, place, "step") == eager
