"""Other numbers of batches on each rank, statistics of all ranks, and a wrapper that is differentiated outside."""

import pytest
import torch.distributed

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="no torch.distributed")


def sentences(told):
    return [sentence for _, sentence in told["reasons"]]


@pytest.mark.parametrize("norm", ["LayerNorm", "BatchNorm1d"])
def test_join(ranks, norm):
    """Within join() DDP runs in Python and the module is a graph; behind it the ranks go on together."""
    for each in ranks.run("rank_uneven:joined", norm=norm):
        assert not each["differs"], each
        expected = "DistributedDataParallel (within join()) communicates with other processes"
        assert expected in sentences(each["asked"]), each
        assert each["module"]["state"] == "graph" and each["module"]["hits"] > 3, each


def test_norm_over_all_ranks(ranks):
    """Torch raises, each time."""
    for each in ranks.run("rank_uneven:normalised", train=True):
        assert len(each["errors"]) == 8 and each["hits"] == 0, each
        assert all("SyncBatchNorm expected input tensor" in error for error in each["errors"]), each
        assert each["reasons"][0][0] == "would_raise", each


def test_norm_over_all_ranks_that_keeps_its_statistics(ranks):
    for each in ranks.run("rank_uneven:normalised", train=False):
        assert each["state"] == "graph" and each["hits"] > 3 and not each["errors"], each


@pytest.mark.parametrize("norm", ["LayerNorm", "BatchNorm1d"])
def test_backward_outside(ranks, norm):
    """The wrapper runs in Python; the module within is a graph, also for inputs with gradients and for evaluation."""
    for each in ranks.run("rank_uneven:backward_outside", norm=norm):
        assert not each["differs"], each
        expected = "DistributedDataParallel (its backward() is not in the graph)"
        assert any(sentence.startswith(expected) for sentence in sentences(each["asked"])), each
        assert each["asked"]["state"] == "imperative", each
        assert each["module"]["state"] == "graph" and each["module"]["hits"] > 8, each
