"""A plain loop with Lightning Fabric: a small convolutional network, gradients accumulated over two batches."""

import sys

import torch.nn.functional as F
from lightning.fabric import Fabric
from torch.utils.data import DataLoader, TensorDataset

import torch
from torch import nn

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 5

fabric = Fabric(accelerator="cpu", devices=1)
fabric.seed_everything(5)
fabric.launch()

images = torch.rand(1024, 1, 12, 12)
labels = (images[:, 0, :6].mean((1, 2)) > images[:, 0, 6:].mean((1, 2))).long()
model = nn.Sequential(
    nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.ReLU(), nn.Flatten(),
    nn.Linear(144, 2),
)  # fmt: skip
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
model, optimizer = fabric.setup(model, optimizer)
loader = fabric.setup_dataloaders(
    DataLoader(TensorDataset(images, labels), batch_size=16, shuffle=True)
)

for epoch in range(EPOCHS):
    right = 0
    for index, (x, y) in enumerate(loader):
        accumulating = index % 2 == 0
        with fabric.no_backward_sync(model, enabled=accumulating):
            logits = model(x)
            loss = F.cross_entropy(logits, y)
            fabric.backward(loss / 2)
        if not accumulating:
            fabric.clip_gradients(model, optimizer, max_norm=1.0)
            optimizer.step()
            optimizer.zero_grad()
        right += (logits.argmax(1) == y).sum()
    fabric.print(epoch, loss.item(), (right / len(images)).item())
print("parameters", sum(p.detach().double().abs().sum().item() for p in model.parameters()))
