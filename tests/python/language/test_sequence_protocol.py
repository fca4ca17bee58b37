"""Iteration over objects that only have `__getitem__`: from 0 on, until it raises IndexError."""

from differential import Program, differential

import torch


class Rows:
    """Samples that say by themselves where they end."""

    def __init__(self, rows):
        self.rows = rows
        self.asked = 0

    def __getitem__(self, position):
        self.asked += 1
        if position >= len(self.rows):
            raise IndexError(f"no row {position}")
        return self.rows[position]


class Samples:
    """Samples that end where the list in them ends."""

    def __init__(self, samples):
        self.samples = samples

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, position):
        return self.samples[position]


class Columns:
    """Tensors of as many rows, in the manner of TensorDataset."""

    def __init__(self, *tensors):
        self.tensors = tensors

    def __getitem__(self, position):
        return tuple(tensor[position] for tensor in self.tensors)


class Numbers:
    def __init__(self, count):
        self.count = count

    def __getitem__(self, position):
        if position < self.count:
            return 2 * position
        raise IndexError


class Guarded:
    """Its end is reached inside of `try`."""

    def __init__(self, rows):
        self.rows = rows

    def __getitem__(self, position):
        try:
            return self.rows[position]
        finally:
            self.last = position


def vectors(step, watch=(), count=8, between=None):
    calls = [(torch.randn(3),) for _ in range(count)]
    if between is not None:
        calls.insert(5, between)
    return Program(step, calls, watch=watch)


@differential(hits=4, graphs=1)
def test_explicit_end():
    rows = Rows([torch.randn(3) for _ in range(4)])

    def step(x):
        total = x
        for row in rows:
            total = total + row * x
        return total

    return vectors(step, watch=[rows])


@differential(hits=4, graphs=1)
def test_training_on_samples():
    samples = Samples([(torch.randn(3), float(i)) for i in range(5)])
    w = torch.randn(3, requires_grad=True)

    def step(x):
        loss = torch.zeros(())
        for row, label in samples:
            loss = loss + ((row * w).sum() - label) ** 2
        w.grad = None
        loss.backward()
        with torch.no_grad():
            w.sub_(0.01 * w.grad)
        return loss.detach()

    return vectors(step, watch=[w])


@differential(hits=4, graphs=1)
def test_tensors():
    columns = Columns(torch.randn(4, 3), torch.arange(4.0))
    return vectors(lambda x: sum((row * x).sum() * label for row, label in columns))


@differential(hits=4, graphs=1)
def test_what_takes_elements():
    numbers = Numbers(5)

    def step(x):
        first, *rest = numbers
        found = 4 in numbers, 5 in numbers
        pairs = list(zip(numbers, enumerate(numbers, 1)))
        return x * sum(numbers), max(numbers), [*numbers], first, rest, found, pairs, tuple(numbers)

    return vectors(step)


@differential(hits=4)
def test_in_stops_where_it_finds():
    rows = Rows([1, 2, 3])
    return vectors(lambda x: (x * (2 in rows), 7 in rows), watch=[rows])


@differential(hits=4)
def test_in_takes_of_an_iterator_what_it_looked_at():
    def step(x):
        numbers = iter([1, 2, 3, 4])
        return x * 2, 2 in numbers, list(numbers)

    return vectors(step)


@differential(hits=3)
def test_another_length():
    samples = Samples([torch.randn(3) for _ in range(3)])
    more = torch.randn(3)
    return vectors(
        lambda x: sum(row * x for row in samples),
        between=lambda: samples.samples.append(more),
        count=12,
    )


@differential(hits=4)
def test_loop_left_early():
    rows = Rows([torch.randn(3) for _ in range(4)])

    def step(x):
        for i, row in enumerate(rows):
            if i == 2:
                break
            x = x + row
        else:
            x = x * 100
        return x

    return vectors(step, watch=[rows])


@differential(hits=4)
def test_object_made_in_the_run():
    return vectors(lambda x: sum(row * 2 for row in Rows([x, x + 1])))


@differential(hits=4)
def test_end_inside_of_try():
    rows = Guarded([torch.randn(3) for _ in range(3)])
    return vectors(lambda x: sum(row * x for row in rows), watch=[rows])
