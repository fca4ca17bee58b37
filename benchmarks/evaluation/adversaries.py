"""The four adversarial networks of Jittor's evaluation, in training on made pictures of 32×32."""

import itertools
from collections.abc import Callable

import shapes
import torch.nn.functional as F
from programs import Benchmark

import torch
from torch import nn

from . import paper

SIZE, BATCH, NOISE, WIDTH = 32, 32, 64, 32
GENERATOR_EVERY = 5  # steps of WGAN-GP


def adam(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr=2e-4, betas=(0.5, 0.999))


def generator() -> nn.Module:
    """From noise, by transposed convolutions."""
    layers: list[nn.Module] = [
        nn.Linear(NOISE, 4 * WIDTH * 16), nn.Unflatten(1, (4 * WIDTH, 4, 4)),
    ]  # fmt: skip
    for inputs, outputs in itertools.pairwise((4 * WIDTH, 2 * WIDTH, WIDTH)):
        layers += [nn.BatchNorm2d(inputs), nn.ReLU(), nn.ConvTranspose2d(inputs, outputs, 4, 2, 1)]
    layers += [nn.BatchNorm2d(WIDTH), nn.ReLU(), nn.ConvTranspose2d(WIDTH, 1, 4, 2, 1), nn.Tanh()]
    return nn.Sequential(*layers)


def critic(normalised: bool, inputs: int = 1) -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(inputs, WIDTH, 4, 2, 1), nn.LeakyReLU(0.2)]
    for before, after in itertools.pairwise((WIDTH, 2 * WIDTH, 4 * WIDTH)):
        layers += [nn.Conv2d(before, after, 4, 2, 1)]
        layers += [nn.BatchNorm2d(after)] if normalised else []
        layers += [nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers, nn.Conv2d(4 * WIDTH, 1, 4), nn.Flatten())


def pictures(channels: int, batch: int, seed: int = 0) -> list[torch.Tensor]:
    drawn, _ = shapes.draw(8 * batch, SIZE, channels=channels, seed=seed)
    return list(drawn.split(batch))


def cross_entropy(scores: torch.Tensor, real: bool) -> torch.Tensor:
    wanted = torch.ones_like(scores) if real else torch.zeros_like(scores)
    return F.binary_cross_entropy_with_logits(scores, wanted)


def squares(scores: torch.Tensor, real: bool) -> torch.Tensor:
    return (scores - (1.0 if real else 0.0)).pow(2).mean()


def alternating(loss: Callable) -> Callable:
    """DCGAN and LSGAN: a step of the critic, then one of the generator."""

    def build():
        painter, judge = generator(), critic(normalised=True)
        painter_optimizer, judge_optimizer = adam(painter), adam(judge)

        def make_step(painter, judge):
            def step(real):
                fake = painter(torch.randn(len(real), NOISE))
                judge_optimizer.zero_grad()
                judge_loss = loss(judge(real), True) + loss(judge(fake.detach()), False)
                judge_loss.backward()
                judge_optimizer.step()
                painter_optimizer.zero_grad()
                painter_loss = loss(judge(fake), True)
                painter_loss.backward()
                painter_optimizer.step()
                return judge_loss, painter_loss

            return step

        return [painter, judge], make_step, [(each,) for each in pictures(1, BATCH)]

    return build


def gradient_penalty(judge: nn.Module, real: torch.Tensor, fake: torch.Tensor) -> torch.Tensor:
    """How far the norm of the critic's gradient is from 1, between real and made pictures."""
    share = torch.rand(len(real), 1, 1, 1)
    between = (share * real + (1 - share) * fake).requires_grad_()
    (gradient,) = torch.autograd.grad(judge(between).sum(), between, create_graph=True)
    return (gradient.flatten(1).norm(dim=1) - 1).pow(2).mean()


def wasserstein():
    """WGAN-GP: the critic's step in each call, the generator's in each fifth."""
    painter, judge = generator(), critic(normalised=False)
    painter_optimizer, judge_optimizer = adam(painter), adam(judge)

    def make_step(painter, judge):
        steps = 0

        def step(real):
            nonlocal steps
            steps += 1
            fake = painter(torch.randn(len(real), NOISE)).detach()
            judge_optimizer.zero_grad()
            loss = judge(fake).mean() - judge(real).mean()
            loss = loss + 10 * gradient_penalty(judge, real, fake)
            loss.backward()
            judge_optimizer.step()
            if steps % GENERATOR_EVERY == 0:
                painter_optimizer.zero_grad()
                painter_loss = -judge(painter(torch.randn(len(real), NOISE))).mean()
                painter_loss.backward()
                painter_optimizer.step()
            return loss

        return step

    return [painter, judge], make_step, [(each,) for each in pictures(1, BATCH)]


class Kept(nn.Module):
    """Two convolutions, beside what they are given."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.ReflectionPad2d(1), nn.Conv2d(width, width, 3), nn.InstanceNorm2d(width), nn.ReLU(),
            nn.ReflectionPad2d(1), nn.Conv2d(width, width, 3), nn.InstanceNorm2d(width),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(x)


def translator() -> nn.Module:
    """From pictures to pictures."""
    return nn.Sequential(
        nn.Conv2d(3, WIDTH, 7, padding=3), nn.InstanceNorm2d(WIDTH), nn.ReLU(),
        nn.Conv2d(WIDTH, 2 * WIDTH, 3, 2, 1), nn.InstanceNorm2d(2 * WIDTH), nn.ReLU(),
        *[Kept(2 * WIDTH) for _ in range(3)],
        nn.ConvTranspose2d(2 * WIDTH, WIDTH, 4, 2, 1), nn.InstanceNorm2d(WIDTH), nn.ReLU(),
        nn.Conv2d(WIDTH, 3, 7, padding=3), nn.Tanh(),
    )  # fmt: skip


def cycles():
    """CycleGAN: there and back between two kinds of pictures."""
    there, back = translator(), translator()
    judges = [critic(normalised=False, inputs=3) for _ in range(2)]
    painters = nn.ModuleList([there, back])
    painter_optimizer, judge_optimizer = adam(painters), adam(nn.ModuleList(judges))

    def make_step(there, back, judge, other_judge):
        def step(one, other):
            made_other, made_one = there(one), back(other)
            painter_optimizer.zero_grad()
            loss = squares(other_judge(made_other), True) + squares(judge(made_one), True)
            loss = loss + 10 * F.l1_loss(back(made_other), one)
            loss = loss + 10 * F.l1_loss(there(made_one), other)
            loss = loss + 5 * F.l1_loss(there(other), other) + 5 * F.l1_loss(back(one), one)
            loss.backward()
            painter_optimizer.step()
            judge_optimizer.zero_grad()
            judge_loss = squares(judge(one), True) + squares(judge(made_one.detach()), False)
            judge_loss = judge_loss + squares(other_judge(other), True)
            judge_loss = judge_loss + squares(other_judge(made_other.detach()), False)
            judge_loss.backward()
            judge_optimizer.step()
            return loss, judge_loss

        return step

    pairs = zip(pictures(3, 2), pictures(3, 2, seed=1), strict=True)
    return [there, back, *judges], make_step, list(pairs)


BUILD = {
    "wgan_gp": wasserstein,
    "dcgan": alternating(cross_entropy),
    "lsgan": alternating(squares),
    "cyclegan": cycles,
}


def training(name: str) -> Benchmark:
    cycle = GENERATOR_EVERY if name == "wgan_gp" else 1
    return Benchmark(paper.JITTOR_GANS[name].title, BUILD[name], cycle)
