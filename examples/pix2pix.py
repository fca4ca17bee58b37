"""pix2pix in small: a U-Net paints pictures into outlines, a patch critic judges pairs.

python examples/pix2pix.py                      eagerly
torchjanus run examples/pix2pix.py              as speculative graphs
"""

import argparse
import itertools

import shapes
import torch.nn.functional as F

import torch
from torch import nn


def down(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 4, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.LeakyReLU(0.2),
    )


def up(inputs, outputs):
    return nn.Sequential(
        nn.ConvTranspose2d(inputs, outputs, 4, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


class Generator(nn.Module):
    def __init__(self, width):
        super().__init__()
        sizes = [width, 2 * width, 4 * width, 4 * width]
        self.first = nn.Conv2d(1, width, 4, stride=2, padding=1)
        self.downs = nn.ModuleList(down(a, b) for a, b in itertools.pairwise(sizes))
        self.ups = nn.ModuleList([up(4 * width, 4 * width), up(8 * width, 2 * width)])
        self.ups.append(up(4 * width, width))
        self.last = nn.ConvTranspose2d(2 * width, 3, 4, stride=2, padding=1)

    def forward(self, x):
        skipped = [F.leaky_relu(self.first(x), 0.2)]
        for block in self.downs:
            skipped.append(block(skipped[-1]))
        x = skipped.pop()
        for block in self.ups:
            x = F.dropout(block(x), 0.2, self.training)
            x = torch.cat([x, skipped.pop()], dim=1)
        return torch.tanh(self.last(x))


def make_critic(width):
    return nn.Sequential(
        nn.Conv2d(4, width, 4, stride=2, padding=1),
        nn.LeakyReLU(0.2),
        down(width, 2 * width),
        nn.Conv2d(2 * width, 1, 3, padding=1),
    )


def train_step(generator, critic, generator_optimizer, critic_optimizer, outlines, real, weight):
    fake = generator(outlines)
    on_real = critic(torch.cat([outlines, real], 1))
    on_fake = critic(torch.cat([outlines, fake.detach()], 1))
    critic_loss = F.binary_cross_entropy_with_logits(on_real, torch.ones_like(on_real))
    critic_loss = critic_loss + F.binary_cross_entropy_with_logits(
        on_fake, torch.zeros_like(on_fake)
    )
    critic_optimizer.zero_grad()
    critic_loss.backward()
    critic_optimizer.step()

    judged = critic(torch.cat([outlines, fake], 1))
    difference = F.l1_loss(fake, real)
    generator_loss = F.binary_cross_entropy_with_logits(judged, torch.ones_like(judged))
    generator_optimizer.zero_grad()
    (generator_loss + weight * difference).backward()
    generator_optimizer.step()
    return critic_loss, generator_loss, difference


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--size", type=int, default=64, help="a multiple of 16")
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    pictures, _ = shapes.draw(500, options.size, channels=3, seed=options.seed)
    outlines = shapes.edges(pictures)
    generator, critic = Generator(options.width), make_critic(options.width)
    generator_optimizer = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    critic_optimizer = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
    for step in range(options.steps):
        chosen = torch.randint(0, len(pictures), (options.batch,))
        critic_loss, generator_loss, difference = train_step(
            generator, critic, generator_optimizer, critic_optimizer, outlines[chosen],
            pictures[chosen], 100.0,
        )  # fmt: skip
        if step % options.every == options.every - 1:
            print(
                f"step {step + 1}  critic {critic_loss.item():.4f}"
                f"  generator {generator_loss.item():.4f}  difference {difference.item():.4f}"
            )


if __name__ == "__main__":
    main()
