"""A teacher in JAX gives the targets that a student in torch learns: XLA and our kernels in one process."""

import sys

import jax
import jax.numpy as jnp
import numpy as np

import torch
from torch import nn

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 4


@jax.jit
def teacher(x):
    return jnp.sin(3 * x[:, :1]) + x[:, 1:2] * x[:, 2:3]


generator = np.random.default_rng(7)
torch.manual_seed(7)
inputs = generator.normal(size=(512, 4)).astype(np.float32)
student = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(student.parameters(), lr=0.05, momentum=0.9)

for epoch in range(EPOCHS):
    total = 0.0
    for start in range(0, 512, 32):
        batch = inputs[start : start + 32]
        targets = torch.tensor(np.asarray(teacher(batch)))
        loss = (student(torch.from_numpy(batch)) - targets).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(epoch, total / 16)
print("parameters", sum(p.detach().double().abs().sum().item() for p in student.parameters()))
