"""Hooks that share gradients between ranks are called as often, and in the order, as in eager."""

import pytest
import torch.distributed

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="no torch.distributed")

KINDS = {  # the code of the reason; None: a graph
    "accumulator": "hook",
    "accumulator, before": "hook",
    "accumulator, outside": None,
    "after the accumulation": "hook",
    "after the accumulation, outside": None,
    "parameter": "hook",
    "parameter, outside": None,
    "registered in the step": "expression",
    "reducer of a wrapper that is not called": "hook",
}


@pytest.fixture(scope="module")
def results(ranks):
    found = ranks.run(
        "rank_hooks:compare_all", cases=[{"kind": each} for each in KINDS], patience=20
    )
    return dict(zip(KINDS, zip(*found, strict=True), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_hooks(results, kind):
    for each in results[kind]:
        assert not isinstance(each, str), each
        assert each["calls"] == (0 if "wrapper" in kind else 8 * 4)
        if KINDS[kind] is None:
            assert each["state"] == "graph" and each["hits"] > 3, each
        else:
            assert KINDS[kind] in [code for code, _ in each["reasons"]], each
