"""Data-parallel steps on more ranks than there are: from when a measured step begins its transfers.

A step's timeline is as the ranks compute, with a network that takes no time: `step_ms`, and `transfers`, each with its
start, its bytes and when the program waits for it (None: when the last one has begun, as DistributedDataParallel does).
A transfer begins when the one before it is over. All ranks are taken to compute alike.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Cost = Callable[[float], float]  # milliseconds of a transfer of so many bytes


@dataclass(frozen=True)
class Network:
    """Links between neighbours."""

    latency_us: float
    gigabits: float  # a second

    def milliseconds(self, messages: float, transferred: float) -> float:
        return messages * self.latency_us / 1e3 + transferred * 8 / (self.gigabits * 1e6)


ETHERNET = Network(latency_us=20, gigabits=10)
RANKS = tuple(2**power for power in range(3, 13))


def delayed(network: Network) -> Cost:
    """What delayed_group.py makes collectives take."""
    return lambda size: network.milliseconds(1, size)


def ring(ranks: int, network: Network) -> Cost:
    """Each rank sends each part of the data on, first for the sum and then for the result."""
    steps = 2 * (ranks - 1)
    return lambda size: network.milliseconds(steps, steps / ranks * size)


def tree(ranks: int, network: Network) -> Cost:
    """Sums go up a tree of ranks, results down, in pieces that follow each other."""
    steps = 2 * math.ceil(math.log2(ranks))
    return lambda size: network.milliseconds(steps, 2 * size)


def better(ranks: int, network: Network) -> Cost:
    """A library chooses by size."""
    one, other = ring(ranks, network), tree(ranks, network)
    return lambda size: min(one(size), other(size))


def step_ms(timeline: Mapping[str, Any], cost: Cost) -> float:
    """A step whose transfers take that long."""
    late = free_at = last = (
        0.0  # by how much the program is later than measured; when the network is free
    )
    for start, size, waited in timeline["transfers"]:
        free_at = max(start + late, free_at) + cost(size)
        last = max(last, start if waited is None else waited)
        if waited is not None:
            late = max(late, free_at - waited)
    return timeline["step_ms"] + max(late, free_at - last)


def scale_factors(
    one_ms: float, timeline: Mapping[str, Any], network: Network = ETHERNET
) -> Iterable[tuple[int, float]]:
    """Throughput of so many ranks, over that of as many processes that do not communicate."""
    for ranks in RANKS:
        yield ranks, one_ms / step_ms(timeline, better(ranks, network))
