"""Whatever fails in a graph, and wherever, the program does what it does eagerly.

Each program runs once for every place at which something can fail: an assumption at the entry, a
guard in the graph, an operator that throws, memory that is not there. The place fails on demand, in
a call that would run as a graph; that call and those after it must be as they are eagerly.
"""

import random

import pytest
import torch.nn.functional as F
from differential import Program, compare, default_dtype, observe, seeded
from random_trees import random_children

import torch
import torchjanus
from torch import nn
from torchjanus._core import testing

# More places than this in one program are sampled evenly.
MOST_PLACES = 14


def train_with_momentum():
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    batches = [(torch.randn(5, 4), torch.randint(0, 3, (5,))) for _ in range(7)]
    return Program(step, batches, watch=[model, optimizer])


def draw_and_normalise():
    model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Dropout(0.5), nn.Linear(6, 1))
    optimizer = torch.optim.Adam(model.parameters(), 0.01)

    def step(x):
        loss = (model(x + torch.randn_like(x)) - x.sum(1, keepdim=True)).abs().mean()
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
        return loss.detach(), torch.rand(3)

    return Program(step, [(torch.randn(5, 4),) for _ in range(7)], watch=[model, optimizer])


def branch_on_data():
    state = torch.zeros(4)

    def step(x):
        state.mul_(0.9).add_(x.mean(0))
        if x.sum() > -100:
            state.add_(1)
        y = x.tanh() * state
        if y.abs().max() < 100:
            return y, torch.rand(2)
        return x

    return Program(step, [(torch.randn(3, 4),) for _ in range(7)], watch=[state])


def write_in_place():
    table = torch.zeros(6, 4)

    def step(x, index):
        view = table[1:5]
        view.add_(x.mean())
        table[index] = x[0]
        x.mul_(0.5)
        return view.sum(), table.t() @ table

    calls = [(torch.randn(3, 4), torch.tensor([1, 3])) for _ in range(7)]
    return Program(step, calls, watch=[table])


def look_up_in_tables():
    model = nn.ModuleList([nn.Embedding(9, 4), nn.Linear(4, 5)])
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    seen = torch.zeros(9)

    def step(words, chosen):
        table, layer = model
        seen.index_add_(0, words.flatten(), torch.ones(words.numel()))
        scores = layer(table(words).mean(1)).log_softmax(1)
        loss = -scores.gather(1, chosen).mean() + (table.weight[words[0]] * 2).tanh().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    batches = [(torch.randint(0, 9, (6, 3)), torch.randint(0, 5, (6, 1))) for _ in range(7)]
    return Program(step, batches, watch=[model, optimizer, seen])


def gradient_outside():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))

    def step(x, scale):
        return (model(x) * scale).pow(2).mean()

    step_of_model = step

    def outer(convert):
        inner, watched = convert(step_of_model)

        def run(x, scale):
            for parameter in model.parameters():
                parameter.grad = None
            loss = inner(x, scale)
            testing.inject_fault("none")  # what fails in the backward graph has a test of its own
            loss.backward()
            return loss

        return run, watched

    calls = [(torch.randn(5, 4), 0.5 + i) for i in range(7)]
    plain = outer(lambda f: (f, None))[0]
    return Program(
        plain,
        calls,
        watch=[model],
        convert=lambda _: outer(lambda f: (torchjanus.function(f),) * 2),
    )


def keep_state_in_objects():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)
            self.steps = 0
            self.momentum = 0.5
            self.mean = torch.zeros(4)
            self.history = []

        def forward(self, x):
            self.steps += 1
            self.momentum = 0.9 * self.momentum + 0.05
            self.mean = self.momentum * self.mean + (1 - self.momentum) * x.mean(0)
            y = self.linear(x - self.mean)
            if y.sum() > 1000:
                self.history.clear()
            self.history.append(y.mean().item())
            return y

    model, totals = Model(), {"sum": 0.0}

    def step(x):
        y = model(x)
        totals["sum"] += y.sum().item()
        print(f"{totals['sum']:.3f}", model.steps)
        return y

    return Program(step, [(torch.randn(3, 4),) for _ in range(7)], watch=[model, totals])


def loop_until_done():
    cell = nn.GRUCell(4, 4)

    def step(x):
        state, halting = torch.zeros_like(x), torch.zeros(x.shape[0])
        while halting.max() < 1:
            state = cell(x, state)
            halting = halting + state.abs().mean(1).clamp(0.2, 0.6)
        return state.detach(), halting.detach(), random.random()

    return Program(step, [(torch.randn(3, 4),) for _ in range(8)], watch=[cell])


def branch_both_ways():
    weight = torch.randn(4, 4, requires_grad=True)

    def step(x):
        if x.sum() > 0:
            y = (x @ weight).tanh()
        else:
            y = x * weight.sum(0)
        loss = y.pow(2).mean()
        loss.backward()
        return loss

    calls = [(torch.randn(3, 4) + (0.5 if i % 2 else -0.5),) for i in range(8)]
    return Program(step, calls, watch=[weight])


