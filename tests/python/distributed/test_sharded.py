"""Sharded models and optimizers train as in eager; what communicates is named."""

import pytest
import torch.distributed

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="no torch.distributed")

FSDP = "torch.distributed.fsdp.FullyShardedDataParallel.forward"
STATE = "torch.distributed.fsdp._fully_shard._fsdp_state.FSDPState._pre_forward"

REASONS = {
    ("FSDP", "step"): FSDP,
    ("FSDP", "module"): FSDP,
    ("FSDP of each layer", "step"): FSDP,
    ("FSDP with the original parameters", "step"): FSDP,
    ("fully_shard", "step"): "optimizer.param_groups[0]['params'][0]: it is of a subclass",
    ("fully_shard", "module"): STATE,
    ("ZeroRedundancyOptimizer", "step"): "ProcessGroup.broadcast",
}


@pytest.fixture(scope="module")
def results(ranks):
    cases = [{"kind": kind, "way": way} for kind, way in REASONS]
    found = ranks.run("rank_sharded:compare_all", cases=cases, patience=20)
    return dict(zip(REASONS, zip(*found, strict=True), strict=True))


@pytest.mark.parametrize(("kind", "way"), REASONS)
def test_sharded(results, kind, way):
    for each in results[kind, way]:
        assert not isinstance(each, str), each
        found = [sentence for _, sentence in each["reasons"]]
        assert any(sentence.startswith(REASONS[kind, way]) for sentence in found), each
