"""Inception-v3, own definition (with its auxiliary classifier), on made pictures.

python examples/inception_v3.py --small              eagerly, a few steps on small pictures
torchjanus run examples/inception_v3.py --small      as speculative graphs
"""

import argparse

import shapes
import torch.nn.functional as F

import torch
from torch import nn


class Conv(nn.Module):
    def __init__(self, inputs, outputs, size, stride=1, padding=0):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, size, stride, padding, bias=False)
        self.norm = nn.BatchNorm2d(outputs, eps=0.001)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))


def chain(inputs, *layers):
    """Convolutions one after the other, each given as (outputs, size, stride, padding)."""
    convolutions = []
    for outputs, size, stride, padding in layers:
        convolutions.append(Conv(inputs, outputs, size, stride, padding))
        inputs = outputs
    return nn.Sequential(*convolutions)


class Split(nn.Module):
    """The same input through several branches, whose outputs are concatenated."""

    def __init__(self, *branches):
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x):
        return torch.cat([branch(x) for branch in self.branches], 1)


def block_a(inputs, pooled):
    return Split(
        chain(inputs, (64, 1, 1, 0)),
        chain(inputs, (48, 1, 1, 0), (64, 5, 1, 2)),
        chain(inputs, (64, 1, 1, 0), (96, 3, 1, 1), (96, 3, 1, 1)),
        nn.Sequential(nn.AvgPool2d(3, stride=1, padding=1), Conv(inputs, pooled, 1)),
    )


def block_b(inputs):
    return Split(
        Conv(inputs, 384, 3, 2),
        chain(inputs, (64, 1, 1, 0), (96, 3, 1, 1), (96, 3, 2, 0)),
        nn.MaxPool2d(3, 2),
    )


def block_c(inputs, width):
    row, column = ((1, 7), 1, (0, 3)), ((7, 1), 1, (3, 0))
    return Split(
        Conv(inputs, 192, 1),
        chain(inputs, (width, 1, 1, 0), (width, *row), (192, *column)),
        chain(inputs, (width, 1, 1, 0), (width, *column), (width, *row), (width, *column), (192, *row)),
        nn.Sequential(nn.AvgPool2d(3, stride=1, padding=1), Conv(inputs, 192, 1)),
    )  # fmt: skip


def block_d(inputs):
    row, column = ((1, 7), 1, (0, 3)), ((7, 1), 1, (3, 0))
    return Split(
        chain(inputs, (192, 1, 1, 0), (320, 3, 2, 0)),
        chain(inputs, (192, 1, 1, 0), (192, *row), (192, *column), (192, 3, 2, 0)),
        nn.MaxPool2d(3, 2),
    )


def block_e(inputs):
    def both(width):
        return Split(Conv(width, 384, (1, 3), 1, (0, 1)), Conv(width, 384, (3, 1), 1, (1, 0)))

    return Split(
        Conv(inputs, 320, 1),
        nn.Sequential(Conv(inputs, 384, 1), both(384)),
        nn.Sequential(Conv(inputs, 448, 1), Conv(448, 384, 3, 1, 1), both(384)),
        nn.Sequential(nn.AvgPool2d(3, stride=1, padding=1), Conv(inputs, 192, 1)),
    )


class Inception(nn.Module):
    def __init__(self, classes=1000):
        super().__init__()
        self.stem = nn.Sequential(
            *chain(3, (32, 3, 2, 0), (32, 3, 1, 0), (64, 3, 1, 1)), nn.MaxPool2d(3, 2),
            *chain(64, (80, 1, 1, 0), (192, 3, 1, 0)), nn.MaxPool2d(3, 2),
        )  # fmt: skip
        self.first = nn.Sequential(
            block_a(192, 32), block_a(256, 64), block_a(288, 64), block_b(288)
        )
        self.middle = nn.Sequential(*[block_c(768, width) for width in (128, 160, 160, 192)])
        self.auxiliary = nn.Sequential(
            nn.AdaptiveAvgPool2d(5), Conv(768, 128, 1), Conv(128, 768, 5), nn.Flatten(),
            nn.Linear(768, classes),
        )  # fmt: skip
        self.last = nn.Sequential(block_d(768), block_e(1280), block_e(2048))
        self.dropout = nn.Dropout(0.5)
        self.classify = nn.Linear(2048, classes)

    def forward(self, x):
        x = self.middle(self.first(self.stem(x)))
        auxiliary = self.auxiliary(x) if self.training else None
        x = F.adaptive_avg_pool2d(self.last(x), 1).flatten(1)
        return self.classify(self.dropout(x)), auxiliary


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--size", type=int, default=299)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small", action="store_true", help="a few steps on 107×107 pictures")
    options = parser.parse_args()
    if options.small:
        options.steps, options.batch, options.size = min(options.steps, 10), 4, 107

    torch.manual_seed(options.seed)
    pictures, kinds = shapes.draw(20 * options.batch, options.size, channels=3, seed=options.seed)
    model = Inception()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for step in range(options.steps):
        start = step * options.batch % len(pictures)
        x, y = pictures[start : start + options.batch], kinds[start : start + options.batch]
        scores, auxiliary = model(x)
        loss = F.cross_entropy(scores, y) + 0.4 * F.cross_entropy(auxiliary, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 4:
            print(f"step {step + 1}  loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
