"""A process group that exchanges by gloo, and finishes each collective as late as a network would.

    delayed_group.start(rank, size, folder)
    delayed_group.NETWORK.set(latency=1e-4, bandwidth=1e9)

A transfer takes latency + bytes / bandwidth, and one begins when the one before it is over. Waiting for it takes no
processor, so that computing can go on meanwhile, on a machine whose processes exchange within memory.
"""

import contextlib
import datetime
import queue
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import distributed

TIMEOUT = datetime.timedelta(seconds=120)


@dataclass
class Transfer:
    """A collective, as simulations need it."""

    start: float
    bytes: int
    waited: float = 0.0  # from when somebody waits for it; 0: nobody has
    name: str = ""


@dataclass
class Network:
    """One for the process."""

    latency: float = 0.0  # seconds
    bandwidth: float = float("inf")  # bytes a second
    free_at: float = 0.0
    transfers: list[Transfer] = field(default_factory=list)

    def set(self, latency: float, bandwidth: float) -> None:
        self.latency, self.bandwidth = latency, bandwidth

    def due(self, transfer: Transfer) -> float:
        """When it is over, on its way behind all others."""
        begin = max(transfer.start, self.free_at)
        self.free_at = begin + self.latency + transfer.bytes / self.bandwidth
        return self.free_at

    @contextlib.contextmanager
    def noted(self) -> Iterator[list[Transfer]]:
        """The transfers that begin meanwhile."""
        self.transfers = found = []
        yield found
        self.transfers = []


NETWORK = Network()


class Work(distributed._Work):
    """Done when gloo's work is, and the network's time is over."""

    def __init__(self, exchange: Any, tensors: list[torch.Tensor], name: str) -> None:
        super().__init__()
        self.exchange, self.tensors = exchange, tensors
        self.transfer = Transfer(
            time.perf_counter(), sum(each.nbytes for each in tensors), name=name
        )
        NETWORK.transfers.append(self.transfer)
        self.due = NETWORK.due(self.transfer)
        self.done = threading.Event()
        self.future: torch.futures.Future = torch.futures.Future()
        self.error: BaseException | None = None

    def finish(self) -> None:
        """Called by the thread that sleeps."""
        try:
            self.exchange.wait()
            time.sleep(max(0.0, self.due - time.perf_counter()))
            self.future.set_result(self.tensors)
        except Exception as error:
            self.error = error
            self.future.set_exception(error)
        self.done.set()

    def wait(self, timeout: datetime.timedelta | None = None) -> bool:
        self.transfer.waited = time.perf_counter()
        self.done.wait()
        if self.error is not None:
            raise self.error
        return True

    def is_completed(self) -> bool:
        return self.done.is_set()

    def is_success(self) -> bool:
        return self.done.is_set() and self.error is None

    def get_future(self) -> torch.futures.Future:
        return self.future


class DelayedGroup(distributed.ProcessGroup):
    """What DistributedDataParallel and programs call of a group. torch.compile must not look into it."""

    def __init__(self, store: Any, rank: int, size: int) -> None:
        super().__init__(rank, size)
        self.gloo = distributed.ProcessGroupGloo(store, rank, size, TIMEOUT)
        self.pending: queue.SimpleQueue[Work] = queue.SimpleQueue()
        threading.Thread(target=self._finish_all, daemon=True).start()

    def _finish_all(self) -> None:
        while True:
            self.pending.get().finish()

    def _begun(self, exchange: Any, tensors: list[torch.Tensor], name: str) -> Work:
        work = Work(exchange, tensors, name)
        self.pending.put(work)
        return work

    @torch.compiler.disable
    def allreduce(self, tensors: list[torch.Tensor], opts: Any = None) -> Work:
        opts = opts or distributed.AllreduceOptions()
        return self._begun(self.gloo.allreduce(tensors, opts), tensors, "all_reduce")

    @torch.compiler.disable
    def broadcast(self, tensors: list[torch.Tensor], opts: Any = None) -> Work:
        opts = opts or distributed.BroadcastOptions()
        return self._begun(self.gloo.broadcast(tensors, opts), tensors, "broadcast")

    @torch.compiler.disable
    def allgather(self, outputs: Any, inputs: list[torch.Tensor], opts: Any = None) -> Work:
        opts = opts or distributed.AllgatherOptions()
        work = self.gloo.allgather(outputs, inputs, opts)
        return self._begun(work, outputs[0], "all_gather")

    @torch.compiler.disable
    def barrier(self, opts: Any = None) -> Work:
        opts = opts or distributed.BarrierOptions()
        return self._begun(self.gloo.barrier(opts), [], "barrier")

    def getBackendName(self) -> str:  # torch's name
        return "delayed"

    @property
    def group_name(self) -> str:
        return "delayed"


def start(rank: int, size: int, folder: str) -> None:
    """Makes it the process's group."""
    distributed.Backend.register_backend(
        "delayed",
        lambda store, rank, size, timeout: DelayedGroup(store, rank, size),
        devices=["cpu"],
    )
    distributed.init_process_group(
        "delayed", init_method=f"file://{folder}/store", rank=rank, world_size=size, timeout=TIMEOUT
    )
