"""A lock of the program is taken for the run, and given back behind its writes."""

import threading

import torch


class Mean:
    def __init__(self):
        self.lock = threading.Lock()
        self.total, self.count = torch.zeros(3), 0

    def add(self, x):
        with self.lock:
            self.count += 1
            self.total = self.total + x
            return self.total / self.count


mean = Mean()


def step(x):
    return mean.add(x) * 2


CALLS = [(torch.ones(3),) for _ in range(6)]
