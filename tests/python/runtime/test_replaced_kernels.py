"""Kernels in Python for torch's own operators: graphs don't call them, so Python runs while there are any."""

from pathlib import Path

from apart import in_a_process

PROGRAM = """
import warnings
import torch, torchjanus
from torchjanus import _core
warnings.simplefilter("ignore")
torchjanus.options.disabled = {"background", "budget"}

@torchjanus.function
def step(x):
    return torch.sin(x) * 2 + x

def check(factor):
    x = torch.ones(3)
    assert torch.equal(step(x), x * factor * 2 + x), factor

sin = torch.sin(torch.ones(3))
for _ in range(6):
    assert torch.equal(step(torch.ones(3)), sin * 2 + 1)
before = torchjanus.stats(step)
assert before["hits"] > 0

library = torch.library.Library("aten", "IMPL")
library.impl("sin", lambda x: x * 5, "CPU")
for _ in range(4):
    check(5)
told = torchjanus.stats(step)
assert told["hits"] == before["hits"], told
assert [each["sentence"] for each in told["reasons"]][-1:] == ["a kernel in Python for aten/sin is active"], told

noted = _core.lazy_counts()["noted"]
with torchjanus.lazy():
    for _ in range(8):
        y = torch.sin(torch.ones(3)) * 2 + 1
        assert y.tolist() == [11.0] * 3
assert _core.lazy_counts()["noted"] == noted

library._destroy()
for _ in range(4):
    assert torch.equal(step(torch.ones(3)), sin * 2 + 1)
assert torchjanus.stats(step)["hits"] == before["hits"] + 4

own = torch.library.Library("own", "DEF")
own.define("twice(Tensor x) -> Tensor")
own.impl("twice", lambda x: x * 2, "CPU")
assert torch.equal(step(torch.ones(3)), sin * 2 + 1)
own._destroy()  # as many as before, but others
library = torch.library.Library("aten", "IMPL")
library.impl("sin", lambda x: x * 5, "CPU")
check(5)
print("done")
"""

OTHERS = """
import torch, torchjanus
torchjanus.options.disabled = {"background", "budget"}
elsewhere = torch.library.Library("aten", "IMPL")
elsewhere.impl("sin", lambda x: x * 5, "Meta", allow_override=True)
own = torch.library.Library("own", "DEF")
own.define("twice(Tensor x) -> Tensor")
own.impl("twice", lambda x: x * 2, "CPU")

@torchjanus.function
def step(x):
    return torch.sin(x) * 2 + x

for _ in range(6):
    step(torch.ones(3))
assert torchjanus.stats(step)["hits"] > 0
import torch._dynamo, torch._inductor
step(torch.ones(3))
hits = torchjanus.stats(step)["hits"]
step(torch.ones(3))
assert torchjanus.stats(step)["hits"] == hits + 1, torchjanus.stats(step)
print("done")
"""

WITHIN = """
import warnings
import torch, torchjanus
from torchjanus import _core
warnings.simplefilter("ignore")
torchjanus.options.disabled = {"background", "budget"}
_core.testing.let_times_decide(False)

def step(x):
    before = torch.sin(x) * 2 + 1
    library = torch.library.Library("aten", "IMPL")
    library.impl("sin", lambda x: x * 5, "CPU", allow_override=True)
    within = torch.sin(x + 1) * 2 + 1
    library._destroy()
    after = torch.sin(x) * 2 + 1
    for _ in range(8):
        after = after * 0.5 + before
    return before.sum().item(), within.sum().item(), after.sum().item()

def steps(x):
    yield step(x)

@torchjanus.function
def converted(x):
    return [*steps(x)]

x = torch.ones(3)
expected = step(x)
with torchjanus.lazy():
    for _ in range(20):
        assert step(x) == expected
counts = _core.lazy_counts()
assert counts["noted"] > 0 and counts["run_in_graphs"] > 0, counts
for _ in range(20):
    assert converted(x) == [expected]
print("done")
"""


def test_a_kernel_that_comes_and_goes(tmp_path: Path) -> None:
    assert in_a_process(PROGRAM, tmp_path) == "done\n"


def test_a_kernel_within_lazy_execution(tmp_path: Path) -> None:
    """Operators called before it is registered don't call it, and those behind it do."""
    assert in_a_process(WITHIN, tmp_path) == "done\n"


def test_kernels_for_other_devices_and_libraries(tmp_path: Path) -> None:
    assert in_a_process(OTHERS, tmp_path) == "done\n"
