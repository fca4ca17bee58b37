"""A network of operators that torch does not have, written with torchjanus.meta.

python examples/meta_operators.py                      eagerly
torchjanus run examples/meta_operators.py              as speculative graphs

A convolution (which graphs run by the convolution library), the largest value of each window taken along
diagonals, and a score of each class looked up by its index. It learns which way a line is drawn.
"""

import argparse

import torch.nn.functional as F

import torch
from torch import nn
from torchjanus import meta


def convolution(x, w, border=1):
    (n, c, h, v), (o, _, p, q) = x.shape, w.shape
    space = (n, o, h + 2 * border - p + 1, v + 2 * border - q + 1, c, p, q)
    image = meta.reindex(
        x, space, lambda n, o, i, j, c, p, q: (n, c, i + p - border, j + q - border)
    )
    weight = meta.reindex(w, space, lambda n, o, i, j, c, p, q: (o, c, p, q))
    return (image * weight).sum((4, 5, 6))


def diagonal_maxima(x):
    """The largest value of each diagonal of an image."""
    n, c, h, v = x.shape
    return meta.reindex_reduce(
        x, (n, c, h + v - 1), lambda n, c, i, j: (n, c, i - j + v - 1), "amax"
    )


class Net(nn.Module):
    def __init__(self, channels, size):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(channels, 1, 3, 3) * 0.3)
        self.classify = nn.Linear(channels * (2 * size - 1), 2)

    def forward(self, x):
        return self.classify(diagonal_maxima(convolution(x, self.weight).relu()).flatten(1))


def lines(batch, size):
    """Images with a line down or up a diagonal, and which it is."""
    target = torch.randint(0, 2, (batch,))
    down = torch.eye(size).expand(batch, size, size)
    images = torch.where(target.view(-1, 1, 1) == 0, down, down.flip(2))
    return (images + 0.3 * torch.randn(batch, size, size)).unsqueeze(1), target


def train_step(model, optimizer, x, target):
    scores = F.log_softmax(model(x), 1)
    loss = -meta.reindex(scores, target.shape, lambda i: (i, meta.at(target, i))).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--every", type=int, default=20)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--channels", type=int, default=8)
    parser.add_argument("--size", type=int, default=12)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    model = Net(arguments.channels, arguments.size)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(arguments.steps):
        x, target = lines(arguments.batch, arguments.size)
        loss = train_step(model, optimizer, x, target)
        if step % arguments.every == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
