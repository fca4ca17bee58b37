"""Recursion that changes something outside: what its activations change goes in and comes out."""

import torch.nn.functional as F
from differential import Program, differential
from tree_programs import Branch, Leaf, with_vectors

import torch
from torch import nn


class Kept:
    """What a program keeps from call to call."""


CALLS = 0


def counting(change, after=lambda: None, **values):
    """A recursion each activation of which calls `change`; and the object that it changes."""
    kept = Kept()
    for name, value in values.items():
        setattr(kept, name, value)

    def go(node, x):
        change(kept, x)
        if isinstance(node, Leaf):
            return x * node.word
        return go(node.left, x + 1) + go(node.right, x)

    return go, kept


def program(change, **values):
    go, kept = counting(change, **values)
    return Program(lambda root, x: go(root, x), with_vectors(), watch=[kept])


@differential(graphs=1, hits=14)
def test_counter_in_an_attribute():
    def change(kept, x):
        kept.calls += 1

    return program(change, calls=0)


@differential(graphs=1, hits=14)
def test_float_and_flag_in_attributes():
    def change(kept, x):
        kept.rate = kept.rate * 0.9 + 0.1
        kept.any = True

    return program(change, rate=0.5, any=False)


@differential(graphs=1, hits=14)
def test_tensor_in_an_attribute():
    def change(kept, x):
        kept.total = kept.total + x.detach()

    return program(change, total=torch.zeros(3))


@differential(graphs=1, hits=14)
def test_counter_in_a_dict_and_a_list():
    counts, rates = {"calls": 0, "other": 3}, [0, 1.0]

    def go(node, x):
        counts["calls"] += 2
        rates[0] += 1
        rates[1] = rates[1] * 0.9
        if isinstance(node, Leaf):
            return x * node.word
        return go(node.left, x) + go(node.right, x + 1)

    return Program(lambda root, x: go(root, x) * rates[1], with_vectors(), watch=[counts, rates])


@differential(graphs=1, hits=14)
def test_counter_of_the_module():
    global CALLS
    CALLS = 0

    def go(node, x):
        global CALLS
        CALLS += 1
        if isinstance(node, Leaf):
            return x * node.word
        return go(node.left, x) + go(node.right, x)

    return Program(lambda root, x: go(root, x) * CALLS, with_vectors())


@differential(graphs=1, hits=14)
def test_nonlocal_of_the_step():
    def step(root, x):
        nodes, largest = 0, -1.0

        def go(node):
            nonlocal nodes, largest
            nodes += 1
            if isinstance(node, Leaf):
                largest = max(largest, node.word * 1.5)
                return x * node.word
            return go(node.left) + go(node.right)

        y = go(root)
        return y / nodes, largest

    return Program(step, with_vectors())


@differential(graphs=1, hits=14)
def test_node_and_number_found_by_the_recursion():
    def step(root, x):
        best, value = None, -1.0

        def go(node):
            nonlocal best, value
            if isinstance(node, Leaf):
                if node.word > value:
                    best = node
                    value = float(node.word)
                return
            go(node.left)
            go(node.right)

        go(root)
        return x * value, best

    return Program(step, with_vectors())


@differential(graphs=1, hits=14)
def test_containers_of_the_step():
    def step(root, x):
        counts = {"calls": 0, "leaf": False}
        largest = [0, x]
        seen = Kept()
        seen.total = torch.zeros(3)

        def go(node, x):
            counts["calls"] += 1
            largest[1] = torch.maximum(largest[1], x * counts["calls"])
            if isinstance(node, Leaf):
                counts["leaf"] = True
                seen.total = seen.total + x
                return x * node.word
            return go(node.left, x + 1) + go(node.right, x)

        return go(root, x), counts, largest, seen.total

    return Program(step, with_vectors())


@differential(graphs=1, hits=14)
def test_tensor_of_the_step_written_in_place():
    def step(root, x):
        total = torch.zeros(3)

        def go(node, x):
            total.add_(x)
            if isinstance(node, Leaf):
                total[0] = node.word
                return x * total
            return go(node.left, x + 1) + go(node.right, x)

        return go(root, x), total

    return Program(step, with_vectors())


