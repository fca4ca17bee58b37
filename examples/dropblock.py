"""DropBlock: whole squares of a feature map are dropped, by a schedule that grows step by step.

python examples/dropblock.py                      eagerly
torchjanus run examples/dropblock.py              as speculative graphs
"""

import argparse

import shapes
import torch.nn.functional as F

import torch
from torch import nn


class DropBlock(nn.Module):
    def __init__(self, block, probability):
        super().__init__()
        self.block = block
        self.probability = probability

    def forward(self, x):
        if not self.training or self.probability == 0.0:
            return x
        rate = self.probability / self.block**2
        seeds = (torch.rand(x.shape[0], 1, *x.shape[2:]) < rate).float()
        dropped = F.max_pool2d(seeds, self.block, stride=1, padding=self.block // 2)
        kept = 1 - dropped
        return x * kept * (kept.numel() / kept.sum())


class Schedule:
    """Moves the probability of DropBlock evenly from 0 to its last value."""

    def __init__(self, layers, last, steps):
        self.layers = layers
        self.last = last
        self.steps = steps
        self.step_count = 0

    def step(self):
        self.step_count += 1
        share = min(1.0, self.step_count / self.steps)
        for layer in self.layers:
            layer.probability = self.last * share


class Network(nn.Module):
    def __init__(self, width, block):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.drop1 = DropBlock(block, 0.0)
        self.drop2 = DropBlock(block, 0.0)
        self.classify = nn.Linear(2 * width * 64, 2)

    def forward(self, x):
        x = self.drop1(F.max_pool2d(F.relu(self.conv1(x)), 2))
        x = self.drop2(F.max_pool2d(F.relu(self.conv2(x)), 2))
        return self.classify(x.flatten(1))


def train_step(model, optimizer, schedule, x, y):
    schedule.step()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--block", type=int, default=3)
    parser.add_argument("--drop", type=float, default=0.2, help="the schedule's last probability")
    parser.add_argument("--every", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    pictures, kinds = shapes.draw(1000, 32, channels=3, seed=options.seed)
    model = Network(options.width, options.block)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    schedule = Schedule([model.drop1, model.drop2], options.drop, options.steps)
    total = 0.0
    for step in range(options.steps):
        chosen = torch.randint(0, len(pictures), (options.batch,))
        total += train_step(model, optimizer, schedule, pictures[chosen], kinds[chosen]).item()
        if step % options.every == options.every - 1:
            mean, probability = total / options.every, model.drop1.probability
            print(f"step {step + 1}  loss {mean:.4f}  dropping {probability:.3f}")
            total = 0.0
    model.eval()
    with torch.no_grad():
        right = (model(pictures).argmax(1) == kinds).float().mean()
    print(f"accuracy {right.item():.4f}")


if __name__ == "__main__":
    main()
