"""DCGAN: convolutional generator and discriminator with an optimizer each, on made pictures of discs.

The step reads losses and mean scores as numbers, and lets the generator train once more where the discriminator
is far ahead. Every few steps NumPy puts generated pictures into one and looks at its contrast.

python examples/terra/dcgan.py                      eagerly
torchjanus run examples/terra/dcgan.py              as speculative graphs
"""

import common
import numpy as np
import torch.nn.functional as F

import torch
from torch import nn


def upwards(inputs, outputs):
    return nn.Sequential(
        nn.ConvTranspose2d(inputs, outputs, 4, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
    )


def downwards(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 4, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.LeakyReLU(0.2, inplace=True),
    )


class Generator(nn.Module):
    def __init__(self, noise, width):
        super().__init__()
        self.first = nn.Sequential(
            nn.ConvTranspose2d(noise, 4 * width, 4, bias=False),
            nn.BatchNorm2d(4 * width),
            nn.ReLU(inplace=True),
        )
        self.middle = nn.Sequential(upwards(4 * width, 2 * width), upwards(2 * width, width))
        self.last = nn.ConvTranspose2d(width, 3, 4, stride=2, padding=1, bias=False)

    def forward(self, noise):
        return torch.tanh(self.last(self.middle(self.first(noise))))


class Discriminator(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Conv2d(3, width, 4, stride=2, padding=1, bias=False)
        self.middle = nn.Sequential(downwards(width, 2 * width), downwards(2 * width, 4 * width))
        self.last = nn.Conv2d(4 * width, 1, 4, bias=False)

    def forward(self, pictures):
        x = F.leaky_relu(self.first(pictures), 0.2)
        return self.last(self.middle(x)).flatten()


def start_weights(module):
    if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
        nn.init.normal_(module.weight, 0.0, 0.02)
    elif isinstance(module, nn.BatchNorm2d):
        nn.init.normal_(module.weight, 1.0, 0.02)
        nn.init.zeros_(module.bias)


def train_discriminator(discriminator, optimizer, real, made):
    optimizer.zero_grad()
    scores = discriminator(real)
    loss_real = F.binary_cross_entropy_with_logits(scores, torch.ones(len(real)))
    loss_real.backward()
    scores_made = discriminator(made.detach())
    loss_made = F.binary_cross_entropy_with_logits(scores_made, torch.zeros(len(made)))
    loss_made.backward()
    optimizer.step()
    return loss_real.item() + loss_made.item(), torch.sigmoid(scores).mean().item()


def train_generator(generator, discriminator, optimizer, noise):
    optimizer.zero_grad()
    scores = discriminator(generator(noise))
    loss = F.binary_cross_entropy_with_logits(scores, torch.ones(len(scores)))
    loss.backward()
    optimizer.step()
    return loss.item()


def train_step(models, optimizers, real, noise):
    generator, discriminator = models
    made = generator(noise)
    loss_d, mean_real = train_discriminator(discriminator, optimizers[1], real, made)
    loss_g = train_generator(generator, discriminator, optimizers[0], noise)
    if loss_g > 4 * loss_d:
        loss_g = train_generator(generator, discriminator, optimizers[0], noise)
    return loss_d, loss_g, mean_real


def make_pictures(count, size=32):
    """Discs of any place, size and colour."""
    rows, columns = torch.arange(size).view(1, size, 1), torch.arange(size).view(1, 1, size)
    middles = (0.3 + 0.4 * torch.rand(count, 2, 1, 1)) * size
    radii = (0.1 + 0.2 * torch.rand(count, 1, 1)) * size
    far = (rows - middles[:, 0]) ** 2 + (columns - middles[:, 1]) ** 2
    colours = torch.rand(count, 3, 1, 1) * 2 - 1
    return torch.where((far < radii**2).unsqueeze(1), colours, -torch.ones(()))


def contrast(generator, noise):
    """Of generated pictures that are put into one, four in a row."""
    with torch.no_grad():
        pictures = generator(noise).numpy()
    count, channels, height, width = pictures.shape
    grid = pictures.reshape(count // 4, 4, channels, height, width)
    grid = grid.transpose(0, 3, 1, 4, 2).reshape(count // 4 * height, 4 * width, channels)
    return float(np.std(np.clip(grid * 127.5 + 127.5, 0, 255)))


def make_models(noise, width):
    return Generator(noise, width), Discriminator(width)


def main(steps=100, seed=0, every=10, batch=16, width=16, noise=32):
    common.seed_all(seed)
    pictures = make_pictures(50 * batch)
    models = make_models(noise, width)
    for model in models:
        model.apply(start_weights)
    optimizers = [
        torch.optim.Adam(model.parameters(), lr=2e-4, betas=(0.5, 0.999)) for model in models
    ]
    fixed = torch.randn(8, noise, 1, 1)
    for step in common.timed(steps):
        real = pictures[torch.randint(0, len(pictures), (batch,))]
        loss_d, loss_g, mean_real = train_step(
            models, optimizers, real, torch.randn(batch, noise, 1, 1)
        )
        if step % every == every - 1:
            print(
                f"step {step + 1}  loss of discriminator {loss_d:.4f}  of generator {loss_g:.4f}"
                f"  D(x) {mean_real:.3f}  contrast {contrast(models[0], fixed):.2f}"
            )


if __name__ == "__main__":
    common.call(main, __doc__)
