"""Programs on processors without AVX2: one that this processor plays, and one that an emulator does. Kernels are made
for what is there, and results are eager's on that processor."""

import os
import shutil
import subprocess
import sys

import pytest

PROGRAM = """
import torch, torchjanus
import torch.nn.functional as F
from torchjanus import _core

_core.testing.let_times_decide(False)
torch.manual_seed(0)
x = torch.rand(100, 33, dtype=torch.float64) + 0.1
rows = torch.rand(64, 4096)
data = torch.randn(8, 16, dtype=torch.float64)


def to_the_bit(x):
    "What eager computes in steps that round one by one, or by the C library."
    narrow, half, short = x.float(), x.half(), x.bfloat16()
    return (
        torch.add(x, x, alpha=0.3) * 2,
        torch.addcmul(narrow, narrow, narrow, value=0.3) * 2,
        torch.add(half, half, alpha=0.3) * 2,
        torch.sub(short, short, alpha=0.3) * 2,
        (short * 2) ** -0.5,
        (rows * 1.5).sqrt().amax(-1),
        torch.log1p(x * 2),
        torch.expm1(narrow * 2),
        (narrow * 2).floor() % 3,
        (x > 0.5) & (x < 0.7),
    )


def nearly(x):
    return (
        torch.softmax(torch.tanh(x * 2).float() * 3, -1).double(),
        torch.erf(x * 2).sum(0),
        (x * 2).sqrt(),
        (rows * 1.5).sqrt().sum(-1),
    )


def training(convert):
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 4)).double()
    optimizer = torch.optim.AdamW(net.parameters(), 0.01)

    def step(x):
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), x[:, :4])
        loss.backward()
        optimizer.step()
        return loss

    step = convert(step)
    return step, [step(data).item() for _ in range(8)]


for function, tolerance in ((to_the_bit, 0), (nearly, 1e-6)):
    converted = torchjanus.function(function)
    for _ in range(6):
        ours = converted(x)
    for eager, each in zip(function(x), ours, strict=True):
        torch.testing.assert_close(each, eager, rtol=tolerance, atol=0)
    assert "fused" in converted.graph() and converted.stats()["hits"], converted.explain()
step, ours = training(torchjanus.function)
torch.testing.assert_close(ours, training(lambda f: f)[1], rtol=1e-12, atol=0)
assert step.stats()["hits"], step.explain()
print(torch.backends.cpu.get_cpu_capability())
"""
BASELINE = {
    "TORCHJANUS_INSTRUCTIONS": "baseline",
    "ATEN_CPU_CAPABILITY": "default",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
}


def run(folder, *emulator, **variables):
    path = folder / "program.py"
    path.write_text(PROGRAM)
    environment = {name: os.environ[name] for name in os.environ if name not in BASELINE}
    environment |= {"OMP_NUM_THREADS": "1", "TORCHJANUS_DISABLE": "background,kernel_cache"}
    done = subprocess.run(
        [*emulator, sys.executable, path],
        env={**environment, **variables},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def test_this_processor_without_its_wider_vectors(tmp_path):
    assert run(tmp_path, **BASELINE) == "DEFAULT"


@pytest.mark.skipif(not shutil.which("qemu-x86_64"), reason="no qemu-x86_64")
def test_a_processor_without_avx2(tmp_path):
    """An instruction that it lacks would end the program."""
    assert run(tmp_path, "qemu-x86_64", "-cpu", "Nehalem") == "DEFAULT"
