"""A model that remembers: counters, running means, a history and a schedule in its attributes.

python examples/stateful_model.py                      eagerly
torchjanus run examples/stateful_model.py              as speculative graphs

It predicts a drifting signal and carries its own state from step to step.
"""

import argparse
import math

import torch.nn.functional as F

import torch
from torch import nn


class Tracker(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.enter = nn.Linear(inputs, hidden)
        self.recur = nn.Linear(hidden, hidden)
        self.predict = nn.Linear(hidden, inputs)
        self.state = torch.zeros(1, hidden)
        self.mean = torch.zeros(inputs)
        self.momentum = 0.5
        self.steps = 0
        self.largest = 0.0
        self.history = []

    def forward(self, x):
        self.steps += 1
        self.momentum = min(0.99, self.momentum * 1.01)
        self.mean = self.momentum * self.mean + (1 - self.momentum) * x.detach().mean(0)
        state = torch.tanh(self.enter(x - self.mean) + self.recur(self.state))
        self.state = state.detach().mean(0, keepdim=True)
        return self.predict(state) + self.mean

    def note(self, loss):
        self.history.append(loss)
        if loss > self.largest:
            self.largest = loss


def train_step(model, optimizer, x, target):
    loss = F.mse_loss(model(x), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model.note(loss.item())
    return loss


def signal(step, batch, inputs):
    """A batch of the signal and what follows it."""
    phases = torch.arange(inputs) * 0.3
    times = torch.arange(step, step + batch + 1).unsqueeze(1) * 0.05
    values = torch.sin(times + phases) + 0.5 * math.sin(step * 0.01)
    return values[:-1], values[1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--inputs", type=int, default=16)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--every", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    model = Tracker(options.inputs, options.hidden)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(options.steps):
        x, target = signal(step, options.batch, options.inputs)
        train_step(model, optimizer, x, target)
        if step % options.every == options.every - 1:
            recent = model.history[-options.every :]
            mean = sum(recent) / len(recent)
            print(f"step {model.steps}  loss {mean:.5f}  momentum {model.momentum:.3f}")
    print(f"largest {model.largest:.4f}  mean {model.mean.mean().item():.4f}")


if __name__ == "__main__":
    main()
