"""The benchmark programs: each builds a model and gives its training step, written as people write it."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import dynamic_programs  # makes the examples known
import gan
import lenet
import torch.nn.functional as F
from dynamic_programs import classification

import torch
from torch import nn


@dataclass
class Benchmark:
    """`build()` gives (models, make_step, batches): `make_step(*models)` is the step, so that a compiler can
    be given either the models or the step; `batches` are argument tuples to cycle through."""

    title: str
    build: Callable[[], tuple[list[nn.Module], Callable, list[tuple]]]
    cycle: int = 1  # of so many steps none is like the other: figures are of all of them


def le_net():
    model = lenet.LeNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    batches = [(torch.randn(50, 1, 28, 28), torch.randint(0, 10, (50,))) for _ in range(8)]
    return [model], classification(optimizer), batches


def adversaries():
    networks = gan.make_networks(noise=100)
    optimizers = gan.make_optimizers(networks)

    def make_step(*networks):
        return lambda real: gan.train_step(networks, optimizers, real, torch.randn(len(real), 100))

    return [*networks], make_step, [(torch.rand(128, 784) * 2 - 1,) for _ in range(8)]


class ResidualBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)

    def forward(self, x):
        return x + self.second(F.relu(self.first(x)))


def residual_mlp():
    model = nn.Sequential(*[ResidualBlock(256) for _ in range(12)], nn.Linear(256, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    batches = [(torch.randn(32, 256), torch.randint(0, 10, (32,))) for _ in range(8)]
    return [model], classification(optimizer), batches


def small_cnn():
    def block(inputs, outputs):
        return [
            nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
            nn.MaxPool2d(2),
        ]  # fmt: skip

    model = nn.Sequential(
        *block(3, 32), *block(32, 64), *block(64, 64), nn.Flatten(), nn.Linear(64 * 16, 10)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    batches = [(torch.randn(32, 3, 32, 32), torch.randint(0, 10, (32,))) for _ in range(8)]
    return [model], classification(optimizer), batches


def chosen(parser: argparse.ArgumentParser, names: Sequence[str]) -> Sequence[str]:
    """The programs that the command line names, all if it names none; ends the command if one is unknown."""
    for name in names:
        if name not in BENCHMARKS:
            parser.error(f"unknown program {name!r}: choose from {', '.join(BENCHMARKS)}")
    return names or list(BENCHMARKS)


BENCHMARKS = {
    "lenet": Benchmark("LeNet, batch 50", le_net),
    "gan": Benchmark("GAN, two MLPs on 28×28, batch 128, Adam", adversaries),
    "residual_mlp": Benchmark("MLP of 12 residual blocks of width 256, batch 32", residual_mlp),
    "small_cnn": Benchmark("small CNN with batch norm, batch 32", small_cnn),
    **{name: Benchmark(*each) for name, each in dynamic_programs.PROGRAMS.items()},
}
