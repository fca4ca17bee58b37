"""Steps whose all-reduces are in the graph, run by ranks (ranks.py) in different states."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch.nn.functional as F
from rank_programs import WRAPPER_OPTIONS, Run, _brief, differs_between_ranks, plain_step
from torch.nn.parallel import DistributedDataParallel

import torch
import torchjanus
from torch import distributed, nn

STEPS = 14


def mixed(name: str, converted: list[int], options: dict[str, Any] | None = None) -> dict[str, Any]:
    """Only some ranks convert the step."""
    WRAPPER_OPTIONS.clear()
    WRAPPER_OPTIONS.update(options or {})
    eager = Run(name, "eager")
    for number in range(STEPS):
        eager.take_step(number)
    ours = Run(name, "step" if distributed.get_rank() in converted else "eager")
    apart = []
    for number in range(STEPS):
        ours.take_step(number)
        apart.append(differs_between_ranks(ours.parameters()))
    compare(eager.states, ours.states)
    return {"apart": apart} | ours.told()


def compare(eager: list[list[torch.Tensor]], ours: list[list[torch.Tensor]]) -> None:
    for number, (one, other) in enumerate(zip(eager, ours, strict=True)):
        for expected, found in zip(one, other, strict=True):
            torch.testing.assert_close(
                found, expected, rtol=1e-10, atol=1e-12, msg=lambda m: f"step {number}: {m}"
            )


class Norm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.norm = nn.Linear(5, 7, bias=False), nn.BatchNorm1d(7)
        self.two = nn.Linear(7, 3)

    def forward(self, x):
        return self.two(torch.tanh(self.norm(self.one(x))))


class Training:
    """A model, its optimizer and a step; a batch of another size at the steps that `odd` names."""

    def __init__(self, convert: bool, adam: bool = False, **options: Any) -> None:
        torch.manual_seed(0)
        self.net = DistributedDataParallel(Norm(), **({"bucket_cap_mb": 1e-4} | options))
        parameters = self.net.parameters()
        self.optimizer = (
            torch.optim.Adam(parameters, lr=0.01)
            if adam
            else torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
        )
        self.plain = plain_step(self.net, self.optimizer, F.mse_loss)
        self.step = torchjanus.function(self.plain) if convert else self.plain
        torch.manual_seed(1 + distributed.get_rank())

    def state(self) -> list[torch.Tensor]:
        tensors = [*self.net.parameters(), *self.net.buffers()]
        tensors += [each.grad for each in self.net.parameters() if each.grad is not None]
        return [each.detach().clone() for each in tensors]

    def parameters(self) -> torch.Tensor:
        return nn.utils.parameters_to_vector(self.net.parameters()).detach()


def trained(take: Callable[[Training, int], None], convert: bool, **options: Any) -> dict[str, Any]:
    training = Training(convert, **options)
    states, apart = [], []
    for number in range(STEPS):
        take(training, number)
        states.append(training.state())
        apart.append(differs_between_ranks(training.parameters()))
    told = _brief(torchjanus.stats(training.step)) if convert else {}
    return {"states": states, "apart": apart, "told": told}


def batch(rows: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(rows, 5), torch.randn(rows, 3)


def plain(training: Training, number: int) -> None:
    training.step(*batch())


def misses(training: Training, number: int) -> None:
    """In some steps, of which each rank has others, the graph does not fit."""
    odd = number % 4 == distributed.get_rank()
    training.step(*batch(5 + number % 3 if odd else 4))


def eager_between(training: Training, number: int) -> None:
    """Rank 1 takes some steps by the function that was not converted."""
    step = training.plain if number % 3 == 1 and distributed.get_rank() == 1 else training.step
    step(*batch())


def evaluates(training: Training, number: int) -> None:
    """A forward pass with gradients but without backward(), and one without gradients, lie between the steps."""
    training.step(*batch())
    if number % 3 == 2:
        training.net(batch()[0])
    if number % 4 == 3:
        training.net.eval()
        with torch.no_grad():
            training.net(batch()[0])
        training.net.train()


def keeps_gradients(training: Training, number: int) -> None:
    """zero_grad() writes zeros, and what is in .grad when a step begins is added to."""
    if number % 2 == 0:
        for each in training.net.parameters():
            if each.grad is not None:
                each.grad.fill_(0.5)
    training.step(*batch())


def failing(training: Training, number: int) -> None:
    """An operator fails in some steps of one rank: before anything is sent, Python takes the step."""
    if number >= 6 and number % 2 == distributed.get_rank():
        torchjanus._core.testing.inject_fault("operation", number - 6)
    try:
        training.step(*batch())
    finally:
        torchjanus._core.testing.inject_fault("none", 0)


WAYS = {
    each.__name__: each
    for each in (plain, misses, eager_between, evaluates, keeps_gradients, failing)
}


def between(way: str, **options: Any) -> dict[str, Any]:
    """Eagerly, then converted; both from the same random numbers."""
    eager = trained(WAYS[way], convert=False, **options)
    ours = trained(WAYS[way], convert=True, **options)
    compare(eager["states"], ours["states"])
    return {"apart": ours["apart"], "told": ours["told"]}


# --- what goes over the wire ---------------------------------------------------------------------------------------


class Noted(distributed.ProcessGroup):
    """Gloo's group, which notes each collective."""

    def __init__(self, store: Any, rank: int, size: int, timeout: Any) -> None:
        super().__init__(rank, size)
        self.gloo = distributed.ProcessGroupGloo(store, rank, size, timeout)
        self.noted: list[Any] = []

    def note(self, what: str, tensors: list[torch.Tensor], opts: Any) -> None:
        sizes = [(str(each.dtype), list(each.shape), each.is_contiguous()) for each in tensors]
        self.noted.append((what, sizes, getattr(opts, "rootRank", None)))

    def allreduce(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        self.note("all_reduce", tensors, opts)
        return self.gloo.allreduce(tensors, opts or distributed.AllreduceOptions())

    def broadcast(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        self.note("broadcast", tensors, opts)
        return self.gloo.broadcast(tensors, opts or distributed.BroadcastOptions())

    def allgather(self, outputs: Any, inputs: list[torch.Tensor], opts: Any = None) -> Any:
        return self.gloo.allgather(outputs, inputs, opts or distributed.AllgatherOptions())

    def barrier(self, opts: Any = None) -> Any:
        return self.gloo.barrier(opts or distributed.BarrierOptions())

    def getBackendName(self) -> str:
        return "noted"


def made(store: Any, rank: int, size: int, timeout: Any) -> Noted:
    return Noted(store, rank, size, timeout)


@contextlib.contextmanager
def noted_group() -> Iterator[Noted]:
    with contextlib.suppress(ValueError, RuntimeError, AssertionError):
        distributed.Backend.register_backend("noted", made, devices=["cpu"])
    yield distributed.new_group(backend="noted")


def on_the_wire() -> dict[str, Any]:
    """The collectives of each step after the first two, eagerly and converted."""
    found: dict[str, Any] = {}
    with noted_group() as group:
        for way in ("eager", "converted"):
            training = Training(way == "converted", process_group=group)
            steps = []
            for _ in range(8):
                group.noted.clear()
                training.step(*batch())
                steps.append(list(group.noted))
            found[way] = steps
            if way == "converted":
                found["told"] = _brief(torchjanus.stats(training.step))
    return found


def on_the_wire_of(name: str) -> dict[str, Any]:
    """The same for one of the trainings, whose ranks begin to run graphs in different steps."""
    found: dict[str, Any] = {}
    with noted_group() as group:
        for way in ("eager", "step"):
            WRAPPER_OPTIONS.clear()
            WRAPPER_OPTIONS.update({"bucket_cap_mb": 1e-4, "process_group": group})
            run = Run(name, way)
            steps = []
            for number in range(STEPS):
                group.noted.clear()
                run.take_step(number)
                steps.append(list(group.noted))
            found[way] = steps
    return found | run.told()


class Skipping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two, self.skips = nn.Linear(3, 3), nn.Linear(3, 3), False

    def forward(self, x):
        x = torch.tanh(self.one(x))
        return x if self.skips else self.two(x)


def unfinished() -> dict[str, Any]:
    """A backward() that does not reach all parameters: the forward pass behind it raises."""
    told: dict[str, Any] = {}
    for way in ("eager", "converted"):
        torch.manual_seed(0)
        net = DistributedDataParallel(Skipping())
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

        def step(x, net=net, optimizer=optimizer):
            optimizer.zero_grad()
            net(x).pow(2).mean().backward()
            optimizer.step()

        take = torchjanus.function(step) if way == "converted" else step
        outcomes = []
        for number in range(12):
            net.module.skips = number == 8
            try:
                take(torch.ones(4, 3) * (number + distributed.get_rank()))
                outcomes.append(sum(each.sum().item() for each in net.parameters()))
            except RuntimeError as error:
                outcomes.append(str(error).split(".")[0])
        told[way] = outcomes
    return told | {"told": _brief(torchjanus.stats(take))}
