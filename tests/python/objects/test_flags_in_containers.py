"""Flags and numbers in lists and tuples that are others in each call: inputs of one graph."""

import random
from collections import namedtuple

import torch.nn.functional as F
from differential import Program, differential

import torch
from torch import nn


def flags(count):
    return [random.random() < 0.5 for _ in range(count)]


@differential(hits=12, graphs=2)
def test_tuple_of_flags():
    def step(x, which):
        return x * torch.tensor(which), torch.tensor(which, dtype=torch.float64).sum()

    return Program(step, [(torch.randn(4), tuple(flags(4))) for _ in range(20)])


@differential(hits=14, graphs=2)
def test_transitions_as_a_namedtuple_of_tuples():
    """Tuples within what the program hands over, as a replay buffer gives them: taken apart once
    anything in them varies; actions that are views or not."""
    model = nn.Linear(4, 2)
    Batch = namedtuple("Batch", "states actions rewards done")

    def step(batch):
        values = model(batch.states).gather(1, torch.cat(batch.actions)).squeeze(1)
        wanted = torch.tensor(batch.rewards) + 0.9 * (
            1 - torch.tensor(batch.done, dtype=values.dtype)
        )
        model.zero_grad()
        loss = F.smooth_l1_loss(values, wanted)
        loss.backward()
        return loss.item()

    def action():
        if random.random() < 0.5:
            return torch.randn(1, 2).max(1)[1].view(1, 1)
        return torch.tensor([[random.randrange(2)]])

    def batch():
        rewards = tuple(random.choice([1.0, -0.5]) for _ in range(8))
        return Batch(torch.randn(8, 4), tuple(action() for _ in range(8)), rewards, tuple(flags(8)))

    return Program(step, [(batch(),) for _ in range(24)], watch=[model])


@differential(hits=6, graphs=2)
def test_views_that_are_only_read():
    """Whether what is only read is a view makes no difference; where it is written, it does."""

    def step(x, y):
        y.mul_(0.5)
        return (x.t() @ y).sum(), x[0]

    whole = torch.randn(8, 3)
    other, total = torch.randn(4, 3), torch.randn(4, 3)
    calls = [(other, total), (whole[:4], total)] * 4
    return Program(step, [*calls, (other, torch.randn(8, 3)[:4]), (whole[:4], whole[4:]), *calls])


@differential(hits=12, graphs=3)
def test_list_of_flags():
    def step(x, which):
        return x * torch.tensor(which)

    return Program(step, [(torch.randn(4), flags(4)) for _ in range(20)])


@differential(hits=10, graphs=3)
def test_flags_decide():
    def step(x, which):
        total = x.sum()
        for value, flag in zip(x, which, strict=True):
            total = total + (value * 2 if flag else value - 1)
        return total

    return Program(step, [(torch.randn(4), flags(4)) for _ in range(24)])


@differential(hits=8)
def test_flag_that_is_none_or_an_int_later():
    def step(x, which):
        return x * torch.tensor([float(bool(flag)) for flag in which])

    calls = [(torch.randn(3), flags(3)) for _ in range(14)]
    calls += [(torch.randn(3), [1, 0, True]), (torch.randn(3), [None, True, False])]
    return Program(step, [*calls, *calls[:4]])


@differential(hits=5)
def test_flag_beside_numbers():
    def step(x, row):
        scale, count, flag = row
        y = x * scale + count
        return y if flag else -y

    calls = [(torch.randn(3), (random.random(), i % 5 + 2, i % 3 == 0)) for i in range(20)]
    return Program(step, calls)


@differential(hits=10, graphs=4)
def test_batch_of_transitions():
    net, target = nn.Linear(4, 2), nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)

    def transition():
        return (
            torch.randn(4), random.randrange(2), random.random(), torch.randn(4), *flags(1)
        )  # fmt: skip

    def step(batch):
        states, actions, rewards, following, done = zip(*batch, strict=True)
        actions, rewards = torch.tensor(actions), torch.tensor(rewards)
        done = torch.tensor(done, dtype=torch.float64)
        values = net(torch.stack(states)).gather(1, actions.unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            best = target(torch.stack(following)).max(1).values
        loss = F.smooth_l1_loss(values, rewards + 0.9 * best * (1 - done))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    calls = [([transition() for _ in range(6)],) for _ in range(20)]
    return Program(step, calls, watch=[net, optimizer])


Transition = namedtuple("Transition", "state reward done")


@differential(hits=8)
def test_batch_of_named_tuples():
    def step(batch):
        whole = Transition(*zip(*batch, strict=True))
        final = torch.tensor([0.0 if done else 1.0 for done in whole.done])
        return torch.stack(whole.state).sum(1) * final + torch.tensor(whole.reward)

    calls = [
        ([Transition(torch.randn(3), random.random(), *flags(1)) for _ in range(4)],)
        for _ in range(20)
    ]
    return Program(step, calls)


@differential(hits=5)
def test_training_flag_is_followed():
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))

    def step(x, options):
        model.train(options[0])
        return model(x), model.training

    calls = [(torch.randn(3, 4), [i % 4 < 2]) for i in range(20)]
    return Program(step, calls, watch=[model])


@differential(hits=7)
def test_flag_of_the_data_decides_what_an_operator_is():
    def step(x):
        training = (x.sum() > 0).item()
        y = x * 1
        z = F.dropout(y, 0.5, training)
        same = y.to(torch.float64, copy=training)
        y.add_(1)
        return z + 0, same + 0, x.sum(0, keepdim=training), x.sort(0, descending=training).values

    return Program(step, [(torch.randn(3, 4),) for _ in range(16)])


@differential(hits=15)
def test_flag_of_the_entry_decides_what_an_operator_is():
    def step(x, which):
        y = x * 1
        z = F.dropout(y, 0.5, which[0])
        y.add_(1)
        return z + 0, x.kthvalue(2, 0, keepdim=which[1]).values

    return Program(step, [(torch.randn(3, 4), flags(2)) for _ in range(20)])
