"""Programs that know nothing of processes, run by each rank (ranks.py) as `torchjanus run --data-parallel` does."""

import contextlib
import io
from typing import Any

import torch.nn.functional as F

import torch
import torchjanus
from torch import distributed, nn
from torchjanus.data_parallel import DataParallel


def _run(program: Any) -> tuple[Any, str, str]:
    """What the program gave or raised, and what is warned of and reported at its end."""
    warned = io.StringIO()
    parallel = DataParallel(split_batches=False, shard_sequential=False, print_from="all")
    with contextlib.redirect_stderr(warned), contextlib.suppress(RuntimeError), parallel:
        try:
            result = program()
        except RuntimeError as error:
            result = str(error)
            raise
    # The harness leaves the group once more.
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    return result, warned.getvalue(), parallel.report()


def more_calls_of_backward() -> Any:
    """On one rank."""

    def program() -> None:
        w = nn.Parameter(torch.ones(3))
        optimizer = torch.optim.SGD([w], lr=0.1)
        for step in range(5):
            w.sum().backward()
            if step == 3 and distributed.get_rank() == 1:
                w.sum().backward()
            optimizer.step()

    return _run(program)


def other_parameters() -> Any:
    """On one rank."""

    def program() -> None:
        torch.optim.SGD([nn.Parameter(torch.ones(3 + distributed.get_rank()))], lr=0.1)

    return _run(program)


def writes_parameters() -> Any:
    """Other values on each rank, beside the optimizer."""
    kept = []

    def program() -> None:
        w = nn.Parameter(torch.ones(3))
        optimizer = torch.optim.SGD([w], lr=0.1)
        for _ in range(5):
            w.sum().backward()
            optimizer.step()
            with torch.no_grad():
                w += torch.randn(3)
        kept.append(w)  # it is there at the end

    return _run(program)


def no_optimizer() -> Any:
    return _run(lambda: sum(range(4)))


def converted_step() -> Any:
    """How a converted step runs, and what of it is a graph."""

    def program() -> dict[str, Any]:
        net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

        @torchjanus.function
        def step(x, y):
            optimizer.zero_grad()
            scores = net(x)
            loss = F.mse_loss(scores, y)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 0.1)
            optimizer.step()
            return loss.detach()

        for _ in range(24):
            step(torch.randn(5, 6), torch.randn(5, 3))
        return step.stats()

    return _run(program)


def registered_late() -> Any:
    """Graphs of a step with its update were made before gradients were to be averaged: no run uses them."""
    net = nn.Linear(6, 3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    @torchjanus.function
    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    for _ in range(6):
        step(torch.ones(5, 6), torch.ones(5, 3))
    before = step.stats()["hits"]

    def program() -> Any:
        for _ in range(6):
            step(torch.randn(5, 6), torch.randn(5, 3))
        return before, step.stats(), net.weight.tolist()

    return _run(program)


def raises_on_one() -> None:
    with DataParallel(split_batches=False, shard_sequential=False, print_from="all"):
        w = nn.Parameter(torch.ones(3))
        optimizer = torch.optim.SGD([w], lr=0.1)
        for step in range(9):
            w.sum().backward()
            if step == 4 and distributed.get_rank() == 1:
                raise ValueError("no more")
            optimizer.step()
