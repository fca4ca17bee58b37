"""Programs that know nothing of processes, run by each rank (ranks.py) as `torchjanus run --data-parallel` does."""

import contextlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Any

import knows_of_no_ranks
import torch.nn.functional as F

import torch
import torchjanus
from torch import distributed, nn
from torchjanus import command
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
    _join_another_group()
    return result, warned.getvalue(), parallel.report()


def _join_another_group() -> None:
    """The harness leaves the group once more."""
    if not distributed.is_initialized():
        distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)


def as_command(folder: str, arguments: Sequence[str]) -> tuple[str, str]:
    """What `torchjanus ARGUMENTS` prints and says in this folder, where a launcher has set a rank."""
    rank, size = distributed.get_rank(), distributed.get_world_size()
    os.environ |= {"RANK": f"{rank}", "WORLD_SIZE": f"{size}", "PYTHONHASHSEED": "1"}
    os.chdir(folder)
    printed, said = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
        code = command.main(arguments)
    assert code == 0, said.getvalue()
    _join_another_group()
    return printed.getvalue(), said.getvalue()


def alone(folder: str) -> None:
    """All programs as one process runs them without torchjanus."""
    sys.argv = ["", folder]
    knows_of_no_ranks.main()


def more_calls_of_backward(parameters: int, buffers: int) -> Any:
    """On one rank."""

    def program() -> None:
        net = nn.ParameterList(torch.ones(3) for _ in range(parameters))
        for number in range(buffers):
            net.register_buffer(f"b{number}", torch.ones(1))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(5):
            torch.stack([*net]).sum().backward()
            if step == 3 and distributed.get_rank() == 1:
                torch.stack([*net]).sum().backward()
            optimizer.step()

    return _run(program)


def other_parameters() -> Any:
    """On one rank."""

    def program() -> None:
        torch.optim.SGD([nn.Parameter(torch.ones(3 + distributed.get_rank()))], lr=0.1)

    return _run(program)


def another_optimizer() -> Any:
    """Steps on one rank, and has a parameter of the same shape."""

    def program() -> None:
        both = [nn.Parameter(torch.ones(3)) for _ in range(2)]
        optimizers = [torch.optim.SGD([each], lr=0.1) for each in both]
        torch.stack(both).sum().backward()
        for each in optimizers:  # their first steps share parameters
            each.step()
        optimizers[distributed.get_rank()].step()

    return _run(program)


def written_gradients() -> Any:
    """Ranks write the same number to different places, then without counting it, then for a parameter that is new."""

    def program() -> list[list[float]]:
        w = nn.Parameter(torch.zeros(4))
        optimizer = torch.optim.SGD([w], lr=1.0)
        rank, found = distributed.get_rank(), []
        for step in range(4):
            w.grad = None
            w.sum().backward()
            if step == 1:
                w.grad = F.one_hot(torch.tensor(rank), 4).to(w.dtype)
            elif step == 2:
                w.grad.data[rank] += 2
            elif step == 3:
                optimizer.param_groups[0]["params"][0] = w = nn.Parameter(
                    torch.full((4,), float(rank))
                )
                w.grad = torch.full((4,), float(rank))
            optimizer.step()
            found.append(w.tolist())
        return found

    return _run(program)


def buffers_of_other_shapes() -> Any:
    """A module's other buffers are rank 0's."""

    def program() -> tuple[int, list[float]]:
        rank = distributed.get_rank()
        net = nn.Linear(3, 2)
        net.register_buffer("own", torch.ones(2 + 5 * rank))
        net.register_buffer("shared", torch.ones(2))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            net(torch.ones(1, 3)).sum().backward()
            net.own += 1
            net.shared += rank
            optimizer.step()
        return len(net.own), net.shared.tolist()

    return _run(program)


def forked() -> Any:
    """A process that the program has forked ends as the program does."""

    def program() -> int:
        w = nn.Parameter(torch.ones(3))
        optimizer = torch.optim.SGD([w], lr=0.1)
        w.sum().backward()
        optimizer.step()
        return os.fork()

    parallel = DataParallel(split_batches=False, shard_sequential=False, print_from="all")
    with parallel:
        process = program()
    if process == 0:
        os._exit(7)
    _join_another_group()
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), parallel.problems


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
