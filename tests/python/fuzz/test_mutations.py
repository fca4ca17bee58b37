"""A wrong change of any class of state is seen: each mutation is planted, and the harness must report it.

`make mutations` plants the same ones under the tests of the product (tools/mutations.py).
"""

import runpy
from pathlib import Path

import pytest
from control import test_one_sided_writes as one_sided
from control.test_one_sided_writes import calls
from differential import Program, compare, default_dtype, observe, seeded
from recursion import test_runtime_stores as runtime_stores

import torch
from torchjanus._core import testing


def replaced_data():
    state = torch.zeros(4)

    def step(x, n):
        state.data = x.mean(0)
        return x.tanh()

    return Program(step, calls(), watch=[state])


def hook_after_accumulation():
    weight = torch.randn(4, requires_grad=True)
    seen = []
    weight.register_post_accumulate_grad_hook(lambda leaf: seen.append(1))

    def step(x, n):
        weight.grad = None
        (x * weight).sum().backward()
        return x.tanh()

    return Program(step, calls(), watch=[weight, seen])


MUTATIONS = [
    (one_sided.test_attribute, "attribute", "not_written both_sides twice"),
    (one_sided.test_slot, "slot", "not_written both_sides twice"),
    (one_sided.test_item, "item", "not_written both_sides twice"),
    (one_sided.test_members_of_a_set, "set", "not_written both_sides"),
    (one_sided.test_elements_of_a_list, "list", "not_written twice"),
    (one_sided.test_elements_on_one_side, "list", "both_sides"),
    (one_sided.test_variable, "variable", "not_written both_sides twice"),
    (runtime_stores.test_number_that_one_side_writes, "met", "not_written both_sides"),
    (runtime_stores.test_states_without_gradients, "met", "not_written twice"),
    (one_sided.test_gradient, "grad", "not_written both_sides"),
    (one_sided.test_gradient_of_one_side, "grad", "not_written both_sides twice"),
    (replaced_data, "data", "not_written twice"),
    (one_sided.test_contents_of_a_tensor, "contents", "not_written both_sides twice"),
    (one_sided.test_hook_of_a_gradient_of_one_side, "hook", "not_written both_sides twice"),
    (hook_after_accumulation, "hook", "not_written twice"),
    (one_sided.test_what_a_write_replaces_is_freed, "finalizer", "not_written"),
    (one_sided.test_shown_text, "effect", "not_written both_sides twice"),
    (one_sided.test_order_of_keys, "key_order", "not_written both_sides"),
    (one_sided.test_order_of_attributes, "key_order", "not_written both_sides"),
    (one_sided.test_attribute, "key_order", "twice"),
    (one_sided.test_item, "key_order", "twice"),
]
CASES = [
    pytest.param(
        getattr(build, "__wrapped__", build),
        state,
        mutation,
        id=f"{state}-{mutation}-{build.__name__.removeprefix('test_')}",
    )
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


def test_each_class_of_state_has_each_mutation():
    tool = runpy.run_path(str(Path(__file__).parents[3] / "tools" / "mutations.py"))
    planted = {(state, each) for _, state, mutations in MUTATIONS for each in mutations.split()}
    every = {(state, each) for state in tool["STATES"] for each in tool["MUTATIONS"]}
    assert planted == every - set(tool["WITHOUT_MEANING"])
