"""Collectives of data-parallel training. Before data is exchanged, all ranks agree on what is due.

A collective that only some ranks make leaves the others waiting, or mixes up their data. So each begins with a short
message of fixed form, in which ranks say where the program is and what they have. Those that are at different places
raise an error that says so.
"""

import enum
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import distributed

_MESSAGE = 256  # numbers; messages are padded to a multiple, as their lengths differ where ranks do
_BUCKET = 25 << 20  # bytes; as DistributedDataParallel's
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class Place(enum.IntEnum):
    """Where the program is."""

    parameters = 1
    backward = 2
    step = 3
    loss = 4
    sampler = 5
    end = 6


_WORDS = {
    Place.parameters: "where an optimizer is given parameters",
    Place.backward: "at the end of backward()",
    Place.step: "at an optimizer's step()",
    Place.loss: "at the loss of a closure that an optimizer calls",
    Place.sampler: "where a DataLoader begins",
    Place.end: "at the program's end",
}


def agree(place: Place, flags: Sequence[int] = ()) -> list[int]:
    """For each place of the list, the bits that any rank has set. All ranks have to be at the same place."""
    numbers = [place, ~place, len(flags), ~len(flags), *flags]
    numbers += [0] * (-len(numbers) % _MESSAGE)
    message = torch.tensor(numbers, dtype=torch.int64, device="cpu")
    distributed.all_reduce(message, distributed.ReduceOp.BOR)
    found: list[int] = message.tolist()
    if found[0] & found[1]:
        raise RuntimeError(
            f"torchjanus run --data-parallel: this rank is {_WORDS[place]}, another one is elsewhere. "
            "All ranks have to make as many steps, and the same calls of backward() in each"
        )
    if found[2] & found[3]:
        raise RuntimeError(
            f"torchjanus run --data-parallel: {_WORDS[place]}, ranks have different numbers of tensors"
        )
    return found[4 : 4 + len(flags)]


def all_have(place: Place, number: int) -> bool:
    """Whether the number is the same on all ranks. It has at most 62 bits."""
    one, other = agree(place, (number, ~number))
    return not one & other


def average(tensors: Iterable[torch.Tensor]) -> int:
    """Replaces each tensor by the mean of those of all ranks. Returns how many bytes that were."""
    size, total = distributed.get_world_size(), 0
    for bucket in _buckets(tensors):
        flat = _flat(bucket).div_(size)
        distributed.all_reduce(flat)
        _put_back(flat, bucket)
        total += flat.nbytes
    return total


def averaged_sparse(gradient: torch.Tensor) -> torch.Tensor:
    """The mean of a sparse tensor of all ranks."""
    mean = gradient.coalesce() / distributed.get_world_size()
    distributed.all_reduce(mean)
    return mean


def broadcast(tensors: Iterable[torch.Tensor]) -> None:
    """Gives all ranks the values of rank 0."""
    for bucket in _buckets(tensors):
        flat = _flat(bucket)
        distributed.broadcast(flat.view(torch.uint8), 0)
        _put_back(flat, bucket)


def from_first(value: Any) -> Any:
    """Rank 0's value, which pickle can hold."""
    box = [value]
    distributed.broadcast_object_list(box, 0)
    return box[0]


def fingerprint(tensors: Iterable[torch.Tensor]) -> int:
    """A number of 62 bits that tells tensors of other bits apart, but for rare accidents."""
    number = 0
    for each in tensors:
        flat = torch.view_as_real(each.detach()) if each.is_complex() else each.detach()
        bits = flat.reshape(-1).view(_INTEGERS[flat.element_size()])
        number = (number * 1_000_003 + int(bits.sum(dtype=torch.int64))) & ((1 << 62) - 1)
    return number


def _buckets(tensors: Iterable[torch.Tensor]) -> Iterator[list[torch.Tensor]]:
    """Tensors of one dtype, in order."""
    open_ones: dict[torch.dtype, list[torch.Tensor]] = {}
    for each in tensors:
        bucket = open_ones.setdefault(each.dtype, [])
        if bucket and sum(one.nbytes for one in bucket) + each.nbytes > _BUCKET:
            yield bucket
            open_ones[each.dtype] = bucket = []
        bucket.append(each)
    yield from open_ones.values()


def _flat(bucket: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.cat([each.detach().reshape(-1) for each in bucket])


def _put_back(flat: torch.Tensor, bucket: Sequence[torch.Tensor]) -> None:
    for each, part in zip(
        bucket, torch.split(flat, [each.numel() for each in bucket]), strict=True
    ):
        each.copy_(part.view(each.shape))
