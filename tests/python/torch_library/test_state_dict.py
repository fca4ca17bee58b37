"""Modules' state read, loaded and copied in the step: target networks, averages, the best so far."""

import copy
import functools
from collections import OrderedDict, namedtuple

import torch.nn.functional as F
from differential import Program, differential

import torch
import torchjanus
from torch import nn


def network():
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 2))


def batches(count):
    return [(torch.randn(5, 4),) for _ in range(count)]


@differential(hits=5)
def test_target_network_is_loaded():
    net, target = network(), network()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)

    def step(x):
        with torch.no_grad():
            wanted = target(x).max(1).values
        loss = F.smooth_l1_loss(net(x).max(1).values, wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        result = target.load_state_dict(net.state_dict())
        return loss.item(), result

    return Program(step, batches(8), watch=[net, target, optimizer])


@differential(hits=5)
def test_target_network_is_loaded_now_and_then():
    net, target = network(), network()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    count = [0]

    def step(x):
        loss = (net(x) - target(x).detach()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        count[0] += 1
        if count[0] % 3 == 0:
            target.load_state_dict(net.state_dict())
        return loss.item()

    return Program(step, batches(20), watch=[net, target, optimizer, count])


@differential(hits=5)
def test_average_by_state():
    net, target = network(), network()

    def step(x):
        ours, theirs = net.state_dict(), target.state_dict()
        for key in ours:
            theirs[key] = ours[key] * 0.1 + theirs[key] * 0.9
        target.load_state_dict(theirs)
        return net(x).detach()

    return Program(step, batches(8), watch=[net, target])


@differential(hits=5)
def test_best_state_is_kept():
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    record = {"loss": 1e9, "state": None}

    def step(x):
        loss = net(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if loss.item() < record["loss"]:
            record["loss"] = loss.item()
            record["state"] = copy.deepcopy(net.state_dict())
        return loss.detach()

    return Program(step, batches(20), watch=[net, optimizer, record])


@differential(hits=5)
def test_state_is_handed_over():
    net = network()

    def step(x):
        y = net(x)
        state = net.state_dict()
        metadata = state._metadata
        return y.detach(), state, sorted(metadata), metadata[""], list(metadata["1"].items())

    return Program(step, batches(8), watch=[net])


@differential(hits=5)
def test_attributes_of_a_state_outlive_the_call():
    net = network()
    seen = []

    def step(x):
        state = net.state_dict(prefix="net.")
        state.origin = x.sum()
        return net(x).detach(), state

    def outer(step, x):
        y, state = step(x)
        seen.append((state._metadata, state.origin))
        return y

    converted = torchjanus.function(step)
    return Program(
        functools.partial(outer, step),
        batches(8),
        watch=[net, seen],
        convert=lambda _: (functools.partial(outer, converted), converted),
    )


@differential(hits=5)
def test_state_of_before_the_call_is_loaded():
    net, other = network(), network()
    states = [other.state_dict(), network().state_dict()]

    def step(x):
        net.load_state_dict(states[0])
        return net(x).detach()

    calls = [*batches(6), lambda: states.reverse(), *batches(6)]
    return Program(step, calls, watch=[net, states])


@differential(hits=3)
def test_key_that_is_missing():
    net, other = network(), network()
    state = other.state_dict()

    def step(x):
        net.load_state_dict(state)
        return net(x).detach()

    calls = [*batches(6), lambda: state.pop("0.bias") * 0, *batches(3)]
    return Program(step, calls, watch=[net])


@differential(hits=5)
def test_polyak_average_of_parameters_and_buffers():
    net, target = network(), network().requires_grad_(False)

    def step(x):
        with torch.no_grad():
            for p, q in zip(net.parameters(), target.parameters(), strict=True):
                q.lerp_(p, 0.01)
            for p, q in zip(net.buffers(), target.buffers(), strict=True):
                q.copy_(p)
        return (net(x) - target(x)).detach()

    return Program(step, batches(8), watch=[net, target])


@differential(reasons=["unsupported_tensor"])
def test_deep_copy_of_tied_tensors():
    held = {"a": torch.ones(3)}

    def step(x):
        held["a"].add_(x)
        pair = copy.deepcopy([held["a"].detach(), held["a"].detach()])
        pair[0].add_(1)
        return pair

    return Program(step, [(torch.randn(3),) for _ in range(6)], watch=[held])


@differential(hits=4)
def test_deep_copy_of_containers():
    def step(x):
        y = x * 2
        one = {"rows": [y, y + 1], "name": "n", "pair": (1, "a"), "same": None}
        one["same"] = one["rows"]
        two = copy.deepcopy(one)
        two["rows"][0] += 1
        two["rows"].append(3)
        return one, two, two["same"] is two["rows"], two["pair"] is one["pair"]

    return Program(step, [(torch.randn(3),) for _ in range(7)])


@differential(hits=3)
def test_memory_is_shared_only_later():
    held = [torch.ones(3), torch.ones(3)]

    def step(x):
        copies = copy.deepcopy(held)
        copies[0].add_(x)
        return copies

    def tie():
        held[1] = held[0].detach()

    calls = [(torch.randn(3),) for _ in range(6)]
    return Program(step, [*calls, tie, *calls[:3]])


@differential(hits=3)
def test_ordered_dict_on_both_sides():
    def step(x):
        if x.sum() > 0:
            made = OrderedDict(y=x * 2)
            made.note = x + 1
        else:
            made = OrderedDict(y=x - 1)
            made.note = x - 2
        return made["y"] + made.note

    return Program(step, [(torch.randn(3),) for _ in range(16)])


Base = namedtuple("Base", "mean spread")


class Estimate(Base):
    __slots__ = ()

    def upper(self):
        return self.mean + 2 * self.spread


class Doubled(Base):
    def __getitem__(self, index):
        return super().__getitem__(index) * 2


@differential(hits=4)
def test_class_derived_from_a_named_tuple():
    def step(x):
        estimate = Estimate(x.mean(), spread=x.std())
        mean, _ = estimate
        return estimate, estimate.upper(), mean + estimate[1], estimate._replace(mean=mean * 2)

    return Program(step, [(torch.randn(3),) for _ in range(7)])


@differential(hits=4)
def test_object_of_a_class_derived_from_a_named_tuple():
    def step(estimate):
        return estimate.upper() + estimate[0], len(estimate)

    return Program(step, [(Estimate(torch.randn(3), torch.randn(3)),) for _ in range(7)])


@differential(reasons=["unknown_callable"])
def test_named_tuple_that_is_read_otherwise():
    def step(x):
        return Doubled(x, x + 1)[0]

    return Program(step, [(torch.randn(3),) for _ in range(6)])
