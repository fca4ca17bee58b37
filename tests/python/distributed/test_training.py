"""Data-parallel training in several graphs as eager does it, step by step, though the ranks begin to run graphs in
different steps: their parameters are equal to the last bit after each step."""

import pytest
import torch.distributed

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="no torch.distributed")

# What is converted: the step, the wrapped module, the module within.
PARALLEL = ["lenet", "residual", "gpt", "lstm", "trees", "gan", "accumulated"]
UNUSED = [
    "leaves_alone",
    "sides",
]  # parameters that some steps of some ranks, or of all, leave without a gradient
AROUND = "DistributedDataParallel communicates with other processes"
APART = ["collectives"]  # switched off: the all-reduce is not in a graph (test_exchange.py)


def expect_training(found):
    for each in found:
        assert not any(each["apart"]), each


def sentences(told):
    return [sentence for _, sentence in told["reasons"]]


@pytest.mark.parametrize("name", PARALLEL + UNUSED)
def test_step_with_a_parallel_module(ranks, name):
    """The step is cut at the call; the module within is a graph, and so is the update."""
    found = ranks.run("rank_programs:train", name=name, way="step", without=APART)
    expect_training(found)
    for each in found:
        (asked,) = each["asked"]
        assert asked["state"] == "cut" and AROUND in sentences(asked), asked
        assert all(module["state"] == "graph" for module in each["modules"]), each
        assert all(module["hits"] > 0 for module in each["modules"]), each


@pytest.mark.parametrize("name", ["residual", "trees"])
def test_parallel_module_that_is_converted(ranks, name):
    """Its own call stays imperative; the module within is a graph."""
    found = ranks.run("rank_programs:train", name=name, way="around", without=APART)
    expect_training(found)
    for each in found:
        (asked,) = each["asked"]
        assert asked["state"] == "imperative" and AROUND in sentences(asked), asked
        assert each["modules"][0]["state"] == "graph" and each["modules"][0]["hits"] > 0, each


@pytest.mark.parametrize("name", ["gpt", "trees", "gan", "accumulated", "sides"])
def test_converted_module_within(ranks, name):
    found = ranks.run("rank_programs:train", name=name, way="inside")
    expect_training(found)
    for each in found:
        for asked in each["asked"]:
            assert asked["state"] == "graph" and asked["hits"] >= 3, each
            assert "communication" not in [code for code, _ in asked["reasons"]], each


@pytest.mark.parametrize("name", ["residual", "gpt", "accumulated"])
def test_lazy_execution(ranks, name):
    expect_training(ranks.run("rank_programs:train", name=name, way="lazy"))


BY_HAND = ["by_hand", "by_hand_later", "by_hand_sharded", "gan_by_hand"]


@pytest.mark.parametrize("name", BY_HAND)
def test_collectives_of_the_program_are_in_the_graph(ranks, name):
    found = ranks.run("rank_programs:train", name=name, way="step")
    expect_training(found)
    for each in found:
        (asked,) = each["asked"]
        assert asked["state"] == "graph" and asked["hits"] > 3, asked
        assert "communication" not in [code for code, _ in asked["reasons"]], asked


@pytest.mark.parametrize("name", BY_HAND)
@pytest.mark.parametrize("converted", [[0], [1]])
def test_collectives_of_the_program_beside_an_eager_rank(ranks, name, converted):
    found = ranks.run("rank_exchange:mixed", name=name, converted=converted)
    expect_training(found)
    assert found[converted[0]]["asked"][0]["hits"] > 3, found


@pytest.mark.parametrize("name", ["by_hand", "gan_by_hand"])
def test_gradients_that_the_program_averages(ranks, name):
    found = ranks.run("rank_programs:train", name=name, way="step", without=APART)
    expect_training(found)
    for each in found:
        (asked,) = each["asked"]
        assert asked["state"] == "cut" and asked["hits"] > 0, asked
        assert "torch.distributed.all_reduce communicates with other processes" in sentences(asked)


def test_update_by_gradients_that_are_arguments(ranks):
    found = ranks.run("rank_programs:train", name="gradients_as_arguments", way="step")
    expect_training(found)
    for each in found:
        assert max(asked["hits"] for asked in each["asked"]) > 0, each


@pytest.mark.parametrize("name", ["residual", "by_hand", "by_hand_sharded"])
def test_four_ranks(ranks, name):
    expect_training(ranks.run("rank_programs:train", ranks=4, name=name, way="step"))
