"""Copies of models that take each other's place, and what tells objects apart: the graph is the same for all."""

import copy
import enum

import pytest
import torch.nn.functional as F
from differential import Program, differential

import torch
from torch import nn


def network():
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 2))


def batches(count):
    return [(torch.randn(5, 4),) for _ in range(count)]


class Bootstrap(nn.Module):
    """An online network that learns what its target, an average of what it was, says."""

    def __init__(self):
        super().__init__()
        self.online, self.predictor = network(), nn.Linear(2, 2)
        self.seen = seen = {}

        def keep(module, arguments, output):
            seen["last"] = output.detach()

        self.online[0].register_forward_hook(keep)
        self.begin_target()

    def begin_target(self):
        self.target = copy.deepcopy(self.online).requires_grad_(False)

    @torch.no_grad()
    def follow(self):
        for ours, its in zip(self.online.parameters(), self.target.parameters()):
            its.data.mul_(0.9).add_(ours.data, alpha=0.1)

    def forward(self, x):
        with torch.no_grad():
            wanted = self.target(x)
        return 1 - F.cosine_similarity(self.predictor(self.online(x)), wanted).mean()


@differential(hits=14, graphs=1)
def test_the_target_is_copied_anew():
    model = Bootstrap()
    parameters = [*model.online.parameters(), *model.predictor.parameters()]
    optimizer = torch.optim.SGD(
        parameters, 0.1, momentum=0.9
    )  # a bias in front of a norm has no gradient but noise

    def step(x):
        loss = model(x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.follow()
        return loss, model.seen["last"], [p.detach() * 1 for p in model.target.parameters()]

    calls = []
    for _ in range(4):
        calls += [*batches(5), model.begin_target]
    return Program(step, calls, watch=[optimizer])


@differential(hits=8, graphs=1)
def test_another_model_at_each_call():
    models = [network() for _ in range(12)]

    def step(model, x):
        for p in model.parameters():
            p.grad = None
        model(x).square().mean().backward()
        return nn.utils.clip_grad_norm_(model.parameters(), 0.1)

    calls = [(model, *batch) for model, batch in zip(models, batches(12), strict=True)]
    return Program(step, calls, watch=models)


def shared(tied):
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
    if tied:
        model[2] = model[0]
    return model


@differential(hits=6, graphs=2)
def test_a_layer_that_is_shared_is_another_graph():
    models = [shared(i >= 6) for i in range(14)]

    def step(model, x):
        count = sum(p.numel() for p in model.parameters())
        return model(x).sum().detach() * count, len(list(model.modules()))

    calls = [(model, *batch) for model, batch in zip(models, batches(14), strict=True)]
    return Program(step, calls)


@differential(hits=6, graphs=2)
def test_weights_that_are_shared_are_another_graph():
    def tied(share):
        model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
        if share:
            model[1].weight = model[0].weight
        return model

    models = [tied(i >= 6) for i in range(14)]

    def step(model, x):
        return sum(p.square().sum() for p in model.parameters()).detach() + model(x).sum().detach()

    calls = [(model, *batch) for model, batch in zip(models, batches(14), strict=True)]
    return Program(step, calls)


@differential(hits=3, graphs=2)
def test_two_tensors_that_become_one():
    def step(a, b):
        return a + 1 if a is b else a - b

    x, y = torch.randn(3), torch.randn(3)
    return Program(step, [(x, y)] * 6 + [(x, x)] * 6 + [(y, x)])


@differential(hits=3, graphs=2)
def test_two_modules_that_become_one():
    class Pair:
        def __init__(self, first, second):
            self.first, self.second = first, second

    one, other = nn.Linear(4, 4), nn.Linear(4, 4)
    apart, same = Pair(one, other), Pair(one, one)

    def step(pair, x):
        y = pair.first(x)
        if pair.first is not pair.second and pair.first != pair.second:
            y = pair.second(y)
        return y.detach()

    calls = [(pair, *batch) for pair in [apart] * 6 + [same] * 6 for batch in batches(1)]
    return Program(step, calls)


@differential(hits=3)
def test_sets_of_objects():
    layers = [nn.Linear(4, 4) for _ in range(4)]
    frozen = [layers[1], layers[3]]

    def step(x):
        skipped = {*frozen, layers[2]} - {layers[2]}
        seen = {x}
        for layer in layers:
            if layer in skipped:
                continue
            x = layer(x)
            seen.add(x)
        seen.discard(x)
        return x.detach(), len(skipped), len(seen), x in seen, 3 in seen, skipped == set(frozen)

    return Program(step, batches(8))


@differential(hits=3)
def test_parameters_of_a_module_made_in_the_step():
    net = network()

    def step(x):
        tail = net[2:]
        return net(x).detach(), len(list(tail.parameters())), len(list(tail.modules()))

    return Program(step, batches(8), watch=[net])


@differential(reasons=["dynamic_value"])
def test_the_order_of_made_objects_is_not_known():
    net = network()

    def step(x):
        parts = {net[:1], net[1:]}
        return net(x).detach(), sum(len(part) for part in parts)

    return Program(step, batches(8), watch=[net])


class Plain:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


class Copied(Plain):
    def __copy__(self):
        return Copied(copied=True)


class Reduced(Plain):
    def __reduce__(self):
        return (Reduced, ())


class Asking(Plain):
    def __getattr__(self, name):
        raise AttributeError(name)


class Constructed(Plain):
    def __new__(cls, **attributes):
        return super().__new__(cls)


class Slotted:
    __slots__ = ("x",)


@differential(hits=6)
def test_copy_of_an_object():
    state = Plain(scale=2.0, parts=[1.0], weight=torch.randn(4))

    def step(x):
        other, made = copy.copy(state), copy.copy(Plain(x=x))
        other.scale = 3.0
        other.parts.append(1.0)
        made.y = 2
        return x * other.scale * other.weight + made.x, made, other.parts is state.parts, other

    return Program(step, [*batches(9), lambda: setattr(state, "more", 1), *batches(6)], [state])


@differential(hits=6)
def test_copy_of_an_object_that_the_run_has_changed():
    state = Plain(scale=2.0)

    def step(x):
        state.scale = state.scale + 1
        state.new = x
        other = copy.copy(state)
        state.scale = 0.0
        return x * other.scale, other.new is x

    return Program(step, batches(10), [state])


@differential(hits=6)
def test_the_class_gets_a_copy_of_its_own():
    class Own(Plain):
        pass

    state = Own(scale=2.0)

    def step(x):
        return x * copy.copy(state).scale

    def give():
        Own.__copy__ = lambda self: Plain(scale=7.0)

    return Program(step, [*batches(7), give, *batches(5)])


@differential(hits=4)
def test_copy_by_a_method_of_the_class():
    state = Copied(scale=2.0)

    def step(x):
        return x * 2, copy.copy(state).copied

    return Program(step, batches(7))


@pytest.mark.parametrize("kind", [Reduced, Asking, Constructed, Slotted])
def test_copies_that_are_not_known(kind):
    @differential(reasons=["unknown_callable"], hits=0)
    def agrees():
        state = kind()

        def step(x):
            return x * 2, type(copy.copy(state)).__name__

        return Program(step, batches(7))

    agrees()


@differential(hits=4)
def test_copy_of_containers_and_constants():
    held = {"list": [1.0, 2.0], "dict": {"a": 1}, "text": "a"}

    def step(x):
        parts = {name: copy.copy(each) for name, each in held.items()}
        parts["list"].append(3.0)
        return x * len(parts["list"]), parts

    return Program(step, batches(7), [held])


class Kind(enum.Enum):
    A = 1


@differential(hits=10)
def test_deep_copy_of_objects():
    shared = Plain(scale=2.0)
    state = Plain(
        first=shared, second=shared, parts=[1.0], kind=Kind.A, dtype=torch.float32, none=None
    )
    state.own = state

    def step(x):
        other = copy.deepcopy(state)
        other.first.scale = other.first.scale + 1
        other.parts.append(2.0)
        return (
            x * other.second.scale * state.first.scale,
            other,
            other.own is other,
            other.kind is Kind.A,
            copy.deepcopy(Plain(x=x.sum())),
        )

    def part():
        state.second = Plain(scale=5.0)

    return Program(step, [*batches(8), part, *batches(7)], [state])


@differential(reasons=["guard_failed"])
def test_the_class_gets_a_deep_copy_of_its_own():
    class Own(Plain):
        pass

    state = Own(scale=2.0)

    def step(x):
        return x * copy.deepcopy(state).scale

    def give():
        Own.__deepcopy__ = lambda self, memo: Plain(scale=7.0)

    return Program(step, [*batches(7), give, *batches(5)])
