"""Numba compiles the augmentation while the training runs: two compilers of LLVM's in one process."""

import sys

import numba
import numpy as np

import torch
from torch import nn

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 4


@numba.njit
def shifted(images, shifts):
    result = np.zeros_like(images)
    for i in range(images.shape[0]):
        for row in range(images.shape[1]):
            for column in range(images.shape[2]):
                source = column - shifts[i]
                if 0 <= source < images.shape[2]:
                    result[i, row, column] = images[i, row, source]
    return result


generator = np.random.default_rng(5)
torch.manual_seed(5)
labels = generator.integers(0, 4, 256)
images = generator.normal(size=(256, 8, 8))
images[np.arange(256), labels] += 2.0

model = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.GELU(), nn.Linear(32, 4)).double()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for epoch in range(EPOCHS):
    total = 0.0
    for start in range(0, 256, 16):
        shifts = generator.integers(-2, 3, 16)
        x = torch.from_numpy(shifted(images[start : start + 16], shifts))
        y = torch.from_numpy(labels[start : start + 16])
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(epoch, total / 16)
print("parameters", sum(p.detach().abs().sum().item() for p in model.parameters()))
