"""Graphs run by turns with Python until it is clear which is faster, whatever that is.

Nothing here depends on the clock: only how often, and what of, is counted.
"""

import threading

import pytest

import torch
import torchjanus
from torch import nn

pytestmark = pytest.mark.usefixtures("times_decide")

QUIET, LEAST, MOST = (
    16,
    3,
    40,
)  # calls before the first turn; turns of each way until all is decided
CHANGES = 54  # of ways in so many turns: the call after each one is not timed


def training(seed):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.Tanh(), nn.Linear(8, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    seen = []

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        seen.append(loss.item())
        return loss

    return step, model, seen


def test_turns_change_nothing():
    """Parameters, random numbers and lists are those of eager, in graphs, in Python and in between."""
    batches = [(torch.randn(5, 4), torch.randint(3, (5,))) for _ in range(QUIET + 2 * MOST + 20)]
    plain, expected, expected_losses = training(1)
    for batch in batches:
        plain(*batch)
    random_state = torch.get_rng_state()
    step, model, losses = training(1)
    converted = torchjanus.function(step)
    for batch in batches:
        converted(*batch)
    assert torch.equal(torch.get_rng_state(), random_state)
    assert losses == pytest.approx(expected_losses, rel=1e-4)
    for ours, its in zip(model.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(ours, its, rtol=1e-3, atol=1e-5)


def test_turns_are_few():
    converted = torchjanus.function(lambda x: (x * 2 + 1).tanh().sum())
    x = torch.randn(7)
    hits = []
    for _ in range(QUIET + 2 * MOST + CHANGES + 20):
        converted(x)
        hits.append(torchjanus.stats(converted)["hits"])
    first = hits.index(1)
    assert hits[first + QUIET] == QUIET + 1
    without = [after == before for before, after in zip(hits[first:], hits[first + 1 :])]
    last = QUIET + 2 * MOST + CHANGES + 1
    turns = without[QUIET:last]
    assert sum(turns) == 0 or LEAST <= sum(turns)  # none where graphs are far ahead
    if torchjanus.stats(converted)["state"] == "graph":
        assert sum(without) <= MOST + CHANGES / 2
        assert not any(without[last:])
    else:
        assert any(
            "ms in Python" in each["sentence"] for each in torchjanus.stats(converted)["reasons"]
        )


def test_runs_within_others_are_not_compared():
    """What calls itself, converted, in Python: a run that began deeper ends nobody's time."""

    @torchjanus.function
    def outer(x, depth):
        return (x * 2).sin() if depth == 0 else inner(x, depth - 1) + 1

    def inner(x, depth):
        return outer(x, depth)

    x = torch.randn(5)
    for _ in range(120):
        torch.testing.assert_close(outer(x, 3), (x * 2).sin() + 3)


def test_several_threads():
    converted = torchjanus.function(lambda x: (x * 2 + 1).tanh())
    x = torch.randn(9)
    wrong = []

    def work():
        for _ in range(150):
            if not torch.allclose(converted(x), (x * 2 + 1).tanh()):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
