"""Functions that communicate, called by each rank (ranks.py) eagerly, converted and lazily.

`p` is a leaf that requires a gradient, if that is asked for, `x` a tensor that each rank has another of.
"""

import contextlib
import warnings
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch.distributed._functional_collectives as functional
from ranks import one_after_the_other
from single_collectives import all_gather_single, reduce_scatter_single
from torch.distributed.nn import functional as differentiable
from torch.utils.checkpoint import checkpoint

import torch
import torchjanus
from torch import distributed as dist

FUNCTIONS: dict[str, Callable[..., torch.Tensor]] = {}
CALLS = 7
SECONDS = timedelta(seconds=20)

warnings.simplefilter("ignore", FutureWarning)  # torch's own names for collectives change


def collective(function: Any) -> Any:
    FUNCTIONS[function.__name__] = function
    return function


@collective
def all_reduce(p, x):
    y = x * 2
    dist.all_reduce(y)
    return (y * p).sum()


@collective
def all_reduce_later(p, x):
    y, z = x * 2, x + 1
    work = dist.all_reduce(y, async_op=True)
    z = z * z + 1
    work.wait()
    return (y * z * p).sum()


@collective
def written_after_it_was_read(p, x):
    y = x.clone()
    z = y * 3
    dist.all_reduce(y)
    return (z * y * p).sum()


@collective
def received_after_it_was_read(p, x):
    y = x.clone()
    z = y * 3
    dist.broadcast(y, 1)
    u = y + z
    dist.all_gather_into_tensor(z, u[:3].clone())
    return (u * z * p).sum()


@collective
def operator_that_writes_what_was_read(p, x):
    y = x.clone()
    z = y * 3
    torch.ops._c10d_functional.all_reduce_(y, "sum", "0")
    y = torch.ops._c10d_functional.wait_tensor(y)
    return (z * y * p).sum()


@collective
def least_and_greatest(p, x):
    least, greatest, product = x.clone(), x.clone(), x.clone()
    dist.all_reduce(least, dist.ReduceOp.MIN)
    dist.all_reduce(greatest, op=dist.ReduceOp.MAX)
    dist.all_reduce(product, dist.ReduceOp.PRODUCT, dist.group.WORLD)
    return ((greatest - least) * product * p).sum()


@collective
def all_reduce_of_an_argument(p, x):
    dist.all_reduce(x)
    return (x * p).sum()


@collective
def all_reduce_of_integers(p, x):
    y = (x * 10).long()
    dist.all_reduce(y)
    return (y * p).sum()


@collective
def all_reduce_of_flags(p, x):
    """Their sum leaves bytes that are neither 0 nor 1."""
    flag, other = x > -10, x > -10
    dist.all_reduce(flag)
    dist.all_reduce(other)
    return (torch.where(flag, x, -x) * (flag & other) * p).sum()


@collective
def all_reduce_of_flags_as_numbers(p, x):
    flag = x > -10
    dist.all_reduce(flag)
    return (flag.double() * p + (~flag).double()).sum()


@collective
def all_reduce_of_small_integers(p, x):
    small, byte = (x.abs() * 0 + 100).to(torch.int8), (x * 0 + 200).to(torch.uint8)
    dist.all_reduce(small)
    dist.all_reduce(byte)
    return (small.double() * p + byte.double()).sum()


@collective
def all_reduce_of_a_transposed_tensor(p, x):
    y = (x.view(2, 3) * 2).t().contiguous().t()
    dist.all_reduce(y)
    return (y.reshape(-1) * p).sum()


