"""Steps in which it is easy to make other collectives than eager, or in another order. Each rank (ranks.py) takes them
eagerly, then converted; the ranks begin to run graphs at different steps."""

import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from rank_exchange import STEPS
from rank_programs import _brief, differs_between_ranks
from ranks import one_after_the_other
from torch.nn.parallel import DistributedDataParallel

import torch
import torchjanus
from torch import distributed as dist
from torch import nn

Convert = Callable[[Any], Any]
PROGRAMS: dict[str, Callable[[Convert], Any]] = {}


def program(make: Any) -> Any:
    """It makes a model and gives what takes a step of it, of the number given."""
    PROGRAMS[make.__name__] = make
    return make


class Summed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        return summed(gradient)


def summed(gradient: torch.Tensor) -> torch.Tensor:
    gradient = gradient.clone()
    dist.all_reduce(gradient)
    return gradient


class Net(nn.Module):
    """`between`: what is done in the middle of it."""

    def __init__(self, between: Callable[[torch.Tensor], torch.Tensor] = torch.tanh) -> None:
        super().__init__()
        self.one, self.two, self.three = nn.Linear(6, 9), nn.Linear(9, 9), nn.Linear(9, 3)
        self.between = between

    def forward(self, x):
        return self.three(torch.tanh(self.two(self.between(torch.tanh(self.one(x))))))


def training(convert: Convert, net: nn.Module, **options: Any) -> Callable[[int], torch.Tensor]:
    net = DistributedDataParallel(net, **options)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    take = convert(step)
    return lambda number: [take(torch.randn(5, 6)), *net.parameters(), *net.buffers()]


@program
def a_function_between_buckets(convert):
    return training(convert, Net(Summed.apply), bucket_cap_mb=1e-4)


@program
def a_hook_between_buckets(convert):
    def between(x):
        if x.requires_grad:
            x.register_hook(summed)
        return x

    return training(convert, Net(between), bucket_cap_mb=1e-4)


@program
def a_hook_beside_a_function(convert):
    """The hook is younger than the Function, and the operator that it belongs to is older."""
    p = nn.Parameter(torch.ones(4))

    def step(x):
        p.grad = None
        y = x * p
        z = Summed.apply(p * 2)
        y.register_hook(summed)
        ((y * y).sum() + z.sum() * 3).backward()
        return p.grad * 1

    take = convert(step)
    return lambda number: [take(torch.randn(4))]


@program
def hooks_of_two_leaves(convert):
    net = nn.Linear(6, 3)
    for p in net.parameters():
        p.register_hook(summed)

    def step(x):
        net.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        return loss.detach()

    take = convert(step)
    return lambda number: [take(torch.randn(5, 6)), *(p.grad for p in net.parameters())]


