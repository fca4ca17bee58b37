"""Models and optimizers whose state is spread over the ranks (ranks.py)."""

from collections.abc import Callable, Sequence
from typing import Any

import torch.nn.functional as F
from rank_programs import _brief, layers, plain_step
from ranks import one_after_the_other
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.fsdp.wrap import ModuleWrapPolicy
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

import torch
import torchjanus
from torch import distributed as dist
from torch import nn

STEPS = 8
Made = tuple[nn.Module, torch.optim.Optimizer]


def adam(module: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(module.parameters(), lr=0.01)


def fsdp(**options: Any) -> Made:
    module = FullyShardedDataParallel(layers(6, 8, 8, 3), device_id=torch.device("cpu"), **options)
    return module, adam(module)


def fully_sharded() -> Made:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    module = layers(6, 8, 8, 3)
    for each in module:
        if isinstance(each, nn.Linear):
            fully_shard(each, mesh=mesh)
    fully_shard(module, mesh=mesh)
    return module, adam(module)


def zero_redundancy() -> Made:
    module = DistributedDataParallel(layers(6, 8, 8, 3))
    return module, ZeroRedundancyOptimizer(module.parameters(), torch.optim.AdamW, lr=0.01)


KINDS: dict[str, Callable[[], Made]] = {
    "FSDP": fsdp,
    "FSDP of each layer": lambda: fsdp(auto_wrap_policy=ModuleWrapPolicy({nn.Linear})),
    "FSDP with the original parameters": lambda: fsdp(use_orig_params=True),
    "fully_shard": fully_sharded,
    "ZeroRedundancyOptimizer": zero_redundancy,
}


def compare(kind: str, way: str) -> dict[str, Any]:
    """`way`: the step or the module is converted."""
    losses = []
    for converted in (False, True):
        torch.manual_seed(0)
        module, optimizer = KINDS[kind]()
        take = step = plain_step(module, optimizer, F.mse_loss)
        if converted:
            asked = torchjanus.function(
                step if way == "step" else module, profile_runs=2 + dist.get_rank()
            )
            take = asked if way == "step" else step
        generator = torch.Generator().manual_seed(dist.get_rank())
        losses.append(
            [
                take(torch.randn(4, 6, generator=generator), torch.randn(4, 3, generator=generator))
                for _ in range(STEPS)
            ]
        )
    torch.testing.assert_close(losses[1], losses[0], rtol=1e-11, atol=1e-13)
    return _brief(torchjanus.stats(asked))


def compare_all(cases: Sequence[dict[str, Any]]) -> list[Any]:
    return one_after_the_other(compare, cases)
