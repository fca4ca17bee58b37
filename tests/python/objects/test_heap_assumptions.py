"""What a graph assumed of the objects that it writes no longer holds. PYTEST_DONT_REWRITE"""

from differential import Program, differential

import torch

STEPS = 12


def calls(*shape, count=STEPS):
    return [(torch.randn(*shape),) for _ in range(count)]


class State:
    def __init__(self, **values):
        vars(self).update(values)


@differential(hits=6)
def test_object_replaced_between_calls():
    holder = State(child=State(n=0))

    def step(x):
        holder.child.n += 1
        return x * holder.child.n

    arguments = calls(3, count=20)
    arguments[9:9] = [lambda: setattr(holder, "child", State(n=50))]
    return Program(step, arguments, watch=[holder])


@differential(hits=6)
def test_type_of_the_attribute_changes():
    state = State(n=0)

    def step(x):
        state.n = state.n + 1
        return x * state.n

    arguments = calls(3, count=24)
    arguments[9:9] = [lambda: setattr(state, "n", 0.5)]
    arguments[17:17] = [lambda: setattr(state, "n", torch.ones(3))]
    return Program(step, arguments, watch=[state])


@differential(hits=6)
def test_attribute_deleted_between_calls():
    state = State(n=1)

    def step(x):
        state.n = getattr(state, "n", 10) + 1
        return x * state.n

    arguments = calls(3, count=24)
    arguments[9:9] = [lambda: delattr(state, "n")]
    return Program(step, arguments, watch=[state])


@differential(hits=4)
def test_setattr_added_later():
    class Later:
        def __init__(self):
            self.n = 0

    state = Later()

    def step(x):
        state.n = state.n + 1
        return x * state.n

    def add():
        Later.__setattr__ = lambda self, name, value: object.__setattr__(self, name, value + 1)

    arguments = calls(3, count=24)
    arguments[9:9] = [add]
    return Program(step, arguments, watch=[state])


@differential(hits=4)
def test_property_added_later():
    class Later:
        def __init__(self):
            self.n = 0

    state = Later()

    def step(x):
        state.n = state.n + 1
        return x * 2

    def add():
        Later.n = property(lambda self: vars(self)["n"], lambda self, v: vars(self).update(n=v * 2))

    arguments = calls(3, count=24)
    arguments[9:9] = [add]
    return Program(step, arguments, watch=[state])


@differential(hits=6)
def test_two_paths_become_one_object():
    def step(x, a, b):
        a.n = a.n + 1
        b.n = b.n * 2
        return x * a.n

    one, two = State(n=1), State(n=2)
    three = State(n=1)
    arguments = [(torch.randn(3), one, two) for _ in range(8)]
    arguments += [(torch.randn(3), three, three) for _ in range(8)]
    arguments += [(torch.randn(3), one, two) for _ in range(3)]
    return Program(step, arguments, watch=[one, two, three])


@differential(hits=6)
def test_one_object_becomes_two():
    def step(x, a, b):
        a["n"] = 1.0 + x.shape[0]
        return x * b["n"]

    one, two = {"n": 0.5}, {"n": 3.0}
    arguments = [(torch.randn(3), one, one) for _ in range(8)]
    arguments += [(torch.randn(3), one, two) for _ in range(8)]
    return Program(step, arguments, watch=[one, two])


@differential(hits=6)
def test_lists_become_one():
    def step(x, a, b):
        a.append(x.sum().item())
        return x * len(b)

    one, two, three = [1], [2, 2], [3]
    arguments = [(torch.randn(3), one, two) for _ in range(8)]
    arguments += [(torch.randn(3), three, three) for _ in range(4)]
    return Program(step, arguments, watch=[one, two, three])


@differential(hits=6, aborts=1)
def test_nothing_is_left_by_a_run_that_is_given_up():
    state = State(n=0, history=[], table={})

    def step(x):
        state.n += 1
        state.history.append(state.n)
        state.table["sum"] = x.sum().item()
        if x.sum() > 100:
            return x - 1
        state.history.append("small")
        return x + 1

    arguments = calls(3, count=20)
    arguments[8] = (torch.full((3,), 50.0),)
    arguments[14] = (torch.full((3,), 50.0),)
    return Program(step, arguments, watch=[state])


@differential(hits=5)
def test_error_after_a_write():
    state = State(n=0, history=[])

    def step(x, y):
        state.n += 1
        state.history.append(x.sum().item())
        return x @ y

    arguments = [(torch.randn(2, 3), torch.randn(3, 2)) for _ in range(12)]
    arguments[7] = (torch.randn(2, 3), torch.randn(4, 2))
    return Program(step, arguments, watch=[state])


@differential(hits=5)
def test_print_after_a_write():
    state = State(n=0)
    history = []

    def step(x):
        history.append(x.sum().item())
        print("history", history)
        history.append(None)
        state.n += 1
        print(f"step {state.n}: {history[-2]:.3f}")
        return x * 2

    arguments = [each for call in calls(3, count=14) for each in (history.clear, call)]
    return Program(step, arguments, watch=[state])
