"""`torchjanus run --data-parallel`: ranks train a program together that knows nothing of processes.

Each rank runs the program as it stands. Parameters come from rank 0, gradients are averaged (shared_gradients.py), and
loaders read shards (sharded_loaders.py). Random numbers are the same on all ranks until the end of the first
`backward()`, so that models and divided data are; from then on rank 0 goes on as one process would, and others draw
numbers of their own. Imported only when it is asked for.
"""

import contextlib
import functools
import os
import random
import sys
import time
from collections.abc import Callable
from typing import Any

from torch.nn.parameter import is_lazy

import torch
from torch import distributed

from .agreed_collectives import Place, agree, all_have, fingerprint, from_first
from .sharded_loaders import ShardedLoaders
from .shared_gradients import SharedGradients


class DataParallel:
    """A program's run on this rank, from the start of its process group to the end."""

    def __init__(self, *, split_batches: bool, shard_sequential: bool, print_from: str) -> None:
        if not distributed.is_initialized():
            distributed.init_process_group("gloo")
        self.rank, self.size = distributed.get_rank(), distributed.get_world_size()
        _seed(from_first(torch.initial_seed()))
        self.gradients = SharedGradients(self._draw_apart)
        self.loaders = ShardedLoaders(
            split_batches=split_batches, shard_sequential=shard_sequential
        )
        self.problems: list[str] = []
        self.exit_code = 0
        self._process = os.getpid()
        if self.rank != 0:
            torch.save = _without_files(torch.save)
            torch.serialization.save = torch.save
            if print_from == "0":
                sys.stdout = open(os.devnull, "w")  # noqa: SIM115

    def _draw_apart(self) -> None:
        if self.rank != 0:
            _seed((torch.initial_seed() + self.rank) % (1 << 63))

    def __enter__(self) -> "DataParallel":
        return self

    def __exit__(self, _: Any, error: BaseException | None, trace: Any) -> None:
        """Compares what the ranks have trained, if the program has ended well, and leaves the group."""
        if os.getpid() != self._process:  # a forked process is no rank
            return
        code = error.code if isinstance(error, SystemExit) else error or self.exit_code
        try:
            if code is None or code == 0:
                self._compare()
        except RuntimeError as failure:
            self.problems.append(str(failure).splitlines()[0])
        if self.rank == 0 or code:
            sys.stderr.write(self._warnings())
        with contextlib.suppress(Exception):
            distributed.destroy_process_group()
        # A thread of gloo's needs Python's lock to give back tensors. While Python ends, that aborts the process.
        time.sleep(0.02)

    def _compare(self) -> None:
        if not self.gradients.backwards and not self.gradients.steps:
            self.problems.append("no gradient was averaged: no optimizer of torch.optim was used")
        if others := self.gradients.buffers_of_other_kinds:
            self.problems.append(
                f"left alone, as shapes or dtypes differ between the ranks: buffers {', '.join(others)}"
            )
        parameters = self.gradients.parameters()
        gone = [each is None or is_lazy(each) for each in parameters]
        found = agree(Place.end, gone)  # on some rank
        left = [each for each, is_gone in zip(parameters, found, strict=True) if not is_gone]
        if not all_have(Place.end, fingerprint(each for each in left if each is not None)):
            self.problems.append(
                "parameters differ between the ranks: the program has written to them beside its optimizers"
            )

    def report(self) -> str:
        """What was done, for the program's report."""
        found = self.gradients
        mebibytes = found.averaged_bytes / max(found.backwards, 1) / (1 << 20)
        lines = [
            f"torchjanus: data parallel: {self.size} ranks; {len(found.parameters())} parameters and "
            f"{found.buffer_count} buffers from rank 0",
            f"  gradients averaged at the end of {found.backwards} calls of backward(), {mebibytes:.2f} MiB each; "
            f"{found.steps} steps, before {found.averaged_again} of them again",
            *(f"  DataLoader at {each}" for each in dict.fromkeys(self.loaders.told)),
        ]
        return "\n".join(lines) + "\n"

    def _warnings(self) -> str:
        """What the user has to know in any case."""
        loaders = [f"DataLoader at {each}" for each in dict.fromkeys(self.loaders.warnings)]
        return "".join(
            f"torchjanus: data parallel: {each}\n" for each in [*loaders, *self.problems]
        )


def _seed(number: int) -> None:
    """Seeds torch, random and NumPy, if there is one."""
    torch.manual_seed(number)
    random.seed(number)
    with contextlib.suppress(ImportError):
        import numpy

        numpy.random.seed(number % (1 << 32))


def _without_files(save: Callable[..., Any]) -> Callable[..., Any]:
    """torch.save that writes to memory only."""

    @functools.wraps(save)
    def save_to_memory(obj: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(f, (str, os.PathLike)) and not _is_file(f):
            return save(obj, f, *args, **kwargs)

    return save_to_memory


def _is_file(f: Any) -> bool:
    try:
        f.fileno()
    except (AttributeError, OSError):
        return False
    return True
