"""Loops of varying iterations that write to Python's objects, and that are left by `return`."""

from differential import Program, differential

import torch
from torch import nn


class State:
    def __init__(self):
        self.total = 0.0
        self.count = 0
        self.last = torch.zeros(4)
        self.seen = []
        self.table = {"sum": 0.0, "iterations": 0}
        self.fresh = None


def halving(step, watch=(), count=14):
    """Calls whose loops run 1 to 6 iterations."""
    calls = [(torch.rand(4) + 2.0 ** (1 + i % 6),) for i in range(count)]
    return Program(step, calls, watch=watch)


@differential(hits=8)
def test_numbers_in_attributes():
    state = State()

    def step(x):
        y = x * 1
        while y.sum() > 4:
            y = y / 2
            state.count += 1
            state.total = 0.9 * state.total + y.sum().item()
        return y * state.count

    return halving(step, [state])


def halving_into_an_attribute(state):
    def step(x):
        y = x * 1
        while y.sum() > 4:
            y = y / 2
            state.last = state.last * 0.5 + y
        return y

    return step


@differential(hits=8)
def test_tensor_in_an_attribute():
    state = State()
    return halving(halving_into_an_attribute(state), [state])


@differential(hits=6)
def test_tensor_in_an_attribute_without_an_iteration():
    state = State()
    calls = [(torch.rand(4) + 2.0 ** (i % 6 if i % 5 else -9),) for i in range(18)]
    return Program(halving_into_an_attribute(state), calls, watch=[state])


@differential(hits=8)
def test_items_of_a_dict():
    state = State()

    def step(x):
        y = x * 1
        while y.sum() > 4:
            y = y / 2
            state.table["iterations"] += 1
            state.table["sum"] += y[0].item()
        return y + state.table["iterations"]

    return halving(step, [state])


@differential(hits=8)
def test_list_of_before_the_call_grows():
    state = State()

    def step(x):
        y = x * 1
        while y.sum() > 4:
            y = y / 2
            state.seen.append(y.sum().item())
            state.seen.append(1)
        return y

    with_numbers = halving(step, [state])

    def floats(x):
        y = x * 1
        while y.sum() > 4:
            y = y / 2
            state.seen.append(y.sum().item())
        return y, len(state.seen)

    return Program(floats, with_numbers.calls, watch=[state])


@differential(hits=8)
def test_list_of_tensors_of_before_the_call_grows():
    state = State()

    def step(x):
        y = x * 1
        while y.sum() > 4:
            y = y / 2
            state.seen.append(y * 2)
        return y

    return halving(step, [state])


@differential(hits=6)
def test_list_of_before_the_call_grows_on_one_side():
    state = State()

    def step(x):
        if x.sum() > 8:
            state.seen.append(x.sum().item())
        return x * 2

    return halving(step, [state])


@differential(hits=8)
def test_global_and_closure():
    count = 0

    def step(x):
        nonlocal count
        y = x * 1
        while y.sum() > 4:
            y = y / 2
            count += 1
        return y * count

    return halving(step)


@differential(hits=8)
def test_attribute_of_a_module_that_trains():
    model = nn.Linear(4, 4)
    model.iterations = 0
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(x):
        h = x / x.norm()
        while h.sum() > 0.1:
            h = torch.tanh(model(h)) / 2
            model.iterations += 1
        loss = h.pow(2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return halving(step, [model])


@differential(hits=2)
def test_attribute_that_the_iterations_make():
    def step(state, x):
        y = x * 1
        while y.sum() > 4:
            y = y / 2
            state.made = y.sum().item()
        return y

    return Program(step, [(State(), torch.rand(4) + 2.0 ** (1 + i % 6)) for i in range(14)])


# --- return


@differential(hits=8, graphs=1)
def test_return_out_of_a_loop():
    def step(x):
        y = x * 1
        while True:
            y = y / 2
            if y.sum() < 4:
                return y

    return halving(step)


@differential(hits=8, graphs=1)
def test_return_or_the_end():
    def step(x):
        y = x * 1
        for i in range(4):
            y = y / 2
            if y.sum() < 4:
                return y * i, i
        return y, -1

    return halving(step)


@differential(hits=8)
def test_return_out_of_nested_loops():
    def step(x):
        y = x * 1
        while y.max() < 100:
            z = y
            while z.sum() > 2:
                z = z / 2
                if z[0] < 1:
                    return z, y.sum()
            y = y * 3
        return y, z.sum()

    return halving(step)


@differential(hits=8)
def test_return_of_a_constant_out_of_a_called_function():
    def found(y, least):
        while y.sum() > least:
            y = y / 2
            if y[0] < y[1]:
                return True
            y = y + torch.tensor([0.1, 0.0, 0.0, 0.0])
        return False

    def step(x):
        return x * 2 if found(x * 1, 4) else x + 1

    return halving(step)


@differential(hits=8)
def test_return_with_break_else_and_continue():
    def step(x):
        y = x * 1
        n = 0
        while y.sum() > 1:
            n += 1
            y = y * 0.7
            if n % 2:
                continue
            if y[0] < 0.5:
                return y * 100
            if y[1] < 0.6:
                break
        else:
            y = y + 50
        return y + n

    return halving(step)


@differential(hits=8)
def test_return_is_trained():
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def think(h):
        for _ in range(6):
            h = torch.sigmoid(model(h))
            if h[0] < 0.5:
                return h * 2
        return h

    def step(x):
        loss = think(x).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return Program(step, [(torch.randn(4),) for _ in range(16)], watch=[model])


@differential(hits=9, graphs=1)
def test_range_of_a_number_that_may_give_the_argument():
    def step(x, n):
        for _ in range(n):
            x = x / 2
        return x

    return Program(step, [(torch.rand(4), 1 + i % 5) for i in range(14)])


@differential(hits=6)
def test_range_that_is_empty_gives_the_argument():
    def step(x, n):
        for _ in range(n):
            x = x / 2
        return x

    return Program(step, [(torch.rand(4), i % 5) for i in range(20)])


@differential(reasons=["dynamic_control"])
def test_an_element_of_another_type_after_the_loop():
    """The list cannot be one of the graph, whose elements are of one type: nothing of it is lost."""
    history = []

    def step(x, n, last):
        i = 0
        while i < n and x.sum() > -1:
            i += 1
            history.append(i)
        history.append(last)
        return x * i

    return Program(step, [(torch.rand(3), 2 + k % 4, 0.5 + k) for k in range(12)], watch=[history])
