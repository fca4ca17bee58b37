"""Collectives that the program calls: as nodes of the graph, or made by Python; each once and in the program's order.
One that is dropped, doubled or moved would give other numbers, or let the ranks wait for each other until the test's
time is over."""

import pytest
import torch.distributed

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="no torch.distributed")

# In the graph, if no gradient is due outside.
IN_GRAPHS = [
    "all_reduce",
    "all_reduce_later",
    "all_reduce_of_a_transposed_tensor",
    "all_reduce_of_an_argument",
    "all_reduce_of_flags",
    "all_reduce_of_flags_as_numbers",
    "all_reduce_of_small_integers",
    "all_reduce_of_integers",
    "least_and_greatest",
    "written_after_it_was_read",
    "received_after_it_was_read",
    "all_gather",
    "all_gather_into",
    "all_gather_into_an_argument",
    "all_gather_later",
    "broadcast",
    "averaged_model",
    "reduce_scatter",
    "reduce_scatter_into_an_argument",
    "reduce_scatter_of_a_list",
    "of_a_group",
    "within_contexts_that_do_nothing",
    "nothing_in_flight_with_others",
]
# What the reason names, if one is.
FUNCTIONS = {
    "all_reduce": "torch.distributed.all_reduce",
    "all_reduce_later": "torch.distributed.all_reduce",
    "all_reduce_in_a_branch": "torch.distributed.all_reduce",
    "all_reduce_in_a_loop": "torch.distributed.all_reduce",
    "written_after_it_was_read": "torch.distributed.all_reduce",
    "received_after_it_was_read": "torch.distributed.broadcast",
    "all_gather": "torch.distributed.all_gather",
    "all_gather_into": "torch.distributed.all_gather",
    "all_gather_of_objects": "torch.distributed.all_gather_object",
    "broadcast": "torch.distributed.broadcast",
    "reduce_scatter": "torch.distributed.reduce_scatter",
    "barrier": "torch.distributed.barrier",
    "send_and_receive": "torch.distributed.",
    "functional_all_reduce": "_c10d_functional::all_reduce",
    "operator_all_reduce": "_c10d_functional::all_reduce",
    "operator_that_writes_what_was_read": "_c10d_functional::all_reduce_",
    "operator_whose_result_is_not_used": "_c10d_functional::all_reduce",
    "equal_operators": "_c10d_functional::all_reduce",
    "operator_with_a_gradient": "_c10d_functional_autograd::all_to_all_single",
    "never_waited_for": "torch.distributed.all_reduce (its wait() is not in the graph)",
    "asked_whether_it_is_done": "Work.is_completed",
    "waited_for_with_a_time": "Work.wait with a time",
    "written_meanwhile": "torch.distributed.all_reduce (into a tensor that is written meanwhile)",
    "number_behind_it": "torch.distributed.all_reduce",
    "of_what_requires_a_gradient": "ProcessGroup.allreduce (a tensor that isn't dense",
    "of_bits": "ProcessGroup.allreduce (with another operation",
    "into_views_of_one_tensor": "ProcessGroup.allgather (into views of one tensor)",
    "waited_for_in_the_next_call": "Work.wait",
    "work_of_another_call": "Work.wait",
    "whose_error_is_caught": "torch.distributed.all_reduce (within a statement that sees its error)",
    "with_something_to_do_at_last": "torch.distributed.all_reduce (within a statement that sees its error)",
    "whose_wait_is_caught": "torch.distributed.all_reduce (within a statement that sees its error)",
    "within_a_context_of_the_program": "torch.distributed.all_reduce (within a statement that sees",
    "within_a_generator_that_ends_at_last": "torch.distributed.all_reduce (within a statement that sees",
    "class_of_a_work": "the class of a Work",
    "name_of_a_work": "the class of a Work",
    "all_gather_into_another_shape": "ProcessGroup.all_gather_single (of tensors that do not fit)",
    "all_gather_into_other_shapes": "ProcessGroup.allgather (of tensors that do not fit)",
}
# By other reasons than that they communicate.
OTHERWISE = {
    "operators_of_the_program": "rank_collectives::total.default (written in Python, so it may communicate)",
    "checkpointed": "a checkpoint of a function that changes, draws or sends something",
}
# The gradient ends in the graph.
WITH_BACKWARD = ["averaged_gradients", "with_a_gradient", "in_a_backward", "in_a_hook"]
WITHOUT_REASON = ["in_a_backward_outside", "rank_and_size"]


def results(ranks, names, **arguments):
    """What each rank found, by the name of the function."""
    found = ranks.run(
        "rank_collectives:compare_all",
        cases=[{"name": each} | arguments for each in names],
        patience=20,
    )
    return dict(zip(names, zip(*found, strict=True), strict=True))


EVERY = sorted({*FUNCTIONS, *OTHERWISE, *WITHOUT_REASON, *WITH_BACKWARD, *IN_GRAPHS})


@pytest.fixture(scope="module")
def converted(ranks):
    return results(ranks, EVERY)


@pytest.fixture(scope="module")
def without_gradients(ranks):
    return results(ranks, IN_GRAPHS, gradients=False)


@pytest.fixture(scope="module")
def lazily(ranks):
    return results(ranks, EVERY, lazy=True)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_made_by_python(converted, name):
    for each in converted[name]:
        assert not isinstance(each, str), each
        assert any(
            code == "communication" and sentence.startswith(FUNCTIONS[name])
            for code, sentence in each["reasons"]
        ), each


@pytest.mark.parametrize("name", OTHERWISE)
def test_left_to_python(converted, name):
    for each in converted[name]:
        assert not isinstance(each, str), each
        assert any(OTHERWISE[name] in sentence for _, sentence in each["reasons"]), each


def expect_graph(found):
    for each in found:
        assert not isinstance(each, str), each
        assert each["state"] == "graph" and each["hits"] >= 3 and not each["reasons"], each


@pytest.mark.parametrize("name", IN_GRAPHS)
def test_in_the_graph(without_gradients, name):
    expect_graph(without_gradients[name])


@pytest.mark.parametrize("name", WITH_BACKWARD)
def test_in_the_graph_with_its_backward(converted, name):
    expect_graph(converted[name])


@pytest.mark.parametrize("name", EVERY)
def test_lazily(lazily, name):
    for each in lazily[name]:
        assert not isinstance(each, str), each


def test_in_a_backward_that_is_due_outside(converted):
    for each in converted["in_a_backward_outside"]:
        assert [code for code, _ in each["reasons"]] == ["autograd"]


def test_rank_and_size_are_known(converted):
    for each in converted["rank_and_size"]:
        assert each["hits"] >= 4 and not each["reasons"]
