"""Music Transformer: relative attention over made melodies, written as events (notes, and times to wait).

Attention keeps its last weights as an attribute and the optimizer's schedule counts steps: Python objects that are
mutated in the step. Excerpts differ in length, so that sizes change, and NumPy computes the accuracy of events.

python examples/terra/music_transformer.py                      eagerly
torchjanus run examples/terra/music_transformer.py              as speculative graphs
"""

import math

import common
import numpy as np
import torch.nn.functional as F

import torch
from torch import nn

PADDING, FIRST_NOTE, NOTES, WAITS = 0, 1, 48, 8
EVENTS = FIRST_NOTE + NOTES + WAITS


class RelativeAttention(common.Attention):
    """Scores have a part of their own for how far back an event lies."""

    def __init__(self, width, heads, longest, dropout):
        super().__init__(width, heads, dropout)
        self.distances = nn.Parameter(0.02 * torch.randn(longest, width // heads))
        self.weights = None

    def scores(self, query, key):
        batch, heads, length, width = query.shape
        by_distance = query @ self.distances[-length:].t()
        # Skewing: a column for each distance becomes a column for each event.
        padded = F.pad(by_distance, (1, 0))
        skewed = padded.view(batch, heads, length + 1, length)[:, :, 1:]
        scores = (query @ key.transpose(-2, -1) + skewed) / math.sqrt(width)
        self.weights = scores.detach()
        return scores


class MusicTransformer(nn.Module):
    def __init__(self, width, layers, heads, longest, dropout):
        super().__init__()
        self.width = width
        self.events = nn.Embedding(EVENTS, width, padding_idx=PADDING)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(
            common.Block(
                RelativeAttention(width, heads, longest, dropout), width, dropout, norm_first=False
            )
            for _ in range(layers)
        )
        self.scores = nn.Linear(width, EVENTS)

    def forward(self, events):
        length = events.shape[1]
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        x = self.dropout(self.events(events) * math.sqrt(self.width))
        for block in self.blocks:
            x = block(x, later)
        return self.scores(x)


class WarmUp:
    """An optimizer with the learning rate of "Attention is all you need"."""

    def __init__(self, optimizer, width, warm_up):
        self.optimizer, self.width, self.warm_up = optimizer, width, warm_up
        self.step_count, self.rate = 0, 0.0

    def step(self):
        self.step_count += 1
        by_step = min(self.step_count**-0.5, self.step_count * self.warm_up**-1.5)
        self.rate = 0.1 * self.width**-0.5 * by_step
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate
        self.optimizer.step()

    def zero_grad(self):
        self.optimizer.zero_grad()


def accuracy(scores, following):
    """The share of events that are predicted, without padding."""
    counted = following != PADDING
    return float((np.argmax(scores, axis=-1) == following)[counted].mean())


def train_step(model, optimizer, history, events):
    given, following = events[:, :-1], events[:, 1:]
    scores = model(given)
    loss = F.cross_entropy(
        scores.flatten(0, 1), following.flatten(), ignore_index=PADDING, label_smoothing=0.1
    )
    history.append(accuracy(scores.detach().numpy(), following.numpy()))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def make_melodies(count, longest):
    """Scales that turn back now and then, with waits between the notes."""
    melodies = []
    for _ in range(count):
        note, way, melody = np.random.randint(NOTES), np.random.choice([-2, -1, 1, 2]), []
        while len(melody) < longest:
            if np.random.rand() < 0.1 or not 0 <= note + way < NOTES:
                way = -way
            note = min(max(note + way, 0), NOTES - 1)
            melody += [FIRST_NOTE + note, FIRST_NOTE + NOTES + abs(int(way))]
        melodies.append(melody[:longest])
    return torch.tensor(melodies)


def make_models(width, layers, heads, longest, dropout):
    return (MusicTransformer(width, layers, heads, longest, dropout),)


def main(steps=100, seed=0, every=10, batch=6, width=96, layers=3, heads=4, longest=96):
    common.seed_all(seed)
    melodies = make_melodies(200, longest + 1)
    (model,) = make_models(width, layers, heads, longest, 0.1)
    optimizer = WarmUp(torch.optim.Adam(model.parameters(), lr=0.0), width, steps // 2)
    history = []
    for step in common.timed(steps):
        length = 1 + longest * np.random.randint(4, 9) // 8
        chosen = torch.from_numpy(np.random.choice(len(melodies), batch, replace=False))
        loss = train_step(model, optimizer, history, melodies[chosen, :length])
        if step % every == every - 1:
            spread = model.blocks[0].attention.weights.std().item()
            print(
                f"step {step + 1}  loss {loss.item():.4f}  accuracy {np.mean(history[-every:]):.3f}"
                f"  rate {optimizer.rate:.5f}  spread of scores {spread:.3f}"
            )


if __name__ == "__main__":
    common.call(main, __doc__)
