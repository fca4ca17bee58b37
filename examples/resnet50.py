"""ResNet-50, own definition, on made pictures.

python examples/resnet50.py --small              eagerly, a few steps on small pictures
torchjanus run examples/resnet50.py --small      as speculative graphs
"""

import argparse

import shapes
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
        self.shortcut = None
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        kept = x if self.shortcut is None else self.shortcut(x)
        x = F.relu(self.norm1(self.conv1(x)))
        x = F.relu(self.norm2(self.conv2(x)))
        return F.relu(self.norm3(self.conv3(x)) + kept)


class ResNet(nn.Module):
    def __init__(self, blocks=(3, 4, 6, 3), classes=1000):
        super().__init__()
        self.conv = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.norm = nn.BatchNorm2d(64)
        stages, inputs = [], 64
        for index, count in enumerate(blocks):
            width = 64 * 2**index
            for number in range(count):
                stride = 2 if number == 0 and index > 0 else 1
                stages.append(Bottleneck(inputs, width, stride))
                inputs = 4 * width
        self.stages = nn.Sequential(*stages)
        self.classify = nn.Linear(inputs, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 3, stride=2, padding=1)
        x = self.stages(x)
        x = F.adaptive_avg_pool2d(x, 1).flatten(1)
        return self.classify(x)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--every", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small", action="store_true", help="a few steps on 64×64 pictures")
    options = parser.parse_args()
    if options.small:
        options.steps, options.batch, options.size = min(options.steps, 20), 4, 64

    torch.manual_seed(options.seed)
    pictures, kinds = shapes.draw(20 * options.batch, options.size, channels=3, seed=options.seed)
    model = ResNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    for step in range(options.steps):
        start = step * options.batch % len(pictures)
        x, y = pictures[start : start + options.batch], kinds[start : start + options.batch]
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % options.every == options.every - 1:
            print(f"step {step + 1}  loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
