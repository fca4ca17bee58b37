"""Elements written to or added at tensors of indices in tensors that existed before the call: in place where nobody
needs the old contents and the indices are known to be inside, else as any other write."""

import pytest
from differential import Program, differential, rise_mib

import torch
import torchjanus
from torch import nn

WRITES = {
    "index_add": lambda s, i, y: s.index_add_(0, i, y * 2),
    "index_add inner": lambda s, i, y: s.index_add_(1, i % 4, y[:, :1].expand(5, 9).t() * 2),
    "index_add alpha": lambda s, i, y: s.index_add_(0, i, y * 2, alpha=3),
    "index_put": lambda s, i, y: s.index_put_((i,), y * 2, accumulate=True),
    "index_put two": lambda s, i, y: s.index_put_((i, i % 4), y[:, 0], accumulate=True),
    "index_put from end": lambda s, i, y: s.index_put_((i - 9,), y, accumulate=True),
    "index_put inner": lambda s, i, y: s[1:2].index_put_((i * 0, i % 4), y[:, 0], accumulate=True),
    "scatter_add": lambda s, i, y: s.scatter_add_(0, i[:, None].expand(5, 4), y * 2),
    "scatter_add apart": lambda s, i, y: s.scatter_add_(
        0, i[:, None] * torch.ones_like(y, dtype=torch.int64), y
    ),
    "scatter_add part": lambda s, i, y: s.scatter_add_(0, i[:, None].expand(5, 2), y[:, :3]),
    "scatter": lambda s, i, y: s.scatter_(0, i[:, None].expand(5, 4), y * 2),
    "add at": lambda s, i, y: s.__setitem__(i, s[i] + y),
    "decay at": lambda s, i, y: s.__setitem__(i, s[i] * 0.5 + y * 0.5),
    "one number": lambda s, i, y: s.__setitem__((i, i % 4), 3.0),
    "read before": lambda s, i, y: s.index_add_(0, i, s[:5] * 0.5 + y),
    "copy of itself": lambda s, i, y: s.index_add_(0, i, s[:5].clone()),
    "twice": lambda s, i, y: s.index_add_(0, i, y).index_add_(0, i, y * 2),
    "then more": lambda s, i, y: s.index_add_(0, i, y * 2).mul_(0.5),
}


def rows():
    """Different ones, as the order in which equal ones are written is nobody's business."""
    return torch.randperm(9)[:5]


@pytest.mark.parametrize("layout", ["in order", "transposed"])
@pytest.mark.parametrize("name", WRITES)
@differential()
def test_a_state_is_written(name, layout):
    strides = (4, 1) if layout == "in order" else (1, 9)
    state = torch.empty_strided((9, 4), strides).normal_()
    write = WRITES[name]

    def step(i, y):
        write(state, i, y)

    calls = [(rows(), torch.randn(5, 4)) for _ in range(6)]
    return Program(step, calls, watch=[state])


@pytest.mark.parametrize("name", WRITES)
@differential()
def test_what_is_read_and_returned_beside_it(name):
    state, other = torch.randn(9, 4), torch.zeros(9)
    write = WRITES[name]

    def step(i, y):
        before = state[i] * 2
        view = state[2]
        write(state, i + 0, y)
        other.index_add_(0, i, torch.ones(5))
        return before, view, state.sum(), other[i]

    return Program(step, [(rows(), torch.randn(5, 4)) for _ in range(6)], watch=[state, other])


@pytest.mark.parametrize("outside", [9, -1, -10, 2**40])
@pytest.mark.parametrize("name", ["index_add", "index_put", "scatter_add", "scatter", "add at"])
@differential(hits=9)
def test_indices_outside_change_nothing(name, outside):
    """Eager may have written what came before the wrong index: then so has the call that is run by it."""
    state, other = torch.randn(9, 4), torch.zeros(9)
    write = WRITES[name]

    def step(i, y):
        other.add_(1)
        try:
            write(state, i, y)
        except (IndexError, RuntimeError):
            return None
        return y * 2

    wrong = torch.tensor([outside, 1, 2, 3, 4])
    calls = [(rows(), torch.randn(5, 4)) for _ in range(6)]
    return Program(step, [*calls, (wrong, torch.randn(5, 4)), *calls], watch=[state, other])


