"""In which order the graphs of one function are tried: most calls should fit the first one."""

import torch
import torchjanus


def step(x, n):
    if n % 9 == 8:  # one graph a side: their results differ in rank
        return x.sum(0) * 2
    return x * 3


def test_a_rare_outcome_does_not_keep_its_graph_in_front():
    converted = torchjanus.function(step)
    x = torch.randn(3, 4)
    with torchjanus.options.without("background"):
        for n in range(180):
            torch.testing.assert_close(converted(x, n), step(x, n))
    stats = torchjanus.stats(converted)
    assert stats["graphs"] == 2 and stats["hits"] > 160
    assert stats["aborts"] < 70  # three in nine calls


def test_outcomes_that_alternate_leave_the_order():
    def alternating(x, n):
        return step(x, 8 if n % 2 else 0)

    converted = torchjanus.function(alternating)
    x = torch.randn(3, 4)
    with torchjanus.options.without("background"):
        for n in range(100):
            torch.testing.assert_close(converted(x, n), alternating(x, n))
    stats = torchjanus.stats(converted)
    assert stats["graphs"] == 2 and stats["aborts"] < 60
