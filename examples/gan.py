"""A generative adversarial network of two multi-layer perceptrons, on made 28×28 pictures.

python examples/gan.py                      eagerly
torchjanus run examples/gan.py              as speculative graphs
"""

import argparse

import shapes
import torch.nn.functional as F

import torch
from torch import nn


def make_networks(noise):
    generator = nn.Sequential(
        nn.Linear(noise, 256),
        nn.LeakyReLU(0.2),
        nn.Linear(256, 512),
        nn.LeakyReLU(0.2),
        nn.Linear(512, 1024),
        nn.LeakyReLU(0.2),
        nn.Linear(1024, 784),
        nn.Tanh(),
    )
    critic = nn.Sequential(
        nn.Linear(784, 512),
        nn.LeakyReLU(0.2),
        nn.Linear(512, 256),
        nn.LeakyReLU(0.2),
        nn.Linear(256, 1),
    )
    return generator, critic


def make_optimizers(networks):
    return [torch.optim.Adam(each.parameters(), lr=2e-4, betas=(0.5, 0.999)) for each in networks]


def train_step(networks, optimizers, real, noise):
    """One update of the critic, then one of the generator: both losses."""
    generator, critic = networks
    generator_optimizer, critic_optimizer = optimizers
    criterion = F.binary_cross_entropy_with_logits
    ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)

    fake = generator(noise)
    critic_optimizer.zero_grad()
    critic_loss = criterion(critic(real), ones) + criterion(critic(fake.detach()), zeros)
    critic_loss.backward()
    critic_optimizer.step()

    generator_optimizer.zero_grad()
    generator_loss = criterion(critic(fake), ones)
    generator_loss.backward()
    generator_optimizer.step()
    return critic_loss, generator_loss


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--noise", type=int, default=100)
    parser.add_argument("--every", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    pictures, _ = shapes.draw(4000, 28, seed=options.seed)
    pictures = pictures.flatten(1)
    networks = make_networks(options.noise)
    optimizers = make_optimizers(networks)

    for step in range(options.steps):
        real = pictures[torch.randint(0, len(pictures), (options.batch,))]
        noise = torch.randn(len(real), options.noise)
        critic_loss, generator_loss = train_step(networks, optimizers, real, noise)
        if step % options.every == options.every - 1:
            print(
                f"step {step + 1}  critic {critic_loss.item():.4f}"
                f"  generator {generator_loss.item():.4f}"
            )


if __name__ == "__main__":
    main()