class Centred(nn.Module):
    """Without a buffer when it is wrapped."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(6, 3)

    def forward(self, x):
        if "mean" not in self._buffers:
            self.register_buffer("mean", torch.zeros(6))
        with torch.no_grad():
            self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return self.one(x - self.mean)


@program
def a_buffer_that_was_registered_later(convert):
    return training(convert, Centred())


@program
def a_second_buffer_that_was_registered_later(convert):
    """The step after next broadcasts it, as the wrapper has listed it meanwhile."""
    inner = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5))
    take = training(convert, inner)

    def run(number):
        if number == 8:
            inner.register_buffer("late", torch.ones(2) * dist.get_rank())
        return take(number)

    return run


@program
def an_evaluation_without_backward(convert):
    """The reducer waits for its gradients, so that the next backward() shares within no_sync(), too."""
    net = DistributedDataParallel(nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 3)))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    take = convert(lambda x: net(x).detach().square().mean())

    def run(number):
        loss = take(torch.randn(5, 6))
        optimizer.zero_grad()
        with net.no_sync():
            net(torch.randn(5, 6)).square().mean().backward()
        between = [each.grad.clone() for each in net.parameters()]
        net(torch.randn(5, 6)).square().mean().backward()
        optimizer.step()
        return [loss, *between, *net.parameters()]

    return run


@program
def sums_of_parameters(convert):
    """Ranks must have the same bits of them, in a graph or not."""
    net = DistributedDataParallel(nn.Sequential(nn.Linear(173, 41), nn.Tanh(), nn.Linear(41, 3)))

    def step(x):
        net.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        with torch.no_grad():
            for p in net.parameters():
                p -= 0.01 * p.norm() * p.grad
        return loss.detach()

    take = convert(step)
    return lambda number: [take(torch.randn(5, 173)), *net.parameters()]


@program
def parameters_that_are_centred(convert):
    hand = nn.Linear(1973, 1)

    def step(x):
        hand.zero_grad()
        with torch.no_grad():
            for p in hand.parameters():
                p -= 0.1 * p.mean()
        loss = hand(x).square().mean()
        loss.backward()
        for p in hand.parameters():
            dist.all_reduce(p.grad)
            with torch.no_grad():
                p -= 0.001 * p.grad
        return loss.detach()

    take = convert(step)
    return lambda number: [take(torch.randn(5, 1973)), *hand.parameters()]


@program
def a_hook_of_torch_that_is_registered_later(convert):
    net = DistributedDataParallel(nn.Linear(6, 3))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()

    take = convert(step)

    def run(number):
        if number == 9:
            net._register_builtin_comm_hook(dist.BuiltinCommHookType.FP16_COMPRESS)
        take(torch.randn(5, 6))
        return list(net.parameters())

    return run


def with_gradients(take: Callable, net: nn.Module) -> Callable[[int], list[torch.Tensor]]:
    """What a step gives, and the gradients that it leaves."""
    return lambda number: [take(torch.randn(5, 6)), *(each.grad for each in net.parameters())]


@program
def a_backward_whose_error_is_caught(convert):
    net = DistributedDataParallel(nn.Linear(6, 3))

    def step(x):
        net.zero_grad()
        loss = net(x).square().mean()
        try:
            loss.backward()
        except RuntimeError:
            return x.sum()
        return loss.detach()

    return with_gradients(convert(step), net)


@program
def a_wrapper_whose_error_is_caught(convert):
    net = DistributedDataParallel(nn.Linear(6, 3))

    def step(x):
        net.zero_grad()
        try:
            loss = net(x).square().mean()
        finally:
            x = x * 2
        loss.backward()
        return loss.detach() + x.sum()

    return with_gradients(convert(step), net)


@program
def a_wrapper_within_autocast(convert):
    net = DistributedDataParallel(nn.Linear(6, 3))

    def step(x):
        net.zero_grad()
        with torch.autocast("cpu", enabled=False):
            loss = net(x).square().mean()
            loss.backward()
        return loss.detach()

    return with_gradients(convert(step), net)


def with_a_hook(convert: Convert, **options: Any) -> Any:
    net = DistributedDataParallel(nn.Linear(6, 3))
    net.register_forward_hook(lambda module, given, result: result * 2, **options)

    def step(x):
        net.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        return loss.detach()

    return with_gradients(convert(step), net)


@program
def a_wrapper_with_a_hook(convert):
    return with_a_hook(convert)


@program
def a_wrapper_with_a_hook_that_is_always_called(convert):
    return with_a_hook(convert, always_call=True)


@program
def within_a_checkpoint(convert):
    """The wrapper is called twice: once more by backward()."""
    net = DistributedDataParallel(nn.Linear(6, 6))
    last = nn.Linear(6, 1)
    for _ in range(3):  # the buckets get their order
        net(torch.randn(5, 6)).sum().backward()

    def evaluate(x):
        y = torch.utils.checkpoint.checkpoint(lambda z: net(z).detach() * z, x, use_reentrant=False)
        loss = last(y).square().mean()
        loss.backward()
        return loss.detach()

    take = convert(evaluate)

    def run(number):
        last.zero_grad()
        return [take(torch.randn(5, 6)), last.weight.grad]

    return run


@program
def a_group_that_compares_shapes(convert):
    """As TORCH_DISTRIBUTED_DEBUG=DETAIL makes them."""
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    group = dist.new_group()
    dist.set_debug_level(dist.DebugLevel.OFF)

    def step(x):
        parts = [torch.empty_like(x) for _ in range(2)]
        dist.all_gather(parts, x, group=group)
        turned = (x * 3).t().contiguous().t()
        dist.all_reduce(turned, group=group)
        return torch.stack(parts).sum(0) + turned

    take = convert(step)
    return lambda number: [take(torch.randn(2, 3))]


def of_a_kept_group() -> dict[str, Any]:
    """A group that the program keeps is not the one that has its name now."""
    rank, kept = dist.get_rank(), dist.group.WORLD

    def total(x):
        y = x * 2
        kept.allreduce([y]).wait()
        return y

    take = torchjanus.function(total)
    expected = [total(torch.ones(3) * number) for number in range(STEPS)]
    for number in range(8):
        torch.testing.assert_close(take(torch.ones(3) * number), expected[number])
    path = [tempfile.mktemp()]
    dist.broadcast_object_list(path, 0)
    dist.destroy_process_group()
    dist.init_process_group("gloo", store=dist.FileStore(path[0], 2), rank=rank, world_size=2)
    for number in range(8, STEPS):
        torch.testing.assert_close(take(torch.ones(3) * number), expected[number])
    told = _brief(torchjanus.stats(take))
    return told | {"calls of the new group": dist.group.WORLD._get_sequence_number_for_group()}


def taken(name: str, convert: Convert) -> tuple[list[list[torch.Tensor]], list[bool]]:
    torch.manual_seed(0)
    take = PROGRAMS[name](convert)
    torch.manual_seed(1 + dist.get_rank())
    steps, apart = [], []
    for number in range(STEPS):
        found = [each.detach().clone() for each in take(number)]
        steps.append(found)
        alike = [each.flatten() for each in found[1:]]
        apart.append(bool(alike) and differs_between_ranks(torch.cat(alike)))
    return steps, apart


def compare(name: str) -> dict[str, Any]:
    converted = []

    def convert(function):
        converted.append(torchjanus.function(function, profile_runs=2 + 2 * dist.get_rank()))
        return converted[-1]

    expected, expected_apart = taken(name, lambda function: function)
    found, apart = taken(name, convert)
    for number, (one, other) in enumerate(zip(expected, found, strict=True)):
        for i, (a, b) in enumerate(zip(one, other, strict=True)):
            torch.testing.assert_close(
                b, a, rtol=1e-10, atol=1e-12, msg=lambda m, n=number, i=i: f"step {n}, {i}: {m}"
            )
    in_all = [None] * dist.get_world_size()
    dist.all_gather_object(in_all, "ends alike")
    return {"apart": [a and not b for a, b in zip(apart, expected_apart, strict=True)]} | _brief(
        torchjanus.stats(converted[0])
    )


def compare_all(names: Sequence[str]) -> list[Any]:
    return one_after_the_other(compare, [{"name": each} for each in names])
