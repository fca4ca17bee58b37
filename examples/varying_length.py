"""Classifies texts whose length is another one in every step: a convolution, attention, a classifier.

python examples/varying_length.py                      eagerly
torchjanus run examples/varying_length.py              as speculative graphs
"""

import argparse
import math

import torch.nn.functional as F

import torch
from torch import nn


class TextClassifier(nn.Module):
    def __init__(self, words, hidden, classes):
        super().__init__()
        self.embedding = nn.Embedding(words, hidden)
        self.convolution = nn.Conv1d(hidden, hidden, 3, padding=1)
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(hidden, hidden)
        self.value = nn.Linear(hidden, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.classify = nn.Linear(hidden, classes)

    def forward(self, tokens):
        x = self.embedding(tokens)
        x = F.relu(self.convolution(x.transpose(1, 2))).transpose(1, 2)
        scores = self.query(x) @ self.key(x).transpose(1, 2) / math.sqrt(x.shape[-1])
        x = self.norm(x + scores.softmax(-1) @ self.value(x))
        return self.classify(x.mean(dim=1))


def make_batch(batch, length, words, classes):
    """Texts that use the words of their class more often than others."""
    labels = torch.randint(0, classes, (batch,))
    tokens = torch.randint(0, words, (batch, length))
    own = torch.rand(batch, length) < 0.3
    return torch.where(own, tokens // classes * classes + labels[:, None], tokens), labels


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--words", type=int, default=2000)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--shortest", type=int, default=10)
    parser.add_argument("--longest", type=int, default=120)
    parser.add_argument("--every", type=int, default=25)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    model = TextClassifier(options.words, options.hidden, options.classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    total, right, seen = 0.0, 0, 0
    for step in range(options.steps):
        length = int(torch.randint(options.shortest, options.longest + 1, ()))
        tokens, labels = make_batch(options.batch, length, options.words, options.classes)
        optimizer.zero_grad()
        scores = model(tokens)
        loss = F.cross_entropy(scores, labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
        right += (scores.argmax(1) == labels).sum().item()
        seen += len(labels)
        if step % options.every == options.every - 1:
            print(f"step {step + 1}  loss {total / options.every:.4f}  accuracy {right / seen:.4f}")
            total, right, seen = 0.0, 0, 0


if __name__ == "__main__":
    main()
