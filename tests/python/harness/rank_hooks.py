"""Hooks by which programs share gradients between ranks (ranks.py), as Horovod and sharding libraries do."""

from collections.abc import Sequence
from typing import Any

import torch.nn.functional as F
from rank_programs import _brief, differs_between_ranks, layers
from ranks import one_after_the_other
from torch.nn.parallel import DistributedDataParallel

import torch
import torchjanus
from torch import distributed as dist
from torch import nn

STEPS = 8


def accumulator(p: torch.Tensor) -> Any:
    """The node of autograd's graph that adds to the parameter's .grad."""
    return p.expand_as(p).grad_fn.next_functions[0][0]


class Hooked:
    """A net whose hooks average its gradients, and how often they were called."""

    def __init__(self, kind: str, converted: bool) -> None:
        torch.manual_seed(0)
        self.kind, self.kept, self.calls = kind, [], []
        self.net = layers(6, 8, 3)
        self.parameters = list(self.net.parameters())
        self.optimizer = torch.optim.SGD(self.parameters, lr=0.1)
        for p in self.parameters:
            self.hook(p)
        if kind == "reducer of a wrapper that is not called":
            self.kept.append(DistributedDataParallel(self.net))
        plain = self.loss if kind.endswith("outside") else self.step
        self.converted = torchjanus.function(plain, profile_runs=2 + dist.get_rank())
        if converted:
            plain = self.converted
        self.take = self.step_around(plain) if kind.endswith("outside") else plain

    def averaging(self, p: torch.Tensor) -> Any:
        def average(*_: Any) -> None:
            self.calls.append(tuple(p.shape))
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()

        return average

    def averaged(self, gradient: torch.Tensor) -> torch.Tensor:
        self.calls.append(tuple(gradient.shape))
        gradient = gradient.clone()
        dist.all_reduce(gradient)
        return gradient / dist.get_world_size()

    def hook(self, p: torch.Tensor) -> None:
        kind = self.kind
        if kind.startswith("accumulator"):
            node = accumulator(p)
            self.kept.append(node)
            if kind == "accumulator, before":
                node.register_prehook(lambda gradients: (self.averaged(gradients[0]),))
            else:
                node.register_hook(self.averaging(p))
        elif kind.startswith("after the accumulation"):
            p.register_post_accumulate_grad_hook(self.averaging(p))
        elif kind.startswith("parameter"):
            p.register_hook(self.averaged)

    def step(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        self.optimizer.zero_grad()
        if self.kind == "registered in the step":
            handles = [
                p.register_post_accumulate_grad_hook(self.averaging(p)) for p in self.parameters
            ]
        loss = F.mse_loss(self.net(x), y)
        loss.backward()
        if self.kind == "registered in the step":
            for each in handles:
                each.remove()
        self.optimizer.step()
        return loss.detach()

    def loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.mse_loss(self.net(x), y)

    def step_around(self, loss: Any) -> Any:
        def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            self.optimizer.zero_grad()
            found = loss(x, y)
            found.backward()
            self.optimizer.step()
            return found.detach()

        return step


def compare(kind: str) -> dict[str, Any]:
    states, calls = [], []
    for converted in (False, True):
        hooked = Hooked(kind, converted)
        generator = torch.Generator().manual_seed(dist.get_rank())
        states.append([])
        for _ in range(STEPS):
            x, y = (torch.randn(5, size, generator=generator) for size in (6, 3))
            loss = hooked.take(x, y)
            parameters = nn.utils.parameters_to_vector(hooked.parameters).detach()
            if "wrapper" not in kind:
                assert not differs_between_ranks(parameters)
            states[-1] += [loss, parameters]
        calls.append(hooked.calls)
    torch.testing.assert_close(states[1], states[0], rtol=1e-11, atol=1e-13)
    assert calls[0] == calls[1]
    return _brief(torchjanus.stats(hooked.converted)) | {"calls": len(calls[1])}


def compare_all(cases: Sequence[dict[str, Any]]) -> list[Any]:
    return one_after_the_other(compare, cases)
