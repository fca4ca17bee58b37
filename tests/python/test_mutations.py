"""A wrong change of any class of state is seen: each mutation is planted, and the harness must report it.

`make mutations` plants the same ones under the tests of the product (tools/mutations.py).
"""

import random

import pytest
import test_programs_one_sided_writes as one_sided
from differential import Program, compare, default_dtype, observe, seeded
from random_trees import random_children
from test_programs_one_sided_writes import Holder, calls

import torch
from torchjanus._core import testing


class Node:
    def __init__(self, size):
        self.word, self.children = random.randrange(10), random_children(size, Node)


def met():
    bias = torch.randn(3)

    def go(node):
        node.weight = node.word * 0.5
        state = bias * node.word
        for child in node.children:
            state = torch.tanh(state + go(child))
        return state

    roots = [(Node(random.randrange(2, 10)),) for _ in range(20)]
    return Program(lambda root: go(root).sum(), roots)


def gradient():
    weight = torch.randn(4, requires_grad=True)

    def step(x, n):
        weight.grad = None
        (x * weight).sum().backward()
        return x.tanh()

    return Program(step, calls(), watch=[weight])


def contents():
    state = torch.zeros(4)

    def step(x, n):
        state.data = x.mean(0)
        return x.tanh()

    return Program(step, calls(), watch=[state])


def hook():
    weight = torch.randn(4, requires_grad=True)
    seen = []

    def note(gradient):
        seen.append(float(gradient.sum()))
        return gradient * 0.5

    weight.register_hook(note)

    def step(x, n):
        weight.grad = None
        (x * weight).sum().backward()
        return x.tanh()

    return Program(step, calls(), watch=[weight, seen])


def hook_after_accumulation():
    weight = torch.randn(4, requires_grad=True)
    seen = []
    weight.register_post_accumulate_grad_hook(lambda leaf: seen.append(1))

    def step(x, n):
        weight.grad = None
        (x * weight).sum().backward()
        return x.tanh()

    return Program(step, calls(), watch=[weight, seen])


def shown_text():
    def step(x, n):
        print("step")
        return x.tanh()

    return Program(step, calls())


def order_of_keys():
    tables = [{} for _ in range(7)]

    def step(x, table):
        table["b"] = 1
        table["a"] = 2
        return x.tanh()

    return Program(step, [(torch.randn(3, 4), table) for table in tables])


def order_of_attributes():
    def step(x, holder):
        holder.b = 1
        holder.a = 2
        return x.tanh()

    return Program(step, [(torch.randn(3, 4), Holder()) for _ in range(7)])


MUTATIONS = [
    (one_sided.test_attribute.__wrapped__, "attribute", "not_written both_sides twice"),
    (one_sided.test_slot.__wrapped__, "slot", "not_written both_sides twice"),
    (one_sided.test_item.__wrapped__, "item", "not_written both_sides twice"),
    (one_sided.test_members_of_a_set.__wrapped__, "set", "not_written both_sides"),
    (one_sided.test_elements_of_a_list.__wrapped__, "list", "not_written twice"),
    (one_sided.test_elements_on_one_side.__wrapped__, "list", "both_sides"),
    (one_sided.test_variable.__wrapped__, "variable", "not_written both_sides twice"),
    (met, "met", "not_written"),
    (gradient, "grad", "not_written twice"),
    (contents, "data", "not_written"),
    (hook, "hook", "not_written twice"),
    (hook_after_accumulation, "hook", "not_written twice"),
    (one_sided.test_what_a_write_replaces_is_freed.__wrapped__, "finalizer", "not_written"),
    (shown_text, "effect", "not_written twice"),
    (order_of_keys, "key_order", "not_written"),
    (order_of_attributes, "key_order", "not_written"),
]
CASES = [
    pytest.param(build, state, mutation, id=f"{build.__name__.removeprefix('test_')}-{mutation}")
    for build, state, mutations in MUTATIONS
    for mutation in mutations.split()
]


def difference(build) -> str:
    """What the harness reports; empty: nothing."""
    expected = observe(seeded(build, {}), converted=False)
    actual = observe(seeded(build, {}), converted=True)
    assert actual.stats["hits"] > 0, actual.stats
    try:
        for index, (one, other) in enumerate(zip(expected.steps, actual.steps, strict=True)):
            compare(one, other, f"after call {index}", 1e-10)
    except AssertionError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("build, state, mutation", CASES)
def test_a_mutation_is_seen(build, state, mutation):
    with default_dtype(torch.float64):
        assert difference(build) == ""
        testing.plant(state, mutation)
        try:
            seen = difference(build)
            assert testing.planted_changes() > 0
            assert seen
        finally:
            testing.plant("none")
