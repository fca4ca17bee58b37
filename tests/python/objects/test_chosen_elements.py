"""One element of a long list that existed before the call, at a position that varies: a sample of a data set."""

import random
from dataclasses import dataclass

import pytest
import torch.nn.functional as F
from differential import Program, differential

import torch
from torch import nn

COUNT = 20


@dataclass
class Sample:
    x: torch.Tensor
    label: int


@dataclass
class NegativeSample(Sample):
    weight: float = 2.0


def made_samples(count=COUNT):
    return [Sample(torch.randn(4), i % 3) for i in range(count)]


def positions(step, count=30, watch=(), between=None):
    calls = [(7 * i % 23,) for i in range(count)]
    if between is not None:
        calls.insert(count // 2, between)
    return Program(step, calls, watch=watch)


def trained(loss_of, between=None):
    """Calls of a training step whose loss is computed of a position."""
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(i):
        loss = loss_of(model, i)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return positions(step, watch=[model], between=between)


@differential(hits=26, graphs=1)
def test_objects():
    samples = made_samples()

    def loss_of(model, i):
        sample = samples[i % len(samples)]
        return F.cross_entropy(model(sample.x)[None], torch.tensor([sample.label]))

    return trained(loss_of)


@differential(hits=26, graphs=1)
def test_tensors():
    rows = [torch.randn(5, 4) for _ in range(COUNT)]
    return trained(lambda model, i: model(rows[i % len(rows)]).square().mean())


@differential(hits=26, graphs=1)
def test_tuples():
    samples = [(torch.randn(4), i % 3, i / 7) for i in range(COUNT)]

    def loss_of(model, i):
        x, label, weight = samples[i % len(samples)]
        return weight * F.cross_entropy(model(x)[None], torch.tensor([label]))

    return trained(loss_of)


@differential(hits=16)
def test_tuple_of_another_form_among_them():
    samples = [(torch.randn(4), 1) for _ in range(COUNT)]

    def exchange():
        samples[3] = (torch.randn(2, 4), 1)
        samples[5] = (torch.randn(4), 1, 2)

    def loss_of(model, i):
        x, label = samples[i % COUNT]
        return model(x).sum() * label

    return trained(loss_of, between=exchange)


@differential(hits=26, graphs=1)
def test_batches():
    samples = made_samples()

    def loss_of(model, i):
        batch = [samples[(4 * i + k) % len(samples)] for k in range(4)]
        scores = model(torch.stack([sample.x for sample in batch]))
        return F.cross_entropy(scores, torch.tensor([sample.label for sample in batch]))

    return trained(loss_of)


@differential(hits=26, graphs=1)
def test_from_the_end():
    rows = [torch.randn(4) for _ in range(COUNT)]
    return trained(lambda model, i: model(rows[-1 - i % len(rows)]).sum())


@differential(hits=24, graphs=1)
def test_list_that_others_change():
    samples = made_samples()

    def exchange():
        samples[3] = Sample(torch.ones(4), 2)
        samples.reverse()

    def loss_of(model, i):
        sample = samples[i % COUNT]
        return model(sample.x)[sample.label]

    return trained(loss_of, between=exchange)


@differential(hits=16)
def test_another_class_among_them():
    samples = made_samples()

    def exchange():
        samples[5:9] = [NegativeSample(torch.ones(4), 1) for _ in range(4)]

    def loss_of(model, i):
        sample = samples[i % COUNT]
        loss = model(sample.x)[sample.label]
        return -sample.weight * loss if isinstance(sample, NegativeSample) else loss

    return trained(loss_of, between=exchange)


@differential(hits=16)
def test_another_shape_among_them():
    rows = [torch.randn(5, 4) for _ in range(COUNT)]

    def exchange():
        rows[3] = torch.randn(2, 4)

    return trained(lambda model, i: model(rows[i % COUNT]).sum(), between=exchange)


@differential(hits=10)
def test_index_out_of_range():
    rows = [torch.randn(4) for _ in range(COUNT)]
    return positions(lambda i: rows[i] * 2)


@differential(hits=12)
def test_element_handed_on():
    rows = [torch.randn(4) for _ in range(COUNT)]
    return positions(lambda i: (rows[i % COUNT], rows[i % COUNT] is rows[3], rows[i % COUNT] * 2))


@differential(hits=8)
def test_element_written():
    rows = [torch.randn(4) for _ in range(COUNT)]

    def step(i):
        row = rows[i % 3]
        row.mul_(0.5)
        return row.sum()

    return positions(step, watch=[rows])


@differential(hits=8)
def test_elements_with_gradients():
    rows = [torch.randn(4, requires_grad=True) for _ in range(COUNT)]

    def step(i):
        row = rows[i % 3]
        loss = (row * row).sum()
        loss.backward()
        return loss, row.grad.sum()

    return positions(step, watch=[rows])


@differential(hits=17)
def test_list_that_the_step_changes():
    samples = made_samples()

    def step(i):
        first = samples[i % COUNT].x * 2
        samples[(i + 1) % 3] = samples[4]
        return first + samples[i % 5].x

    return positions(step)


@differential(graphs=9, hits=9)
def test_no_graph_for_every_position():
    """Of 50 positions, each a graph, no more than a few are made."""
    rows = [torch.randn(2 + i % 5) for i in range(50)]
    return Program(lambda i: rows[i % 50].square().sum(), [(i,) for i in range(60)])


@differential(hits=26, graphs=1)
def test_slice_of_samples():
    samples = made_samples()

    def loss_of(model, i):
        batch = samples[i % 16 : i % 16 + 4]
        scores = model(torch.stack([sample.x for sample in batch]))
        return F.cross_entropy(scores, torch.tensor([sample.label for sample in batch]))

    return trained(loss_of)


@differential(hits=20)
def test_last_slice_is_shorter():
    rows = [torch.randn(4) for _ in range(COUNT)]

    def step(i):
        start = 6 * (i % 4)
        total = torch.zeros(4)
        for row in rows[start : start + 6]:
            total = total + row
        return total, len(rows[start : start + 6])

    return positions(step, count=40)


@differential(hits=26, graphs=1)
def test_slice_of_tuples_and_of_a_tuple():
    samples = tuple((torch.randn(4), i % 3) for i in range(COUNT))

    def step(i):
        part = samples[i % 17 : i % 17 + 3]
        return sum(x * label for x, label in part), type(part), len(part)

    return positions(step)


@differential(hits=20)
def test_slice_from_the_end():
    rows = [torch.randn(4) for _ in range(COUNT)]
    return positions(lambda i: sum(rows[-4 - i % 16 : COUNT - i % 16]))


@differential(hits=26, graphs=1)
def test_slice_of_a_long_list_of_numbers():
    rows = [torch.randn(4) for _ in range(100)]
    order = random.sample(range(100), 100)
    return positions(lambda i: sum(rows[k] for k in order[3 * i % 90 : 3 * i % 90 + 3]))


@differential(hits=20)
def test_slice_of_a_list_that_others_change():
    samples = made_samples()

    def exchange():
        samples[3] = NegativeSample(torch.ones(4), 1)
        samples.append(Sample(torch.ones(4), 2))
        samples.reverse()

    def loss_of(model, i):
        return sum(model(sample.x)[sample.label] for sample in samples[i % 16 : i % 16 + 2])

    return trained(loss_of, between=exchange)


@differential(hits=4)
def test_slice_whose_elements_are_handed_on():
    rows = [torch.randn(4) for _ in range(COUNT)]

    def step(i):
        part = rows[i % 3 : i % 3 + 2]
        return part, part[0] is rows[0], part[1] * 2

    return positions(step)


@differential(hits=2)
def test_slice_of_a_list_that_the_step_changes():
    rows = [torch.randn(4) for _ in range(COUNT)]

    def step(i):
        rows.append(rows[0] + 1)
        return sum(rows[i % 3 : i % 3 + 2])

    return positions(step, watch=[rows])


@pytest.mark.parametrize("draw", ["choice", "sample", "choices", "generator", "slice"])
def test_elements_that_the_run_draws(draw):
    def build():
        samples = made_samples()
        generator = random.Random(3)
        draws = {
            "choice": lambda: [random.choice(samples)],
            "sample": lambda: random.sample(samples, 4),
            "choices": lambda: random.choices(samples, k=3),
            "generator": lambda: generator.sample(samples, 2),
            "slice": lambda: samples[(start := random.randrange(16)) : start + 4],
        }
        take = draws[draw]

        def loss_of(model, i):
            batch = take()
            scores = model(torch.stack([sample.x for sample in batch]))
            return F.cross_entropy(scores, torch.tensor([sample.label for sample in batch]))

        return trained(loss_of)

    differential(hits=26, graphs=1)(build)()


@differential(hits=20)
def test_drawn_from_a_list_that_grows():
    samples = made_samples()

    def exchange():
        samples.append(Sample(torch.ones(4), 2))

    def loss_of(model, i):
        sample = random.choice(samples)
        return model(sample.x)[sample.label]

    return trained(loss_of, between=exchange)


@differential(hits=26, graphs=1)
def test_pairs_that_the_run_draws():
    samples = [(torch.randn(4), i % 3) for i in range(COUNT)]

    def step(i):
        total = torch.zeros(4)
        for x, label in random.sample(samples, 3):
            total = total + x * label * i
        return total

    return positions(step)


@differential(hits=26, graphs=1)
def test_slice_of_few_numbers():
    rows = [torch.randn(4) for _ in range(COUNT)]
    order = random.sample(range(COUNT), COUNT)
    return positions(lambda i: sum(rows[k] for k in order[i % 16 : i % 16 + 4]), watch=[order])


@differential(reasons=["dynamic_value"])
def test_slice_of_positions_that_the_run_shuffles():
    rows = [torch.randn(4) for _ in range(COUNT)]
    order = list(range(COUNT))

    def step(i):
        random.shuffle(order)
        return torch.stack([rows[k] for k in order[i % 16 : i % 16 + 4]])

    return positions(step, watch=[order])
