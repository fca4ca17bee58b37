"""ResNet-50 with few channels on small made pictures, trained by SGD with a learning rate that warms up.

Its accuracies are computed by NumPy between loss and backward pass, a third-party call on materialised scores. A
Python object keeps their running means and the learning rate's schedule, and changes in every step.

python examples/terra/resnet50.py                      eagerly
torchjanus run examples/terra/resnet50.py              as speculative graphs
"""

import common
import numpy as np
import torch.nn.functional as F

import torch
from torch import nn


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.norm3 = nn.BatchNorm2d(outputs)
        nn.init.zeros_(self.norm3.weight)  # at first a block passes on what it gets
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        kept = self.shortcut(x)
        x = F.relu(self.norm1(self.conv1(x)))
        x = F.relu(self.norm2(self.conv2(x)))
        return F.relu(self.norm3(self.conv3(x)) + kept)


class ResNet(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.conv = nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False)
        self.norm = nn.BatchNorm2d(width)
        blocks, inputs = [], width
        for stage, count in enumerate((3, 4, 6, 3)):
            for number in range(count):
                stride = 2 if number == 0 and stage > 0 else 1
                blocks.append(Bottleneck(inputs, width * 2**stage, stride))
                inputs = 4 * width * 2**stage
        self.blocks = nn.Sequential(*blocks)
        self.classify = nn.Linear(inputs, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 3, stride=2, padding=1)
        return self.classify(self.blocks(x).mean((2, 3)))


class Progress:
    """Running means of accuracies, and the learning rate: up to its value, then down by a cosine."""

    def __init__(self, rate, warm_up, steps):
        self.rate, self.warm_up, self.steps = rate, warm_up, steps
        self.step = 0
        self.means = {1: 0.0, 5: 0.0}

    def learning_rate(self):
        if self.step < self.warm_up:
            return self.rate * (self.step + 1) / self.warm_up
        done = (self.step - self.warm_up) / max(1, self.steps - self.warm_up)
        return 0.5 * self.rate * (1 + float(np.cos(np.pi * done)))

    def update(self, scores, kinds):
        best = np.argsort(-scores, axis=1, kind="stable")
        for count in self.means:
            share = (best[:, :count] == kinds[:, None]).any(axis=1).mean()
            self.means[count] += 0.1 * (float(share) - self.means[count])
        self.step += 1


def train_step(model, optimizer, progress, pictures, kinds):
    for group in optimizer.param_groups:
        group["lr"] = progress.learning_rate()
    scores = model(pictures)
    loss = F.cross_entropy(scores, kinds, label_smoothing=0.1)
    progress.update(scores.detach().numpy(), kinds.numpy())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def make_pictures(count, size, classes):
    """Stripes whose direction and colour tell the class, with noise."""
    kinds = torch.randint(0, classes, (count,))
    angles = kinds * (torch.pi / classes)
    rows, columns = torch.arange(size).view(1, size, 1), torch.arange(size).view(1, 1, size)
    turned = rows * angles.sin().view(-1, 1, 1) + columns * angles.cos().view(-1, 1, 1)
    colours = torch.rand(classes, 3)[kinds].view(count, 3, 1, 1)
    stripes = (turned * 0.8).sin().unsqueeze(1) * colours
    return stripes + 0.2 * torch.randn(count, 3, size, size), kinds


def make_models(width, classes):
    return (ResNet(width, classes),)


def main(steps=80, seed=0, every=10, batch=16, width=16, size=64, classes=10):
    common.seed_all(seed)
    pictures, kinds = make_pictures(20 * batch, size, classes)
    (model,) = make_models(width, classes)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    progress = Progress(0.01, 10, steps)
    for step in common.timed(steps):
        chosen = torch.randint(0, len(pictures), (batch,))
        loss = train_step(model, optimizer, progress, pictures[chosen], kinds[chosen])
        if step % every == every - 1:
            top1, top5 = progress.means.values()
            print(f"step {step + 1}  loss {loss.item():.4f}  top 1 {top1:.3f}  top 5 {top5:.3f}")


if __name__ == "__main__":
    common.call(main, __doc__)
