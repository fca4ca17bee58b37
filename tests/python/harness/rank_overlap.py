"""When the gradients of each bucket are given to the other ranks, and when the parts of the backward run begin."""

import json
import tempfile
from pathlib import Path
from typing import Any

import torch.nn.functional as F
from rank_programs import _brief, differs_between_ranks, train
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

import torch
import torchjanus
from torch import distributed, nn

STEPS = 8


def parts_of(tensor: torch.Tensor) -> list[Any]:
    """The nodes of all parts but the first."""
    found: list[Any] = []
    open, seen = [tensor.grad_fn], set()
    while open:
        node = open.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if node.name() == "BucketBackward":
            found.append(node)
        open += [other for other, _ in node.next_functions]
    return found


def network(width: int) -> nn.Module:
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for _ in range(3):
        layers += [nn.Linear(width, width), nn.Tanh()]
    return nn.Sequential(*layers)


def events(width: int, switched_off: bool = False, **options: Any) -> dict[str, Any]:
    """Events of the last step: `bucket 0` is ready, `part` begins. Gradients have 3 * width * width * 8 bytes.
    `options`: of the wrapper."""
    with torchjanus.options.without(*(["bucketed_backward"] if switched_off else [])):
        eager = DistributedDataParallel(network(width), **options)
        inner = network(width)
        ours = DistributedDataParallel(torchjanus.function(inner), **options)
        happened: list[str] = []

        def shared(
            group: Any, bucket: distributed.GradBucket
        ) -> torch.futures.Future[torch.Tensor]:
            happened.append(f"bucket {bucket.index()}")
            return allreduce_hook(group, bucket)

        ours.register_comm_hook(None, shared)
        for _ in range(STEPS):
            x = torch.randn(4, width)
            happened.clear()
            for net in (eager, ours):
                net.zero_grad()
                out = net(x)
                for node in parts_of(out):
                    node.register_prehook(lambda _: happened.append("part"))
                F.mse_loss(out, x).backward()
            for one, other in zip(eager.parameters(), ours.parameters(), strict=True):
                torch.testing.assert_close(other.grad, one.grad, rtol=1e-10, atol=1e-13)
                assert not differs_between_ranks(other.grad)
    return {"events": happened} | _brief(torchjanus.stats(ours.module))


def traced() -> list[dict[str, Any]]:
    """The collectives in a timeline of a training whose steps are graphs."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "out.json")
        with torchjanus.trace(file):
            train("gpt", "step", options={"bucket_cap_mb": 1e-4})
        events = json.loads(file.read_text())["traceEvents"]
    return [each for each in events if each.get("cat") == "exchange"]
