"""A narrow ResNet of timm's: SGD, EMA of the weights, an evaluation of both after each epoch."""

import sys

import timm
import torch.nn.functional as F
from timm.utils import AverageMeter, ModelEmaV3, accuracy
from torch.utils.data import DataLoader, TensorDataset

import torch

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 4

torch.manual_seed(1)


def examples(count: int) -> TensorDataset:
    labels = torch.randint(0, 8, (count,))
    images = torch.randn(count, 3, 24, 24)
    for row, label in enumerate(labels.tolist()):
        images[row, :, label * 3 : label * 3 + 3] += 0.7
    return TensorDataset(images, labels)


model = timm.create_model("resnet10t", num_classes=8, stem_width=8, channels=(16, 24, 32, 48))
ema = ModelEmaV3(model, decay=0.98)
optimizer = torch.optim.SGD(
    model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-4
)
training = DataLoader(examples(512), batch_size=16, shuffle=True, drop_last=True)
validation = DataLoader(examples(128), batch_size=32)


def validate(network: torch.nn.Module) -> float:
    network.eval()
    meter = AverageMeter()
    with torch.inference_mode():
        for x, y in validation:
            (top,) = accuracy(network(x), y, topk=(1,))
            meter.update(top.item(), len(x))
    return meter.avg


for epoch in range(EPOCHS):
    model.train()
    losses = AverageMeter()
    for x, y in training:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        ema.update(model)
        losses.update(loss.item(), x.size(0))
    print(epoch, losses.avg, validate(model), validate(ema.module))
print("parameters", sum(p.detach().double().abs().sum().item() for p in model.parameters()))
