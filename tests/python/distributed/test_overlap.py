"""The backward run is divided, so that the ranks share the first gradients while the last are computed."""

import pytest
import torch.distributed

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="no torch.distributed")

APART = ["collectives"]  # switched off: the step is several graphs
SMALL = 150  # bytes of gradients in a part, where that is forced
OPTIONS = {
    "plain": {},
    "static": {"static_graph": True},
    "views": {"gradient_as_bucket_view": True},
    "unused": {"find_unused_parameters": True},
    "small buckets": {"bucket_cap_mb": 1e-4},
}


def expect_training(found):
    for each in found:
        assert not any(each["apart"]), each


def expect_parts(found):
    for each in found:
        divided = [of["backward_parts"] for of in each["modules"] + each["asked"]]
        assert max(divided) > 1, each


def test_the_first_bucket_is_shared_before_the_last_part_begins(ranks):
    """Large gradients are divided without being asked: buckets of 1 MiB and of 25."""
    for each in ranks.run("rank_overlap:events", width=400):
        assert each["backward_parts"] == 2, each
        assert each["events"].index("bucket 0") < each["events"].index("part"), each
        assert each["events"][-1] != "part", each


def test_parts_end_with_the_buckets_of_the_wrapper(ranks):
    """A layer has 1.2 MiB of gradients, so a limit of 1 MiB makes it a bucket."""
    for each in ranks.run("rank_overlap:events", width=400, bucket_cap_mb=1):
        assert each["backward_parts"] == 3, each
        assert each["events"] == ["bucket 0", "part", "bucket 1", "part", "bucket 2"], each
    for each in ranks.run("rank_overlap:events", width=400, bucket_cap_mb=10):
        assert each["backward_parts"] == 1 and each["events"] == ["bucket 0"], each


def test_off_by_its_switch(ranks):
    for each in ranks.run("rank_overlap:events", width=400, switched_off=True):
        assert each["backward_parts"] == 1 and "part" not in each["events"], each


def test_small_gradients_are_not_divided(ranks):
    for each in ranks.run("rank_overlap:events", width=100):
        assert each["backward_parts"] == 1 and "part" not in each["events"], each


def test_one_process_alone_is_not_divided(ranks):
    (each,) = ranks.run("rank_overlap:events", ranks=1, width=400)
    assert each["backward_parts"] == 1 and "part" not in each["events"], each


@pytest.mark.parametrize("name", ["residual", "gpt", "lenet", "lstm", "gan", "accumulated"])
def test_trainings_in_parts(ranks, name):
    found = ranks.run("rank_programs:train", name=name, way="step", part_bytes=SMALL, without=APART)
    expect_training(found)
    expect_parts(found)


@pytest.mark.parametrize("name", ["leaves_alone", "sides", "trees"])
def test_branches_and_recursion_in_parts(ranks, name):
    """They may be one node of the backward graph."""
    expect_training(
        ranks.run("rank_programs:train", name=name, way="step", part_bytes=SMALL, without=APART)
    )


@pytest.mark.parametrize("options", OPTIONS)
def test_options_of_the_wrapper(ranks, options):
    found = ranks.run(
        "rank_programs:train",
        name="gpt",
        way="inside",
        part_bytes=SMALL,
        options=OPTIONS[options],
    )
    expect_training(found)
    expect_parts(found)


@pytest.mark.parametrize("name", ["twice", "second_order"])
@pytest.mark.parametrize("part_bytes", [0, SMALL])
def test_gradients_taken_otherwise(ranks, name, part_bytes):
    found = ranks.run("rank_programs:train", name=name, way="inside", part_bytes=part_bytes)
    expect_training(found)
    if part_bytes:
        expect_parts(found)


def test_four_ranks(ranks):
    found = ranks.run(
        "rank_programs:train", ranks=4, name="gpt", way="step", part_bytes=SMALL, without=APART
    )
    expect_training(found)
    expect_parts(found)


def test_reports_say_what_overlapped(ranks):
    found = ranks.run(
        "rank_programs:train", name="gpt", way="step", options={"bucket_cap_mb": 1e-4}
    )
    for each in found:
        (asked,) = each["asked"]
        told = asked["communication"]
        assert told["collectives"] == asked["exchanged_buckets"] > 1
        assert told["overlapped_milliseconds"] > 0 < told["exposed_milliseconds"]
        (line,) = [line for line in each["report"] if "communication:" in line]
        count = told["collectives"]
        assert line.startswith(f"  communication: {count} collectives in a run; "), line
        assert " computed meanwhile, " in line and " waited for (in runs that were timed)" in line


def test_timelines_have_collectives_beside_what_is_computed(ranks):
    for each in ranks.run("rank_overlap:traced"):
        begun = {event["id"]: event for event in each if event["ph"] == "b"}
        ended = {event["id"]: event for event in each if event["ph"] == "e"}
        assert begun.keys() == ended.keys() and len(begun) > 1
        assert {event["name"] for event in begun.values()} == {"all_reduce_bucket"}
        assert all(ended[number]["ts"] >= event["ts"] for number, event in begun.items())
        times = sorted((event["ts"], event["ph"]) for event in each)
        assert [phase for _, phase in times[:2]] == [
            "b",
            "b",
        ]  # the second begins before the first ends