@differential(graphs=1, hits=14)
def test_list_of_before_the_call_grows():
    def change(kept, x):
        kept.log.append(x.sum() * 2)

    return program(change, log=[])


@differential(hits=8)
def test_list_of_before_the_call_grows_on_both_sides_of_a_branch():
    go, kept = counting(lambda kept, x: kept.log.append(x.sum() * 2), log=[])

    def step(root, x):
        if x.sum() > 0:
            return go(root, x)
        return go(root, x * 2)

    return Program(step, with_vectors(), watch=[kept])


@differential(graphs=1, hits=14)
def test_mutual_recursion_that_counts():
    kept = Kept()
    kept.even = kept.odd = 0

    def even(node, x):
        kept.even += 1
        if isinstance(node, Leaf):
            return x
        return odd(node.left, x) + odd(node.right, x)

    def odd(node, x):
        kept.odd += kept.even
        if isinstance(node, Leaf):
            return -x
        return even(node.left, x * 2) * even(node.right, x)

    return Program(lambda root, x: even(root, x), with_vectors(), watch=[kept])


@differential(hits=8)
def test_two_calls_and_a_loop():
    go, kept = counting(lambda kept, x: setattr(kept, "calls", kept.calls + 1), calls=0)

    def step(root, x, iterations):
        y = go(root, x)
        for _ in range(iterations):
            y = y + go(root.left if isinstance(root, Branch) else root, y.tanh())
        return y, kept.calls

    calls = [(root, x, 2 + i % 4) for i, (root, x) in enumerate(with_vectors())]
    return Program(step, calls, watch=[kept])


@differential(graphs=1, hits=14)
def test_training_with_running_state():
    layer = nn.Linear(3, 3)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    kept = Kept()
    kept.steps, kept.mean = 0, torch.zeros(3)

    def go(node, x):
        kept.steps += 1
        if isinstance(node, Leaf):
            state = layer(x * node.word)
        else:
            state = torch.tanh(go(node.left, x) + go(node.right, x))
        kept.mean = kept.mean * 0.9 + state.detach() * 0.1
        return state

    def step(root, x):
        loss = F.mse_loss(go(root, x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return Program(step, with_vectors(), watch=[kept, layer, optimizer])


# --- what fails ---------------------------------------------------------------------------------


@differential(hits=6)
def test_counter_is_changed_outside_and_becomes_another_kind():
    go, kept = counting(lambda kept, x: setattr(kept, "calls", kept.calls + 1), calls=0)

    def becomes(value):
        return lambda: setattr(kept, "calls", value)

    calls = with_vectors(24)
    changed = [*calls[:7], becomes(100), *calls[7:9], becomes(0.5), *calls[9:14], becomes(True)]
    return Program(lambda root, x: go(root, x), [*changed, *calls[14:]], watch=[kept])


@differential(hits=3)
def test_attribute_that_becomes_a_tensor():
    def change(kept, x):
        kept.last = x * 2

    return program(change, last=None)


@differential(hits=3)
def test_number_too_large_for_the_graph():
    def change(kept, x):
        kept.calls += 2**60

    return program(change, calls=0)


@differential(hits=3)
def test_attribute_that_an_activation_makes():
    kept = Kept()

    def go(node, x):
        kept.made = 1
        if isinstance(node, Leaf):
            return x * node.word
        return go(node.left, x) + go(node.right, x)

    def step(root, x):
        y = go(root, x)
        del kept.made
        return y

    return Program(step, with_vectors(), watch=[kept])


@differential(hits=6)
def test_activation_raises():
    kept = Kept()
    kept.calls = 0

    def go(node, x):
        kept.calls += 1
        if isinstance(node, Leaf):
            return x * node.word
        if kept.calls > 5000:
            raise ValueError(f"after {kept.calls}")
        return go(node.left, x) + go(node.right, x)

    def becomes(value):
        return lambda: setattr(kept, "calls", value)

    calls = with_vectors()
    changed = [*calls[:12], becomes(5000), *calls[12:15], becomes(0), *calls[15:]]
    return Program(lambda root, x: go(root, x), changed, watch=[kept])
