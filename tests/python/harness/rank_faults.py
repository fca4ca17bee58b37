"""One rank fails in the middle of a step; what the others do then (ranks.py)."""

import os
import signal
import time

import torch.nn.functional as F
from rank_programs import layers
from single_collectives import reduce_scatter_single
from torch.nn.parallel import DistributedDataParallel

import torch
import torchjanus
from torch import distributed as dist
from torch import nn

FAILING_STEP = 6


def all_reduce(gradient: torch.Tensor) -> None:
    dist.all_reduce(gradient)


def all_gather(gradient: torch.Tensor) -> None:
    parts = [torch.empty_like(gradient) for _ in range(2)]
    dist.all_gather(parts, gradient)
    gradient.copy_(parts[0] + parts[1])


def broadcast(gradient: torch.Tensor) -> None:
    """From the rank that fails."""
    dist.broadcast(gradient, src=1)


def reduce_scatter(gradient: torch.Tensor) -> None:
    part = torch.empty(gradient.numel())
    reduce_scatter_single(part, torch.cat([gradient.view(-1), gradient.view(-1)]))
    gradient.copy_(part.view(gradient.shape))


# By which the program shares gradients itself: places to fail at.
BY_HAND = {each.__name__: each for each in (all_reduce, all_gather, broadcast, reduce_scatter)}


def failing_rank(place: str) -> int:
    """Rank 0 is the one that buffers come from."""
    return 0 if place == "buffers" else 1


def fail(fault: str) -> None:
    if fault == "raise":
        raise ValueError("no more data")
    if fault == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "interrupt":
        os.kill(os.getpid(), signal.SIGINT)
    if fault == "hang":
        time.sleep(7)  # longer than the others wait
        raise TimeoutError


def train(fault: str, place: str, way: str) -> None:
    """`place`: where it fails, `way`: what is converted. Shows the parameters after each step."""
    torch.manual_seed(0)
    inner = layers(6, 9, 3)
    if way == "inside":
        torchjanus.function(inner)
    if place == "buffers":
        inner = nn.Sequential(inner, nn.BatchNorm1d(3))
    parallel = place not in BY_HAND
    # Several buckets: the others may have got the first when a rank fails.
    net = DistributedDataParallel(inner, bucket_cap_mb=1e-4) if parallel else inner
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    state = {"step": 0}

    def is_now() -> bool:
        return state["step"] == FAILING_STEP and dist.get_rank() == failing_rank(place)

    def fails_here(where: str) -> None:
        if where == place and is_now():
            fail(fault)

    def step(x, y):
        optimizer.zero_grad()
        fails_here("buffers")
        loss = F.mse_loss(net(x), y)
        fails_here("between")
        loss.backward()
        if not parallel:
            fails_here(place)
            for each in net.parameters():
                BY_HAND[place](each.grad)
        fails_here("behind")
        optimizer.step()

    take = torchjanus.function(step) if way == "step" else step
    try:
        while state["step"] < 12:
            if place == "backward" and is_now():  # before the last gradient
                inner[0].weight.register_hook(lambda _: fails_here(place))
            take(torch.randn(4, 6), torch.randn(4, 3))
            state["step"] += 1
    finally:
        whole = nn.utils.parameters_to_vector(net.parameters()).detach()
        print(f"steps {state['step']}, parameters {whole.sum():.12f}", flush=True)
