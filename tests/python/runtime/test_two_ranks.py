"""Two processes that train together keep equal parameters, to the last bit, though they begin to run their updates as
graphs at different steps."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch.distributed

pytestmark = [
    pytest.mark.skipif(not torch.distributed.is_available(), reason="no torch.distributed"),
    pytest.mark.skipif(
        os.environ.get("TORCHJANUS_INSTRUCTIONS") == "baseline",
        reason="takes the processor's roots, not eager's",
    ),
]

FOLDER = Path(__file__).parent
MOST_SECONDS = 240


@pytest.fixture(scope="module")
def trainings(tmp_path_factory):
    """What each rank printed."""
    store = tmp_path_factory.mktemp("ranks") / "store"
    environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo"}
    ranks = [
        subprocess.Popen(
            [sys.executable, "one_of_two_ranks.py", str(rank), str(store)],
            stdout=subprocess.PIPE,
            cwd=FOLDER,
            env=environment,
        )
        for rank in range(2)
    ]
    try:
        return [json.loads(each.communicate(timeout=MOST_SECONDS)[0]) for each in ranks]
    finally:
        for each in ranks:
            each.kill()
            each.wait()


@pytest.mark.parametrize(
    "training",
    [
        "SGD",
        "AdamW",
        "Adafactor",
        "SGD with norms",
        "SGD with norms, parallel",
        "AdamW with norms",
        "AdamW with norms, parallel",
        "SGD with norms of each",
    ],
)
def test_ranks_stay_equal(trainings, training):
    one, other = (each[training] for each in trainings)
    assert one["by_graph"] != other["by_graph"]
    assert sum(one["by_graph"]) >= 5 and sum(other["by_graph"]) >= 5
    assert one["different"] == other["different"] == 0
