"""A residual network with DropBlock, which drops whole squares of feature maps while it trains.

The probability of keeping is an attribute of the layers. A schedule changes it in every step: a Python object that is
mutated, and a number that a graph must not take for constant. While everything is kept the layer does nothing.

python examples/terra/dropblock.py                      eagerly
torchjanus run examples/terra/dropblock.py              as speculative graphs
"""

import common
import numpy as np
import torch.nn.functional as F

import torch
from torch import nn


class DropBlock(nn.Module):
    def __init__(self, block):
        super().__init__()
        self.block = block
        self.keep = 1.0

    def forward(self, x):
        if not self.training or self.keep == 1.0:
            return x
        height, width = x.shape[2:]
        inside = (height - self.block + 1) * (width - self.block + 1)
        rate = (1 - self.keep) * height * width / (self.block**2 * inside)
        seeds = (torch.rand(x.shape[0], 1, height, width) < rate).float()
        dropped = F.max_pool2d(seeds, self.block, stride=1, padding=self.block // 2)
        kept = 1 - dropped
        return x * kept * (kept.numel() / kept.sum())


class Schedule:
    """Everything is kept at first; then the probability falls evenly to its last value."""

    def __init__(self, layers, last, first_step, last_step):
        self.layers = layers
        self.values = np.linspace(1.0, last, max(1, last_step - first_step))
        self.first_step = first_step
        self.step_count = 0

    def step(self):
        index = self.step_count - self.first_step
        if index >= 0:
            for layer in self.layers:
                layer.keep = float(self.values[min(index, len(self.values) - 1)])
        self.step_count += 1


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride, block):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.drop1 = DropBlock(block)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.drop2 = DropBlock(block)
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False)

    def forward(self, x):
        kept = self.shortcut(x)
        x = self.drop1(F.relu(self.norm1(self.conv1(x))))
        x = self.drop2(self.norm2(self.conv2(x)))
        return F.relu(x + kept)


class Network(nn.Module):
    def __init__(self, width, block, classes):
        super().__init__()
        self.enter = nn.Conv2d(3, width, 3, padding=1)
        self.blocks = nn.Sequential(
            Block(width, width, 1, block),
            Block(width, 2 * width, 2, block),
            Block(2 * width, 4 * width, 2, block),
        )
        self.classify = nn.Linear(4 * width, classes)

    def forward(self, x):
        return self.classify(self.blocks(F.relu(self.enter(x))).mean((2, 3)))


def train_step(model, optimizer, schedule, pictures, kinds):
    schedule.step()
    loss = F.cross_entropy(model(pictures), kinds)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def make_pictures(count, size, classes):
    """A bright spot on noise; the class says in which sector of the picture."""
    kinds = torch.randint(0, classes, (count,))
    angles = 2 * torch.pi * (kinds + 0.6 * torch.rand(count)) / classes
    rows = torch.linspace(-1, 1, size).view(1, size, 1)
    columns = torch.linspace(-1, 1, size).view(1, 1, size)
    away = (rows - 0.6 * angles.sin().view(-1, 1, 1)) ** 2
    away = away + (columns - 0.6 * angles.cos().view(-1, 1, 1)) ** 2
    return 0.5 * torch.randn(count, 3, size, size) + (-20 * away).exp().unsqueeze(1) * 3, kinds


def make_models(width, block, classes):
    return (Network(width, block, classes),)


def main(steps=120, seed=0, every=10, batch=16, width=16, size=32, block=5, classes=8):
    common.seed_all(seed)
    pictures, kinds = make_pictures(30 * batch, size, classes)
    (model,) = make_models(width, block, classes)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    layers = [module for module in model.modules() if isinstance(module, DropBlock)]
    schedule = Schedule(layers, 0.85, steps // 10, steps)
    for step in common.timed(steps):
        chosen = torch.randint(0, len(pictures), (batch,))
        loss = train_step(model, optimizer, schedule, pictures[chosen], kinds[chosen])
        if step % every == every - 1:
            print(f"step {step + 1}  loss {loss.item():.4f}  keeping {layers[0].keep:.3f}")


if __name__ == "__main__":
    common.call(main, __doc__)
