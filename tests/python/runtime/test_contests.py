"""Graphs run by turns with Python until it is clear which is faster, whatever that is.

Nothing here depends on the clock: only how often, and what of, is counted.
"""

import random
import threading

import pytest

import torch
import torchjanus
from torch import nn
from torchjanus import _core

pytestmark = pytest.mark.usefixtures("times_decide")

QUIET, LEAST, MOST = (
    16,
    3,
    40,
)  # calls before the first turn; turns of each way until all is decided
CHANGES = 60  # of ways in so many turns: the call after each one is not timed


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


def is_graph(converted):
    return torchjanus.stats(converted)["state"] == "graph"


def make_step(scale):
    return torchjanus.function(lambda x: (x * scale).tanh().sum())


@pytest.mark.parametrize("graph, is_kept", [(0.5, True), (0.9, True), (1.1, False), (2, False)])
@pytest.mark.parametrize("every", [1, 2, 3, 7])
def test_what_lies_between_calls_decides_nothing(simulated, graph, is_kept, every):
    """An evaluation every few calls, and sleeps of any length."""
    simulated(graph, 1)
    lengths = random.Random(every)
    step = make_step(2)
    x = torch.randn(5)
    for call in range(300):
        step(x)
        if call % every == 0:
            _core.testing.pass_time(40 + 100 * lengths.random())
    assert is_graph(step) == is_kept


def test_two_models_by_turns(simulated):
    """As those of a GAN: the one is called three times for each call of the other."""
    slow, fast = make_step(2), make_step(3)
    x = torch.randn(5)
    for _ in range(400):
        for _ in range(3):
            simulated(1.5, 1)
            slow(x)
        simulated(0.7, 1)
        fast(x)
    assert not is_graph(slow)
    assert is_graph(fast)


@pytest.mark.parametrize("graph, is_kept", [(1, True), (3, False)])
def test_backward_runs_of_others_count(simulated, graph, is_kept):
    """Where a call leaves one, it is timed up to the next call, with what lies between."""
    simulated(graph, 2)
    layer = nn.Linear(3, 2)
    step = torchjanus.function(lambda x: layer(x).tanh())
    x = torch.randn(5, 3)
    for call in range(400):
        step(x).sum().backward()
        _core.testing.pass_time(3)
        if call % 9 == 0:
            _core.testing.pass_time(70)
    assert is_graph(step) == is_kept


def test_evaluation_between_is_no_run_of_the_trial(simulated):
    """Its runs, without gradients, are quicker, and never those that are tried in Python."""
    simulated(1, 1.3)
    layer = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    x = torch.randn(5, 3)

    def step(x):
        loss = layer(x).square().sum()
        if torch.is_grad_enabled():
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss.detach()

    converted = torchjanus.function(step)
    in_python = 0
    for epoch in range(30):
        for _ in range(9):
            converted(x)
        with torch.no_grad():
            for _ in range(4):
                before = torchjanus.stats(converted)["hits"]
                converted(x)
                in_python += torchjanus.stats(converted)["hits"] == before and epoch > 3
    assert in_python == 0
    assert is_graph(converted)


def test_trial_runs_are_a_small_share_of_the_time(simulated):
    """Long steps whose graphs are a little faster: a run in Python now and then."""
    graph, python, calls = 1000, 1300, 300
    simulated(graph, python)
    step = make_step(2)
    x = torch.randn(5)
    for _ in range(calls):
        step(x)
    stats = torchjanus.stats(step)
    in_python = stats["calls"] - stats["hits"] - 3  # that were profiled
    assert 0 < in_python * (python - graph) < 0.03 * calls * graph
    assert is_graph(step)


def test_results_that_hold_themselves_or_very_much():
    """Whether a result requires gradients is looked for in containers, but not without end."""

    def step(x):
        cycle = {"loss": x * 2}
        cycle["self"] = [cycle]
        return cycle, [0.5] * 100_000

    converted = torchjanus.function(step)
    for _ in range(30):
        cycle, numbers = converted(torch.ones(3))
        assert cycle["self"][0] is cycle and len(numbers) == 100_000
