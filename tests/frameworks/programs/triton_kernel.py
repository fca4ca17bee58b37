"""Triton compiles a kernel for a GPU, which needs none, between the steps of a training: its LLVM beside ours."""

import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import torch
from torch import nn

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 4


@triton.jit
def scaled_sum(x, y, out, count, size: tl.constexpr):
    index = tl.program_id(0) * size + tl.arange(0, size)
    inside = index < count
    total = 2.0 * tl.load(x + index, mask=inside) + tl.exp(tl.load(y + index, mask=inside))
    tl.store(out + index, total, mask=inside)


def assembly(size):
    pointers = dict.fromkeys(("x", "y", "out"), "*fp32")
    source = ASTSource(
        fn=scaled_sum,
        signature={**pointers, "count": "i32", "size": "constexpr"},
        constexprs={"size": size},
    )
    return triton.compile(source, target=GPUTarget("cuda", 80, 32)).asm["ptx"]


torch.manual_seed(7)
inputs = torch.randn(512, 4)
targets = torch.sin(3 * inputs[:, :1]) + inputs[:, 1:2] * inputs[:, 2:3]
model = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

for epoch in range(EPOCHS):
    total = 0.0
    for start in range(0, 512, 32):
        loss = (model(inputs[start : start + 32]) - targets[start : start + 32]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    lines = assembly(128 << (epoch % 3)).splitlines()
    print(epoch, total / 16, sum("ex2" in line for line in lines), "exponentials")