@collective
def all_gather_into_an_argument(p, x):
    all_gather_single(x, x[: len(x) // dist.get_world_size()].clone())
    return (x * p).sum()


@collective
def reduce_scatter_into_an_argument(p, x):
    reduce_scatter_single(x[:3], x.clone())
    return (x * p).sum()


@collective
def reduce_scatter_of_a_list(p, x):
    part = torch.empty(3)
    dist.reduce_scatter(part, [x[:3].clone(), x[3:] * 2])
    return part.sum() * p.sum()


@collective
def all_gather_later(p, x):
    parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    work = dist.all_gather(parts, x, async_op=True)
    y = x * 3
    assert work.wait()
    work.wait()
    return (torch.stack(parts) * p * y).sum()


@collective
def averaged_model(p, x):
    q = p.detach() + x
    dist.broadcast(q.data, src=1)
    with torch.no_grad():
        dist.all_reduce(q)
    return (q * p).sum()


@collective
def number_behind_it(p, x):
    y = x.sum()
    dist.all_reduce(y)
    return (x * p).sum() * y.item()


@collective
def never_waited_for(p, x):
    y = x * 2
    dist.all_reduce(y, async_op=True)
    return (x * p).sum()


@collective
def asked_whether_it_is_done(p, x):
    y = x * 2
    work = dist.all_reduce(y, async_op=True)
    work.wait()
    return (y * p).sum() * (1 if work.is_completed() else 2)


@collective
def waited_for_with_a_time(p, x):
    y = x * 2
    dist.all_reduce(y, async_op=True).wait(SECONDS)
    return (y * p).sum()


@collective
def written_meanwhile(p, x):
    """Each rank writes when all have received."""
    y = x * 2
    work = dist.all_reduce(y, async_op=True)
    z = y.mul_(1)
    work.wait()
    return (x * p).sum() + 0 * z.sum()


@collective
def of_bits(p, x):
    y = (x * 10).int()
    dist.all_reduce(y, dist.ReduceOp.BAND)
    return (y * p).sum()


@collective
def of_what_requires_a_gradient(p, x):
    y = x.clone().requires_grad_()
    dist.all_reduce(y.detach())
    with torch.no_grad():
        z = y * 2
    dist.broadcast(z, 0)
    return (z * p).sum()


@collective
def into_views_of_one_tensor(p, x):
    whole = torch.empty(2 * len(x))
    dist.all_gather(list(whole.chunk(2)), x)
    return whole.sum() * p.sum()


@collective
def all_reduce_in_a_branch(p, x):
    y = x * 2
    dist.all_reduce(y)
    if y.sum() > 0:
        dist.all_reduce(y)
    else:
        y = y * 3
        dist.all_reduce(y)
        dist.all_reduce(y)
    return (y * p).sum()


@collective
def all_reduce_in_a_loop(p, x):
    total = x * 0
    for factor in range(3):
        y = x * factor
        dist.all_reduce(y)
        total = total + y
    return (total * p).sum()


@collective
def all_gather(p, x):
    parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, x)
    return (torch.stack(parts) * p).sum()


@collective
def all_gather_into(p, x):
    whole = torch.empty(dist.get_world_size() * len(x))
    dist.all_gather_into_tensor(whole, x)
    return whole.sum() * p.sum()


@collective
def all_gather_of_objects(p, x):
    found = [None] * dist.get_world_size()
    dist.all_gather_object(found, float(x[0]))
    return (x * found[0] * p).sum()


@collective
def broadcast(p, x):
    y = x.clone()
    dist.broadcast(y, 0)
    return (y * p).sum()


@collective
def reduce_scatter(p, x):
    part = torch.empty(len(x) // dist.get_world_size())
    dist.reduce_scatter_tensor(part, x.clone())
    return part.sum() * p.sum()


@collective
def barrier(p, x):
    y = x * 2
    dist.barrier()
    return (y * p).sum()


@collective
def send_and_receive(p, x):
    y = x * 2
    if dist.get_rank() == 0:
        dist.send(y, 1)
    else:
        dist.recv(y, 0)
    return (y * p).sum()


@collective
def of_a_group(p, x):
    y = x * 2
    dist.group.WORLD.allreduce([y]).wait()
    return (y * p).sum()


@collective
def averaged_gradients(p, x):
    loss = ((x * p) ** 2).sum()
    loss.backward()
    dist.all_reduce(p.grad)
    found = p.grad / 2
    p.grad = None
    return found.sum()


@collective
def functional_all_reduce(p, x):
    return (functional.all_reduce(x * 2, "sum", dist.group.WORLD) * p).sum()


@collective
def operator_all_reduce(p, x):
    y = torch.ops._c10d_functional.all_reduce(x * 2, "sum", "0")
    return (torch.ops._c10d_functional.wait_tensor(y) * p).sum()


@collective
def operator_whose_result_is_not_used(p, x):
    torch.ops._c10d_functional.wait_tensor(torch.ops._c10d_functional.all_reduce(x * 2, "sum", "0"))
    return (x * p).sum()


@collective
def equal_operators(p, x):
    one = torch.ops._c10d_functional.all_reduce(x, "sum", "0")
    other = torch.ops._c10d_functional.all_reduce(x, "sum", "0")
    wait = torch.ops._c10d_functional.wait_tensor
    return ((wait(one) + wait(other)) * p).sum()


@collective
def operator_with_a_gradient(p, x):
    sizes = [len(x) // 2] * 2
    y = torch.ops._c10d_functional_autograd.all_to_all_single(x * p, sizes, sizes, "0")
    y = torch.ops._c10d_functional.wait_tensor(y)
    return y.sum()


@collective
def with_a_gradient(p, x):
    differentiable.all_reduce(x * p).sum().backward()
    found, p.grad = p.grad, None
    return found.sum()


class Averaged(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.clone()
        dist.all_reduce(gradient)
        return gradient


@collective
def in_a_backward(p, x):
    Averaged.apply(x * p).sum().backward()
    found, p.grad = p.grad, None
    return found.sum()


@collective
def in_a_backward_outside(p, x):
    return Averaged.apply(x * p).sum()


@collective
def in_a_hook(p, x):
    def share(gradient):
        gradient = gradient.clone()
        dist.all_reduce(gradient)
        return gradient

    y = x * p
    y.register_hook(share)
    y.sum().backward()
    found, p.grad = p.grad, None
    return found.sum()


@collective
def whose_error_is_caught(p, x):
    y = x * 2
    try:
        dist.all_reduce(y)
    except RuntimeError:
        return (x * p).sum()
    return (y * p).sum()


@collective
def with_something_to_do_at_last(p, x):
    y = x * 2
    try:
        dist.all_reduce(y)
    finally:
        x = x * 3
    return (x * y * p).sum()


@collective
def whose_wait_is_caught(p, x):
    y = x * 2
    work = dist.all_reduce(y, async_op=True)
    try:
        work.wait()
    except RuntimeError:
        return (x * p).sum()
    return (y * p).sum()


class Counted:
    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        return kind is ValueError


@collective
def within_a_context_of_the_program(p, x):
    y = x * 2
    with Counted():
        dist.all_reduce(y)
    return (y * p).sum()


@contextlib.contextmanager
def ends_at_last():
    try:
        yield
    finally:
        Counted()


@collective
def within_a_generator_that_ends_at_last(p, x):
    y = x * 2
    with ends_at_last():
        dist.all_reduce(y)
    return (y * p).sum()


@contextlib.contextmanager
def plainly():
    yield


@collective
def within_contexts_that_do_nothing(p, x):
    y = x * 2
    with contextlib.nullcontext(), torch.no_grad(), plainly():
        dist.all_reduce(y)
    return (y * p).sum()


@torch.library.custom_op("rank_collectives::total", mutates_args=())
def total(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    dist.all_reduce(y)
    return y


@total.register_fake
def _(x):
    return torch.empty_like(x)


@collective
def operators_of_the_program(p, x):
    """The schedule would take the second one first, and the test would make Python call the last one again."""
    with torch.no_grad():
        t = torch.cat([x, x * 2]).exp()
        a, b = total(x), total(t)
        c = total(x + 1)
    return ((a * b[:6] if c.sum() > 0 else c) * p).sum()


@collective
def checkpointed(p, x):
    q = p.detach().requires_grad_()
    y = checkpoint(
        lambda z: torch.tanh(Summed.apply(torch.tanh(z * q))).sin(), x, use_reentrant=False
    )
    y.square().sum().backward()
    return q.grad.sum() * p.sum()


class Summed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.clone()
        dist.all_reduce(y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        return gradient


@collective
def class_of_a_work(p, x):
    y = x * 2
    work = dist.all_reduce(y, async_op=True)
    is_one = isinstance(work, dist.Work)
    work.wait()
    return (y * p).sum() * (1 if is_one else 2)


@collective
def name_of_a_work(p, x):
    y = x * 2
    work = dist.all_reduce(y, async_op=True)
    name = type(work).__name__
    work.wait()
    return (y * p).sum() * len(name)


@collective
def all_gather_into_another_shape(p, x):
    whole = torch.zeros(1, 12)
    dist.all_gather_into_tensor(whole, x)
    return whole.sum() * p.sum()


@collective
def all_gather_into_other_shapes(p, x):
    parts = [torch.zeros(2, 3) for _ in range(2)]
    dist.all_gather(parts, x)
    return parts[0].sum() * p.sum()


@collective
def nothing_in_flight_with_others(p, x):
    none, y, again, z = x[:0].clone(), x * 2, x[:0] * 3, x + 1
    works = [dist.all_reduce(each, async_op=True) for each in (none, y, again, z)]
    for number in (3, 1, 2, 0):
        works[number].wait()
    return (y * z * p).sum() + none.sum() + again.sum()


PENDING: list[Any] = []


@collective
def waited_for_in_the_next_call(p, x):
    y = x * 2
    while PENDING:
        PENDING.pop().wait()
    PENDING.append(dist.all_reduce(y, async_op=True))
    return (x * p).sum()


@collective
def work_of_another_call(p, x):
    """What waits was made outside of the converted function."""
    y = p * 2
    PENDING[-1].wait()
    return (y * x).sum()


def rank_and_size(p, x):
    return (x * p * dist.get_rank() / dist.get_world_size()).sum()


def calls(function: Any, name: str, gradients: bool) -> list[torch.Tensor]:
    rank = dist.get_rank()
    p = torch.ones(6, requires_grad=gradients)
    generator = torch.Generator().manual_seed(rank)
    PENDING.clear()
    results = []
    for _ in range(CALLS):
        x = torch.randn(6, generator=generator)
        if name == "work_of_another_call":
            PENDING.append(dist.all_reduce(x, async_op=True))
        try:
            result = function(p, x)
        except (RuntimeError, ValueError) as error:
            result = torch.tensor(float(len(str(error))))
        if result.requires_grad:
            result.backward()
        results += [result.detach().clone(), torch.zeros(()) if p.grad is None else p.grad.clone()]
        results += [x.clone(), torch.tensor(x._version)]
        p.grad = None
    for work in PENDING:
        if not work.is_completed():
            work.wait()
    return results


def compare(name: str, lazy: bool = False, gradients: bool = True) -> dict[str, Any]:
    function = FUNCTIONS.get(name, rank_and_size)
    expected = calls(function, name, gradients)
    if lazy:
        with torchjanus.lazy():
            found = calls(function, name, gradients)
    else:
        converted = torchjanus.function(function, profile_runs=2 + dist.get_rank())
        found = calls(converted, name, gradients)
        stats = torchjanus.stats(converted)
        reasons = [(each["code"], each["sentence"]) for each in stats["reasons"]]
    for one, other in zip(expected, found, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-12, atol=1e-12)
    in_all = [None] * dist.get_world_size()
    dist.all_gather_object(in_all, "ends alike")
    if lazy:
        return {"reasons": [], "hits": 0, "state": ""}
    return {"reasons": reasons, "hits": stats["hits"], "state": stats["state"]}


def compare_all(cases: Sequence[dict[str, Any]]) -> list[Any]:
    return one_after_the_other(compare, cases)
