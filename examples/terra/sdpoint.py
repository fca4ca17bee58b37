"""A residual network with stochastic down-sampling: each step shrinks the maps at a random block by a random ratio.

Where and by how much is drawn in Python and kept in attributes of the network, so that the forward pass is another one
in most steps: dynamic control flow over a mutated object. Each place and ratio has its own running mean of the loss.

python examples/terra/sdpoint.py                      eagerly
torchjanus run examples/terra/sdpoint.py              as speculative graphs
"""

import random

import common
import torch.nn.functional as F

import torch
from torch import nn

RATIOS = (0.5, 0.75)


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.norm1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.shortcut = None
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False)
        self.ratio = None  # down-sampling after this block, if any

    def forward(self, x):
        activated = F.relu(self.norm1(x))
        kept = x if self.shortcut is None else self.shortcut(activated)
        x = self.conv2(F.relu(self.norm2(self.conv1(activated)))) + kept
        if self.ratio is not None:
            height, width = x.shape[2:]
            x = F.adaptive_avg_pool2d(x, (round(height * self.ratio), round(width * self.ratio)))
        return x


class Network(nn.Module):
    def __init__(self, width, blocks, classes):
        super().__init__()
        self.enter = nn.Conv2d(3, width, 3, padding=1, bias=False)
        layers, inputs = [], width
        for stage in range(3):
            outputs = width * 2**stage
            for number in range(blocks):
                layers.append(Block(inputs, outputs, 2 if stage and number == 0 else 1))
                inputs = outputs
        self.blocks = nn.ModuleList(layers)
        self.norm = nn.BatchNorm2d(inputs)
        self.classify = nn.Linear(inputs, classes)

    def set_point(self, point, ratio):
        for block in self.blocks:
            block.ratio = None
        if point < len(self.blocks):
            self.blocks[point].ratio = ratio

    def forward(self, x):
        x = self.enter(x)
        for block in self.blocks:
            x = block(x)
        return self.classify(F.relu(self.norm(x)).mean((2, 3)))


def train_step(model, optimizer, means, pictures, kinds):
    point = random.randint(0, len(model.blocks))  # the last: no down-sampling
    ratio = random.choice(RATIOS) if point < len(model.blocks) else 1.0
    model.set_point(point, ratio)
    loss = F.cross_entropy(model(pictures), kinds)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    value = loss.item()
    means[point, ratio] = 0.8 * means.get((point, ratio), value) + 0.2 * value
    return value


def make_pictures(count, size, classes):
    """Checks of so many squares as the class says, on noise."""
    kinds = torch.randint(0, classes, (count,))
    waves = (kinds + 1).view(-1, 1, 1) * torch.pi / size
    moved = torch.rand(count, 2, 1, 1) * size
    rows, columns = torch.arange(size).view(1, size, 1), torch.arange(size).view(1, 1, size)
    checks = ((rows + moved[:, 0]) * waves).sin() * ((columns + moved[:, 1]) * waves).sin()
    return checks.unsqueeze(1) + 0.3 * torch.randn(count, 3, size, size), kinds


def make_models(width, blocks, classes):
    return (Network(width, blocks, classes),)


def main(steps=150, seed=0, every=15, batch=16, width=12, blocks=2, size=32, classes=8):
    common.seed_all(seed)
    pictures, kinds = make_pictures(30 * batch, size, classes)
    (model,) = make_models(width, blocks, classes)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    means = {}
    for step in common.timed(steps):
        chosen = torch.randint(0, len(pictures), (batch,))
        loss = train_step(model, optimizer, means, pictures[chosen], kinds[chosen])
        if step % every == every - 1:
            worst = max(means, key=means.get)
            print(
                f"step {step + 1}  loss {loss:.4f}  instances {len(means)}"
                f"  worst mean {means[worst]:.4f}"
            )


if __name__ == "__main__":
    common.call(main, __doc__)
