"""A deep residual network whose blocks are left out at random while it trains.

python examples/stochastic_depth.py                      eagerly
torchjanus run examples/stochastic_depth.py              as speculative graphs
"""

import argparse
import random

import shapes
import torch.nn.functional as F

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, survives):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)
        self.survives = survives

    def forward(self, x):
        if self.training and random.random() > self.survives:
            return x
        change = self.second(F.relu(self.first(self.norm(x))))
        if not self.training:
            change = change * self.survives
        return x + change


class Network(nn.Module):
    def __init__(self, inputs, width, depth, classes):
        super().__init__()
        self.enter = nn.Linear(inputs, width)
        survival = [1 - 0.5 * index / (depth - 1) for index in range(depth)]
        self.blocks = nn.ModuleList(Block(width, survives) for survives in survival)
        self.classify = nn.Linear(width, classes)

    def forward(self, x):
        x = F.relu(self.enter(x))
        for block in self.blocks:
            x = block(x)
        return self.classify(x)


def train_step(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--depth", type=int, default=12)
    parser.add_argument("--every", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    random.seed(options.seed)
    pictures, kinds = shapes.draw(4000, 28, seed=options.seed)
    pictures = pictures.flatten(1)
    model = Network(pictures.shape[1], options.width, options.depth, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.003, momentum=0.9)
    total = 0.0
    for step in range(options.steps):
        chosen = torch.randint(0, len(pictures), (options.batch,))
        total += train_step(model, optimizer, pictures[chosen], kinds[chosen]).item()
        if step % options.every == options.every - 1:
            print(f"step {step + 1}  loss {total / options.every:.4f}")
            total = 0.0
    model.eval()
    with torch.no_grad():
        right = (model(pictures).argmax(1) == kinds).float().mean()
    print(f"accuracy {right.item():.4f}")


if __name__ == "__main__":
    main()