def leave_layers_out():
    layers = nn.ModuleList(nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.3)) for _ in range(3))
    optimizer = torch.optim.SGD(layers.parameters(), 0.1, momentum=0.9)

    def step(x):
        for layer in layers:
            if random.random() < 0.6:
                x = x + layer(x).tanh()
        loss = (x * x).mean()
        optimizer.zero_grad()
        if loss.requires_grad:
            loss.backward()
        optimizer.step()
        return loss.detach(), random.random()

    return Program(step, [(torch.randn(3, 4),) for _ in range(9)], watch=[layers, optimizer])


class Node:
    def __init__(self, value, children):
        self.value, self.children = value, children


def node(size):
    return Node(random.random(), random_children(size, node))


def write_to_nodes():
    layer = nn.Linear(4, 4)

    def go(node):
        node.seen = True
        node.state = torch.tanh(layer.bias * node.value)
        for child in node.children:
            go(child)
            node.seen = child.value
        state = layer(node.state)
        for child in node.children:
            state = state + child.state
        node.state = torch.tanh(state)

    def step(root):
        layer.zero_grad()
        go(root)
        loss = root.state.square().sum()
        loss.backward()
        return loss

    return Program(step, [(node(random.randrange(2, 8)),) for _ in range(9)], watch=[layer])


PROGRAMS = [
    train_with_momentum, draw_and_normalise, branch_on_data, write_in_place, gradient_outside,
    keep_state_in_objects, loop_until_done, branch_both_ways, leave_layers_out,
    write_to_nodes,
]  # fmt: skip


def with_fault(build, fault: str, place: int, call: int):
    """The program with this fault injected in front of that call."""

    def build_it():
        program = build()
        program.calls = list(program.calls)
        program.calls.insert(call, lambda: testing.inject_fault(fault, place))
        return program

    return build_it


def run_with_fault(build, fault: str, place: int, call: int):
    """What was observed, and whether the place exists."""
    try:
        # What lazy execution has learned of operators stays from run to run.
        with torchjanus.options.without("lazy"):
            observed = observe(seeded(with_fault(build, fault, place, call), {}), converted=True)
        return observed, testing.fault_happened()
    finally:
        testing.inject_fault("none")


def count_places(build, fault: str, call: int) -> int:
    """How many places of this kind one run passes: found by doubling, then by halving."""
    least, most = 0, 1
    while run_with_fault(build, fault, most - 1, call)[1]:
        least, most = most, 2 * most
    while most - least > 1:
        middle = (least + most) // 2
        if run_with_fault(build, fault, middle - 1, call)[1]:
            least = middle
        else:
            most = middle
    return least


@pytest.mark.parametrize(
    "call", [4, 5]
)  # the first run of a graph allocates and learns; then planned
@pytest.mark.parametrize("fault", ["assumption", "guard", "operation", "memory"])
@pytest.mark.parametrize("build", PROGRAMS, ids=lambda build: build.__name__)
def test_after_a_fault_all_is_as_eagerly(build, fault, call):
    with default_dtype(torch.float64):
        expected = observe(seeded(build, {}), converted=False)
        places = count_places(build, fault, call)
        stride = max(1, -(-places // MOST_PLACES))
        for place in range(0, places, stride):
            actual, happened = run_with_fault(build, fault, place, call)
            assert happened
            for index, (one, other) in enumerate(zip(expected.steps, actual.steps, strict=True)):
                compare(one, other, f"{fault} {place} of {places}, after call {index}", 1e-10)


def test_faults_reach_graphs():
    """Most kinds of faults have places in a training step that runs as a graph."""
    with default_dtype(torch.float64):
        assert count_places(train_with_momentum, "assumption", 5) > 5
        assert count_places(train_with_momentum, "operation", 5) > 2
        assert count_places(branch_on_data, "guard", 5) >= 1
        assert count_places(draw_and_normalise, "memory", 5) > 0


@pytest.mark.parametrize("fault, error", [("operation", RuntimeError), ("memory", RuntimeError)])
def test_a_fault_in_the_backward_graph_raises_and_changes_nothing(fault, error):
    """The forward pass is over: there is no way back, as there is none in eager's backward."""
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    step = torchjanus.function(lambda x: model(x).pow(2).mean())
    x = torch.randn(5, 4)
    for _ in range(5):
        step(x).backward()
    before = [parameter.grad.clone() for parameter in model.parameters()]
    loss = step(x)
    testing.inject_fault(fault, 0)
    try:
        with pytest.raises(error):
            loss.backward()
    finally:
        testing.inject_fault("none")
    assert step.stats()["hits"] > 0
    for parameter, grad in zip(model.parameters(), before, strict=True):
        assert torch.equal(parameter.grad, grad)
    step(x).backward()
    for parameter, grad in zip(model.parameters(), before, strict=True):
        torch.testing.assert_close(parameter.grad, grad * 6 / 5)
