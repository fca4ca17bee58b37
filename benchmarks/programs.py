"""The benchmark programs: each builds a model and gives its training step, written as people write it."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import dynamic_programs
import torch.nn.functional as F

import torch
from torch import nn


@dataclass
class Benchmark:
    """`build()` gives (models, make_step, batches): `make_step(*models)` is the step, so that a compiler can
    be given either the models or the step; `batches` are argument tuples to cycle through."""

    title: str
    build: Callable[[], tuple[list[nn.Module], Callable, list[tuple]]]


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 5, padding=2)
        self.conv2 = nn.Conv2d(32, 64, 5, padding=2)
        self.fc1 = nn.Linear(64 * 7 * 7, 512)
        self.fc2 = nn.Linear(512, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = x.flatten(1)
        return self.fc2(F.relu(self.fc1(x)))


def classification(model, optimizer):
    def make_step(model):
        def step(x, y):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        return step

    return make_step


def lenet():
    model = LeNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    batches = [(torch.randn(50, 1, 28, 28), torch.randint(0, 10, (50,))) for _ in range(8)]
    return [model], classification(model, optimizer), batches


def gan():
    generator = nn.Sequential(
        nn.Linear(100, 256), nn.LeakyReLU(0.2), nn.Linear(256, 512), nn.LeakyReLU(0.2),
        nn.Linear(512, 1024), nn.LeakyReLU(0.2), nn.Linear(1024, 784), nn.Tanh(),
    )  # fmt: skip
    critic = nn.Sequential(
        nn.Linear(784, 512),
        nn.LeakyReLU(0.2),
        nn.Linear(512, 256),
        nn.LeakyReLU(0.2),
        nn.Linear(256, 1),
    )
    generator_optimizer = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    critic_optimizer = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
    criterion = nn.BCEWithLogitsLoss()

    def make_step(generator, critic):
        def step(real):
            size = real.size(0)
            ones, zeros = torch.ones(size, 1), torch.zeros(size, 1)
            fake = generator(torch.randn(size, 100))
            critic_optimizer.zero_grad()
            critic_loss = criterion(critic(real), ones) + criterion(critic(fake.detach()), zeros)
            critic_loss.backward()
            critic_optimizer.step()
            generator_optimizer.zero_grad()
            generator_loss = criterion(critic(fake), ones)
            generator_loss.backward()
            generator_optimizer.step()
            return critic_loss, generator_loss

        return step

    return [generator, critic], make_step, [(torch.rand(128, 784) * 2 - 1,) for _ in range(8)]


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
    return [model], classification(model, optimizer), batches


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
    return [model], classification(model, optimizer), batches


def chosen(parser: argparse.ArgumentParser, names: Sequence[str]) -> Sequence[str]:
    """The programs that the command line names, all if it names none; ends the command if one is unknown."""
    for name in names:
        if name not in BENCHMARKS:
            parser.error(f"unknown program {name!r}: choose from {', '.join(BENCHMARKS)}")
    return names or list(BENCHMARKS)


BENCHMARKS = {
    "lenet": Benchmark("LeNet, batch 50", lenet),
    "gan": Benchmark("GAN, two MLPs on 28×28, batch 128, Adam", gan),
    "residual_mlp": Benchmark("MLP of 12 residual blocks of width 256, batch 32", residual_mlp),
    "small_cnn": Benchmark("small CNN with batch norm, batch 32", small_cnn),
    **{name: Benchmark(*each) for name, each in dynamic_programs.PROGRAMS.items()},
}
