"""Writes to slices at a place that only the run knows: queues of keys, memories of samples."""

from differential import Program, differential

import torch


class Ring:
    def __init__(self, *shape):
        self.data, self.place = torch.zeros(*shape), torch.zeros(1, dtype=torch.long)

    def next(self, n, of):
        place = int(self.place)
        self.place[0] = (place + n) % of
        return place


@differential(hits=10, graphs=1)
def test_columns_of_a_queue():
    ring = Ring(3, 16)

    def step(x):
        n = x.shape[0]
        place = ring.next(n, 16)
        ring.data[:, place : place + n] = x.T
        return ring.data.sum()

    return Program(step, [(torch.randn(4, 3),) for _ in range(16)], watch=[ring])


@differential(hits=10, graphs=1)
def test_rows_of_another_dtype_and_numbers():
    ring = Ring(16, 3)

    def step(x):
        place = ring.next(4, 16)
        ring.data[place : place + 4] = x.float()
        ring.data[place : place + 2] = 1
        ring.data[place : place + 1, 1:] = -1
        return ring.data.sum()

    return Program(step, [(torch.randn(4, 3),) for _ in range(16)], watch=[ring])


@differential(hits=10, graphs=1)
def test_augmented_assignment_and_view():
    ring = Ring(16, 3)

    def step(x):
        place = ring.next(4, 16)
        ring.data[place : place + 4] += x
        part = ring.data[place : place + 2]
        part.mul_(2)
        return ring.data.sum(), part.sum()

    return Program(step, [(torch.randn(4, 3),) for _ in range(16)], watch=[ring])


@differential(hits=8)
def test_outside_of_the_tensor():
    ring = Ring(14, 3)

    def step(x):
        place = ring.next(4, 16)
        try:
            ring.data[place : place + 4] = x
        except RuntimeError:
            return None
        return ring.data.sum()

    return Program(step, [(torch.randn(4, 3),) for _ in range(16)], watch=[ring])


@differential(hits=8)
def test_gradients_of_a_written_window():
    weight = torch.randn(4, 3, requires_grad=True)
    ring = Ring(16, 3)

    def step(x):
        weight.grad = None
        place = ring.next(4, 16)
        table = torch.zeros(16, 3)
        table[place : place + 4] = weight * x
        loss = (table * torch.arange(48.0).view(16, 3)).sum()
        loss.backward()
        return loss

    return Program(step, [(torch.randn(4, 3),) for _ in range(16)], watch=[ring, weight])


@differential(hits=8)
def test_gradients_due_of_a_written_window():
    weight = torch.randn(4, 3, requires_grad=True)
    ring = Ring(16, 3)

    def step(x):
        place = ring.next(4, 16)
        table = torch.zeros(16, 3)
        table[place : place + 4] = weight * x
        return table, table.sum()

    return Program(step, [(torch.randn(4, 3),) for _ in range(16)], watch=[ring, weight])


@differential()
def test_windows_written_in_a_loop():
    def step(x, n):
        table = torch.zeros(16, 3)
        for t in range(n):
            table[t : t + 2] = x
            table[t + 1 : t + 2] += 1
        return table

    return Program(step, [(torch.randn(2, 3), n) for n in [3, 4, 5, 6, 7, 8, 9, 10, 3, 4, 11]])


@differential(reasons=["dynamic_value"])
def test_window_of_a_tensor_that_lies_otherwise():
    table = torch.zeros(3, 16)

    def step(x, n):
        place = int(n)
        table.t()[place : place + 2] = x
        return table.sum()

    calls = [(torch.randn(2, 3), torch.tensor(n)) for n in [3, 4, 5, 6, 7, 8, 9, 10]]
    return Program(step, calls, watch=[table])
