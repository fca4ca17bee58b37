"""Mixup and CutMix of timm's, with soft targets, in front of a small ConvNeXt."""

import sys

import timm
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.utils import random_seed
from torch.utils.data import DataLoader, TensorDataset

import torch

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 4

random_seed(3)
labels = torch.randint(0, 4, (480,))
images = 0.5 * torch.randn(480, 3, 32, 32)
for label in range(4):
    images[labels == label, :, :, label * 8 : label * 8 + 8] += 1.0
loader = DataLoader(TensorDataset(images, labels), batch_size=16, shuffle=True)

model = timm.create_model(
    "convnext_atto", num_classes=4, depths=(1, 1, 2, 1), dims=(12, 24, 32, 48), patch_size=2
)
mixup = Mixup(
    mixup_alpha=0.2, cutmix_alpha=1.0, prob=0.8, switch_prob=0.5, label_smoothing=0.1, num_classes=4
)
criterion = SoftTargetCrossEntropy()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)

for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for x, y in loader:
        x, target = mixup(x, y)
        loss = criterion(model(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    print(epoch, total / len(loader), right / len(images))
print("parameters", sum(p.detach().double().abs().sum().item() for p in model.parameters()))
