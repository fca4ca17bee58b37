"""Collectives that are made as often as in eager, and in its order, where that is easily missed."""

import pytest
import torch.distributed

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="no torch.distributed")

IN_GRAPHS = [
    "a_buffer_that_was_registered_later",
    "an_evaluation_without_backward",
    "sums_of_parameters",
    "parameters_that_are_centred",
    "a_wrapper_within_autocast",
    "a_wrapper_with_a_hook",
]
OF_WRAPPER = {  # why the wrapper is not called in a graph
    "a_function_between_buckets": "its backward() calls other collectives",
    "a_hook_between_buckets": "its backward() calls other collectives",
    "a_second_buffer_that_was_registered_later": "whose buffers are others than when it listed them",
    "a_hook_of_torch_that_is_registered_later": "with a communication hook",
    "a_backward_whose_error_is_caught": "its backward() stands within a statement that sees its error",
    "a_wrapper_with_a_hook_that_is_always_called": "within a statement that sees its error",
    "a_wrapper_whose_error_is_caught": "within a statement that sees its error",
}
REASONS = {each: f"DistributedDataParallel ({why})" for each, why in OF_WRAPPER.items()} | {
    "a_hook_beside_a_function": "backward() (in a hook, and in another one or a Function)",
    "hooks_of_two_leaves": "a leaf (what it does shows when it runs) has a hook",
    "within_a_checkpoint": "a checkpoint of a function that changes, draws or sends something",
    "a_group_that_compares_shapes": "ProcessGroup.allgather (of a group that compares shapes",
}
# Graphs without the step in question.
WITH_HITS = [
    "a_second_buffer_that_was_registered_later",
    "a_hook_of_torch_that_is_registered_later",
]


@pytest.fixture(scope="module")
def found(ranks):
    names = [*IN_GRAPHS, *REASONS]
    results = ranks.run("rank_order:compare_all", names=names, patience=20)
    return dict(zip(names, zip(*results, strict=True), strict=True))


@pytest.mark.parametrize("name", IN_GRAPHS)
def test_in_a_graph(found, name):
    for each in found[name]:
        assert not isinstance(each, str), each
        assert each["state"] == "graph" and each["hits"] >= 5, each
        assert not each["reasons"] and not any(each["apart"]), each


def test_a_group_that_is_kept_when_its_name_is_given_again(ranks):
    for each in ranks.run("rank_order:of_a_kept_group", patience=20):
        assert each["state"] == "graph" and each["hits"] >= 8, each
        assert each["calls of the new group"] == 0, each


@pytest.mark.parametrize("name", REASONS)
def test_left_to_python(found, name):
    for each in found[name]:
        assert not isinstance(each, str), each
        assert not any(each["apart"]), each
        sentences = [sentence for _, sentence in each["reasons"]]
        assert any(each.startswith(REASONS[name]) for each in sentences), sentences
        assert name not in WITH_HITS or each["hits"] > 2, each
