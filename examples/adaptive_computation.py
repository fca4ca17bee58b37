"""Adaptive computation time: the network thinks on until it says itself that it is done.

python examples/adaptive_computation.py                      eagerly
torchjanus run examples/adaptive_computation.py              as speculative graphs

The task is parity: whether the number of ones among some bits is odd.
"""

import argparse

import torch.nn.functional as F

import torch
from torch import nn


class Thinker(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.enter = nn.Linear(inputs, hidden)
        self.think = nn.GRUCell(hidden, hidden)
        self.halt = nn.Linear(hidden, 1)
        self.answer = nn.Linear(hidden, 2)
        nn.init.constant_(self.halt.bias, -1.0)

    def forward(self, x):
        """The mean answer over all thoughts, and how long each input was thought about."""
        x = torch.tanh(self.enter(x))
        state = torch.zeros_like(x)
        halting = torch.zeros(x.shape[0])
        answer = torch.zeros(x.shape[0], 2)
        thoughts = torch.zeros(x.shape[0])
        while halting.min() < 1:
            state = self.think(x, state)
            stop = 0.01 + torch.sigmoid(self.halt(state)).squeeze(1)
            running = (halting < 1).float()
            share = torch.minimum(stop, 1 - halting) * running
            answer = answer + share.unsqueeze(1) * self.answer(state)
            thoughts = thoughts + running + share
            halting = halting + stop * running
        return answer, thoughts.mean()


def train_step(model, optimizer, x, y, penalty):
    answer, thoughts = model(x)
    loss = F.cross_entropy(answer, y) + penalty * thoughts
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss, thoughts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--bits", type=int, default=16)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--penalty", type=float, default=0.001)
    parser.add_argument("--every", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    model = Thinker(options.bits, options.hidden)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    total, thought = 0.0, 0.0
    for step in range(options.steps):
        bits = torch.randint(0, 2, (options.batch, options.bits))
        x, y = bits.float() * 2 - 1, bits.sum(1) % 2
        loss, thoughts = train_step(model, optimizer, x, y, options.penalty)
        total += loss.item()
        thought += thoughts.item()
        if step % options.every == options.every - 1:
            loss, thoughts = total / options.every, thought / options.every
            print(f"step {step + 1}  loss {loss:.4f}  thoughts {thoughts:.3f}")
            total, thought = 0.0, 0.0


if __name__ == "__main__":
    main()
