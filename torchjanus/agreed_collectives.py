"""Collectives of data-parallel training. Before data is exchanged, all ranks agree on what is due.

A collective that only some ranks make leaves the others waiting, or mixes up their data. So each begins with a message
of fixed size, in which ranks say where the program is and what they have. Only if that is the same on all of them, more
is exchanged. Those that are at different places raise an error that says so.
"""

import ctypes
import enum
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import distributed

_FIRST = 256  # numbers of the first message, whatever follows: gloo ends processes that exchange other sizes
_BUCKET = 25 << 20  # bytes; as DistributedDataParallel's
# The bits of a flag: eight, those of a fingerprint, and their complement.
_PRINT, _COMPLEMENT, _MASK = 8, 35, (1 << 27) - 1


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


def agree(place: Place, flags: Sequence[int] = (), parameters: int = 0) -> list[int]:
    """For each place of the list, the bits that any rank has set. All ranks have to be at the same place.

    `parameters`: a fingerprint of those that are concerned, which have to be the same.
    """
    numbers = [place, ~place, parameters, ~parameters, len(flags), ~len(flags)]
    begin = len(numbers)
    numbers += flags
    numbers += [0] * (_FIRST - len(numbers))
    found = _any_bits(numbers[:_FIRST])
    if found[0] & found[1]:
        raise RuntimeError(
            f"torchjanus run --data-parallel: this rank is {_WORDS[place]}, another one is elsewhere. "
            "All ranks have to make as many steps, and the same calls of backward() in each"
        )
    if found[2] & found[3]:
        raise RuntimeError(
            f"torchjanus run --data-parallel: {_WORDS[place]}, other parameters than on another rank"
        )
    if found[4] & found[5]:
        raise RuntimeError(
            f"torchjanus run --data-parallel: {_WORDS[place]}, ranks have different numbers of tensors"
        )
    if len(numbers) > _FIRST:
        found += _any_bits(numbers[_FIRST:])
    return found[begin : begin + len(flags)]


def _any_bits(numbers: Sequence[int]) -> list[int]:
    """Those that any rank has set."""
    message = torch.tensor(numbers, dtype=torch.int64, device="cpu")
    distributed.all_reduce(message, distributed.ReduceOp.BOR)
    found: list[int] = message.tolist()
    return found


def with_fingerprint(bits: int, number: int) -> int:
    """A flag of at most eight bits and a fingerprint of what it is said of, cut to 27 bits."""
    number &= _MASK
    return bits | number << _PRINT | (number ^ _MASK) << _COMPLEMENT


def fingerprints_differ(flag: int) -> bool:
    """Whether ranks have set different ones in an agreed flag."""
    return bool(flag >> _PRINT & flag >> _COMPLEMENT & _MASK)


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
    """A number of 32 bits that tells tensors of other bits apart, but for rare accidents."""
    number = 0
    for each in tensors:
        for part in _strided(each.detach()):
            number = _checksum(part, number)
    return number


def _strided(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    if tensor.is_sparse:
        return tensor._indices(), tensor._values()
    return (tensor if tensor.layout == torch.strided else tensor.to_dense(),)


def _checksum(tensor: torch.Tensor, number: int) -> int:
    """Of its bytes. NumPy, which may be missing, knows fewer dtypes."""
    whole = tensor.cpu().resolve_conj().resolve_neg().contiguous()
    return zlib.crc32((ctypes.c_char * whole.nbytes).from_address(whole.data_ptr()), number)


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
