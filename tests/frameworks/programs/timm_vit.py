"""A small ViT of timm's: AdamW from timm's factory, label smoothing, a cosine schedule with warm-up."""

import sys

import timm
from timm.loss import LabelSmoothingCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from torch.utils.data import DataLoader, TensorDataset

import torch

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 5

torch.manual_seed(0)
labels = torch.randint(0, 6, (640,))
images = 0.3 * torch.randn(640, 3, 32, 32)
for label in range(6):
    images[labels == label, label % 3, label * 4 : label * 4 + 8] += 0.5
loader = DataLoader(TensorDataset(images, labels), batch_size=16, shuffle=True)

model = timm.create_model(
    "vit_tiny_patch16_224",
    img_size=32,
    patch_size=8,
    embed_dim=48,
    depth=4,
    num_heads=4,
    num_classes=6,
    drop_path_rate=0.1,
)
optimizer = create_optimizer_v2(model, opt="adamw", lr=2e-3, weight_decay=0.05)
schedule = CosineLRScheduler(
    optimizer, t_initial=EPOCHS * len(loader), warmup_t=20, warmup_lr_init=1e-5, t_in_epochs=False
)
criterion = LabelSmoothingCrossEntropy(0.1)

updates = 0
for epoch in range(EPOCHS):
    model.train()
    total, right = 0.0, 0
    for x, y in loader:
        logits = model(x)
        loss = criterion(logits, y)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        updates += 1
        schedule.step_update(updates)
        total += loss.item() * len(x)
        right += (logits.argmax(1) == y).sum().item()
    print(epoch, total / len(images), right / len(images), optimizer.param_groups[0]["lr"])
print("parameters", sum(p.detach().double().abs().sum().item() for p in model.parameters()))
