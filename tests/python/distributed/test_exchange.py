"""The all-reduce of gradients within the graph: the whole step is one, and goes together with ranks that run it
eagerly, by the same collectives."""

import pytest
import torch.distributed

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="no torch.distributed")

WHOLE = ["lenet", "residual", "pooled", "gpt", "lstm", "trees"]
SEVERAL = ["gan", "gan_frozen", "chained"]  # wrappers
ACCUMULATED = ["accumulated_whole"]
SMALL = {"bucket_cap_mb": 1e-4}


def expect_equal(found):
    for each in found:
        assert not any(each["apart"]), each


def expect_graph(told, buckets=1):
    assert told["state"] == "graph" and told["hits"] > 0, told
    assert told["exchanged_buckets"] >= buckets, told


@pytest.mark.parametrize("name", WHOLE + SEVERAL + ACCUMULATED)
@pytest.mark.parametrize("options", [{}, SMALL], ids=["one bucket", "several"])
def test_step_is_one_graph(ranks, name, options):
    """The ranks begin to run it at different steps, and trees of new kinds make them leave it."""
    found = ranks.run("rank_programs:train", name=name, way="step", options=options)
    expect_equal(found)
    for each in found:
        (asked,) = each["asked"]
        expect_graph(asked, 2 if options else 1)
        assert "communication" not in [code for code, _ in asked["reasons"]], asked


@pytest.mark.parametrize(
    ("name", "last_gradient"),
    [
        ("pooled", "convolution_backward"),
        ("lenet", "convolution_backward"),
        ("gpt", "embedding_dense_backward"),
    ],
)
def test_the_first_bucket_is_sent_before_later_gradients_are_computed(ranks, name, last_gradient):
    found = ranks.run("rank_programs:train", name=name, way="step", options=SMALL)
    expect_equal(found)
    for each in found:
        (graph,) = each["graphs"]
        sent = [i for i, line in enumerate(graph) if " = all_reduce_bucket " in line]
        computed = [i for i, line in enumerate(graph) if last_gradient in line]
        waited = [i for i, line in enumerate(graph) if " = collective_wait " in line]
        assert len(sent) > 1 and sent[0] < computed[-1] < sent[-1] < waited[0], graph


@pytest.mark.parametrize("name", ["lenet", "residual", "gpt", "lstm", "gan", "accumulated_whole"])
def test_four_ranks(ranks, name):
    options = {"bucket_cap_mb": 3e-4}
    found = ranks.run("rank_programs:train", ranks=4, name=name, way="step", options=options)
    expect_equal(found)
    for each in found:
        expect_graph(each["asked"][0], 2)


@pytest.mark.parametrize("name", ["residual", "gpt", *SEVERAL, *ACCUMULATED])
@pytest.mark.parametrize("converted", [[0], [1]])
def test_one_rank_stays_eager(ranks, name, converted):
    found = ranks.run("rank_exchange:mixed", name=name, converted=converted, options=SMALL)
    expect_equal(found)
    expect_graph(found[converted[0]]["asked"][0], 2)


@pytest.mark.parametrize(
    "way", ["plain", "misses", "eager_between", "evaluates", "keeps_gradients", "failing"]
)
@pytest.mark.parametrize("adam", [False, True])
def test_ranks_in_different_states(ranks, way, adam):
    found = ranks.run("rank_exchange:between", way=way, adam=adam)
    expect_equal(found)
    for each in found:
        expect_graph(each["told"], 2)


def test_three_ranks(ranks):
    """A third is no number of the machine's: the division is the reducer's, too."""
    expect_equal(ranks.run("rank_exchange:between", ranks=3, way="eager_between"))


def test_same_collectives_as_eager(ranks):
    for each in ranks.run("rank_exchange:on_the_wire"):
        expect_graph(each["told"], 2)
        assert each["converted"][2:] == each["eager"][2:], each
        assert all(len(step) >= 4 for step in each["converted"][2:]), each


@pytest.mark.parametrize("name", SEVERAL + ACCUMULATED)
def test_same_collectives_as_eager_of_several(ranks, name):
    for each in ranks.run("rank_exchange:on_the_wire_of", name=name):
        assert each["step"][2:] == each["eager"][2:], each
        assert sum(len(step) for step in each["step"][2:]) > 20, each
        expect_graph(each["asked"][0], 2)


def test_off_by_its_switch(ranks):
    found = ranks.run("rank_programs:train", name="lenet", way="step", without=["collectives"])
    expect_equal(found)
    for each in found:
        assert each["asked"][0]["state"] == "cut" and not each["asked"][0]["exchanged_buckets"]


def test_what_an_eager_step_left_undone_is_no_graphs_affair(ranks):
    for each in ranks.run("rank_exchange:unfinished"):
        for one, other in zip(each["eager"], each["converted"], strict=True):
            assert other == (one if isinstance(one, str) else pytest.approx(one, rel=1e-9)), each
        assert any(isinstance(outcome, str) for outcome in each["eager"]), each
        assert each["told"]["hits"] > 0, each
