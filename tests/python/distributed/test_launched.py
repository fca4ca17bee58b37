"""Programs that torchrun starts: `torchrun --nproc-per-node=2 -m torchjanus run train.py`."""

import json
import textwrap

import pytest
import torch.distributed
from launched import launched

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="no torch.distributed")

PROGRAM = """
    import sys, time
    import torch, torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(6, 9), nn.Linear(9, 3)

        def forward(self, x):
            return self.two(torch.tanh(self.one(x)))

    torch.set_default_dtype(torch.float64)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    net = DistributedDataParallel(Net())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    torch.manual_seed(1 + dist.get_rank())
    for step in range(12):
        x, y = torch.randn(5, 6), torch.randn(5, 3)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
    flat = nn.utils.parameters_to_vector(net.parameters()).detach()
    both = [torch.empty_like(flat) for _ in range(2)]
    dist.all_gather(both, flat)
    same = torch.equal(both[0].view(torch.int64), both[1].view(torch.int64))
    # At once: the other rank prints as well.
    sys.stdout.write(f"rank {dist.get_rank()} {same} {flat.sum():.10f}\\n")
    sys.stdout.flush()
    dist.destroy_process_group()
    time.sleep(0.2)  # a thread of gloo's that gives back tensors while Python ends aborts the process, also in eager
"""


def test_each_rank_trains_and_reports(tmp_path):
    (tmp_path / "train.py").write_text(textwrap.dedent(PROGRAM))
    expected, _ = launched(tmp_path, "train.py")
    found, said = launched(
        tmp_path,
        *("-m", "torchjanus", "run", "--explain", "--stats", "counters.json", "train.py"),
    )
    assert found == expected and all("True" in each for each in found)
    files = sorted(each.name for each in tmp_path.glob("*.json"))
    assert files == ["counters.rank0.json", "counters.rank1.json"]
    for rank, file in enumerate(files):
        assert f"torchjanus: rank {rank} of 2\n" in said
        functions = json.loads((tmp_path / file).read_text())["functions"]
        assert [each["exchanged_buckets"] for each in functions if each["hits"] > 0] == [1], (
            functions
        )
        assert "shared within the graph: 1 bucket" in said
