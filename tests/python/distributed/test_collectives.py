"""Collectives are made by Python, each once and in the program's order. One that is dropped, doubled or moved would
give other numbers, or let the ranks wait for each other until the test's time is over."""

import pytest
import torch.distributed

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="no torch.distributed")

# What the reason names.
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
    "of_a_group": "ProcessGroup.allreduce",
    "averaged_gradients": "torch.distributed.all_reduce",
    "functional_all_reduce": "_c10d_functional::all_reduce",
    "operator_all_reduce": "_c10d_functional::all_reduce",
    "operator_that_writes_what_was_read": "_c10d_functional::all_reduce_",
    "operator_whose_result_is_not_used": "_c10d_functional::all_reduce",
    "equal_operators": "_c10d_functional::all_reduce",
    "operator_with_a_gradient": "_c10d_functional_autograd::all_to_all_single",
    "with_a_gradient": "torch.distributed.all_reduce",
    "in_a_backward": "torch.distributed.all_reduce",
    "in_a_hook": "torch.distributed.all_reduce",
    "waited_for_in_the_next_call": "Work.wait",
    "work_of_another_call": "Work.wait",
}
WITHOUT_REASON = ["in_a_backward_outside", "rank_and_size"]


def results(ranks, **arguments):
    """What each rank found, by the name of the function."""
    names = [*FUNCTIONS, *WITHOUT_REASON]
    found = ranks.run(
        "rank_collectives:compare_all",
        cases=[{"name": each} | arguments for each in names],
        patience=20,
    )
    return dict(zip(names, zip(*found, strict=True), strict=True))


@pytest.fixture(scope="module")
def converted(ranks):
    return results(ranks)


@pytest.fixture(scope="module")
def lazily(ranks):
    return results(ranks, lazy=True)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_converted(converted, name):
    for each in converted[name]:
        assert not isinstance(each, str), each
        assert any(
            code == "communication" and sentence.startswith(FUNCTIONS[name])
            for code, sentence in each["reasons"]
        ), each


@pytest.mark.parametrize("name", [*FUNCTIONS, *WITHOUT_REASON])
def test_lazily(lazily, name):
    for each in lazily[name]:
        assert not isinstance(each, str), each


def test_in_a_backward_that_is_due_outside(converted):
    for each in converted["in_a_backward_outside"]:
        assert [code for code, _ in each["reasons"]] == ["autograd"]


def test_rank_and_size_are_known(converted):
    for each in converted["rank_and_size"]:
        assert each["hits"] >= 4 and not each["reasons"]