@differential()
def test_indices_that_are_written_themselves():
    state, order = torch.randn(9, 4), torch.randperm(9)

    def step(y):
        state.index_add_(0, order, y)
        order.copy_((order + 1) % 9)
        state.index_add_(0, order, y * 2)

    return Program(step, [(torch.randn(9, 4),) for _ in range(6)], watch=[state, order])


@differential()
def test_indices_that_are_found_in_the_run():
    """Usage of codes, as vector quantisation counts it."""
    codes, usage = torch.randn(7, 4), torch.zeros(7)

    def step(x):
        nearest = torch.cdist(x, codes).argmin(1)
        usage.mul_(0.9).index_add_(0, nearest, torch.ones(len(x)))
        codes[nearest] += (x - codes[nearest]) * 0.1
        return nearest

    return Program(step, [(torch.eye(4) * i,) for i in range(1, 8)], watch=[codes, usage])


@differential()
def test_beside_a_training_step():
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4))
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    memory = torch.randn(9, 4)

    def step(i, y):
        optimizer.zero_grad()
        out = model(memory[i])
        loss = (out - y).square().mean()
        loss.backward()
        optimizer.step()
        memory[i] = out.detach() * 0.5 + memory[i] * 0.5
        return loss

    calls = [(rows(), torch.randn(5, 4)) for _ in range(7)]
    return Program(step, calls, watch=[model, optimizer, memory])


@differential(hits=5)
def test_in_branches_and_loops():
    state, counts = torch.randn(9, 4), torch.zeros(9)

    def step(i, y):
        if y.sum() > 0:
            state.index_add_(0, i, y)
        else:
            state[i] = y
        for k in range(len(i)):
            counts[i[k]] += 1
        return state.mean()

    calls = [(rows(), torch.randn(5, 4)) for _ in range(9)]
    return Program(step, calls, watch=[state, counts])


@pytest.mark.parametrize("name", ["index_add", "index_put", "scatter_add", "add at"])
def test_a_large_state_is_not_copied(name):
    state, write = torch.zeros(1 << 20, 4), WRITES[name]
    step = torchjanus.function(lambda i, y: [write(state, i, y), None][1])
    for _ in range(5):
        step(rows(), torch.randn(5, 4))
    hits = step.stats()["hits"]
    assert rise_mib(lambda: step(rows(), torch.randn(5, 4))) < 8
    assert step.stats()["hits"] > hits


@differential(hits=5)
def test_strides_of_results_of_their_own():
    def step(x, i, s):
        turned = x.t()
        return (
            turned.scatter(0, i, s),
            turned.scatter_add(0, i, s),
            turned.index_put((i[0],), s[0, 0]),
        )

    calls = [(torch.randn(4, 9), torch.randint(9, (3, 4)), torch.randn(3, 4)) for _ in range(9)]
    return Program(step, calls)


@pytest.mark.parametrize("operator", ["index_add", "index_put", "scatter_add"])
@differential(hits=5)
def test_into_a_view_that_is_given_back(operator):
    state = torch.zeros(9, 4)

    def step(x, i, y):
        part = (x * 2)[1:]
        if operator == "index_add":
            state.copy_(part.index_add(0, i, y))
        elif operator == "index_put":
            state.copy_(part.index_put((i,), y))
        else:
            state.copy_(part.scatter_add(0, i[:, None].expand(5, 4), y))
        return part

    calls = [(torch.randn(10, 4), torch.randint(9, (5,)), torch.randn(5, 4)) for _ in range(9)]
    return Program(step, calls, watch=[state])
