"""Generators of the program whose elements are used where they are yielded."""

import pytest
from differential import Program, differential

import torch


def rows(count=30):
    return [(torch.randn(2 + (i * 7 + i * i) % 9, 4),) for i in range(count)]


def chunks(x, size):
    for i in range(0, x.shape[0], size):
        yield x[i] * 2


def positive(x):
    for row in x:
        if row.sum() > 0:
            yield row * 2


def numbered(x):
    index = 0
    for row in positive(x):
        yield index, row
        index += 1


def both(x):
    yield x.sum()
    yield from positive(x)
    yield -x.sum()


def summed(x):
    total = torch.zeros(())
    for part in chunks(x, 2):
        total = total + part.sum()
    return x * total


def listed(x):
    return x * sum([row.sum().item() for row in positive(x)])


def interleaved(x):
    seen = []

    def reading():
        for row in x:
            yield row.sum().item() + len(seen)

    for value in reading():
        if value < 0:
            continue
        seen.append(value)
    return x * len(seen), seen


def of_generators(x):
    total = torch.zeros(())
    for i, row in numbered(x):
        total = total + i * row.sum()
    for part in both(x):
        total = total + part.sum()
    return total


def printed(x):
    for row in positive(x):
        print(row[0].item())
    return x * 2


@pytest.mark.parametrize("step", [summed, listed, interleaved, of_generators, printed])
@differential(hits=20, graphs=2)
def test_consumed_at_once(step):
    return Program(step, rows())


@differential(reasons=["generator"])
def test_left_early():
    def step(x):
        for row in positive(x):
            if row[0] > 1:
                break
        else:
            return x
        return x + row

    return Program(step, [(torch.randn(3, 4),) for _ in range(40)])


@differential(aborts=1, hits=30)
def test_a_generator_that_fails():
    def inverse(x):
        for row in x:
            yield 1 / row[0].item()

    def step(x):
        total = 0.0
        for value in inverse(x):
            total += value
        return x * total

    calls = rows(40)
    for (x,) in calls[8::5]:
        x[-1, 0] = 0
    return Program(step, calls)
