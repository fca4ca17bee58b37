"""DataLoaders of which each rank takes a part of the examples, for programs that know nothing of processes.

Only loaders that shuffle, or have another sampler than the sequential one, are divided: training loops have those.
Over a sequential loader programs count right answers and divide by the length of the data: each rank reads all of it.
"""

import functools
import sys
from collections.abc import Iterator, Sized
from pathlib import Path
from typing import Any

from torch.utils.data import (
    BatchSampler,
    DataLoader,
    DistributedSampler,
    IterableDataset,
    Sampler,
    SequentialSampler,
)

import torch
from torch import distributed

from .agreed_collectives import Place, agree, from_first

_LIBRARIES = (Path(torch.__file__).parent, Path(__file__).parent)


class ShardedSampler(Sampler[Any]):
    """Every n-th index, in the order that rank 0's sampler gives. The first ones are repeated if some are missing."""

    def __init__(self, sampler: Any) -> None:
        self.sampler = sampler

    def __len__(self) -> int:
        return -(-len(self.sampler) // distributed.get_world_size())

    def __iter__(self) -> Iterator[Any]:
        rank, size = distributed.get_rank(), distributed.get_world_size()
        agree(Place.sampler)
        order = from_first([*self.sampler])  # drawn by all: their random numbers stay in step
        missing = -len(order) % size
        order += (order * missing)[:missing]
        return iter(order[rank::size])


class ShardedLoaders:
    """Makes loaders that are constructed from now on read shards."""

    def __init__(self, *, split_batches: bool, shard_sequential: bool) -> None:
        self.split_batches, self.shard_sequential = split_batches, shard_sequential
        self.told: list[str] = []  # what has become of each
        self.warnings: list[str] = []
        original = DataLoader.__init__

        @functools.wraps(original)
        def construct(loader: DataLoader[Any], *args: Any, **kwargs: Any) -> None:
            original(loader, *args, **kwargs)
            self._divide(loader)

        DataLoader.__init__ = construct  # type: ignore[method-assign, assignment]

    def _divide(self, loader: DataLoader[Any]) -> None:
        place, batches, sampler = _caller(), loader.batch_sampler, loader.sampler
        if type(batches) is BatchSampler:
            sampler = batches.sampler
        if isinstance(sampler, DistributedSampler):
            return
        if isinstance(loader.dataset, IterableDataset):
            self.warnings.append(f"{place}: an iterable data set: each rank reads all of it")
        elif batches is not None and type(batches) is not BatchSampler:
            self.warnings.append(f"{place}: its own batch sampler: each rank reads all of it")
        elif not isinstance(sampler, Sized):
            self.warnings.append(f"{place}: a sampler without a length: each rank reads all of it")
        elif isinstance(sampler, SequentialSampler) and not self.shard_sequential:
            self.told.append(f"{place}: does not shuffle: each rank reads all of it")
        else:
            self.told.append(f"{place}: {self._shard(loader, sampler)}")

    def _shard(self, loader: DataLoader[Any], whole: Sized) -> str:
        sampler, batches = ShardedSampler(whole), loader.batch_sampler
        told = f"each rank takes {len(sampler)} of {len(whole)} examples"
        object.__setattr__(loader, "sampler", sampler)  # loaders refuse it once they are made
        if not isinstance(batches, BatchSampler):
            return told
        size, rows = distributed.get_world_size(), batches.batch_size
        if self.split_batches and rows % size:
            told += f" ({rows} a batch are not divided)"
        elif self.split_batches:
            rows //= size
        if loader.batch_size is not None:
            object.__setattr__(loader, "batch_size", rows)
        batches = BatchSampler(sampler, rows, batches.drop_last)
        object.__setattr__(loader, "batch_sampler", batches)
        return f"{told}, {rows} a batch"


def _caller() -> str:
    """The line of the program that is running."""
    frame = sys._getframe(1)
    while frame.f_back is not None and any(
        folder in Path(frame.f_code.co_filename).parents for folder in _LIBRARIES
    ):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
