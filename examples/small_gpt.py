"""A small decoder of characters, as in lectures: attention written out, position embeddings, AdamW.

python examples/small_gpt.py                      eagerly
torchjanus run examples/small_gpt.py              as speculative graphs
"""

import argparse
import math
from pathlib import Path
from pydoc_data.topics import topics

import torch.nn.functional as F

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads, longest, dropout):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("earlier", torch.tril(torch.ones(longest, longest)))

    def forward(self, x):
        batch, length, width = x.shape
        shape = (batch, length, self.heads, width // self.heads)
        query = self.query(x).view(shape).transpose(1, 2)
        key = self.key(x).view(shape).transpose(1, 2)
        value = self.value(x).view(shape).transpose(1, 2)
        scores = query @ key.transpose(-2, -1) / math.sqrt(width // self.heads)
        scores = scores.masked_fill(self.earlier[:length, :length] == 0, float("-inf"))
        shares = self.dropout(F.softmax(scores, dim=-1))
        mixed = (shares @ value).transpose(1, 2).contiguous().view(batch, length, width)
        return self.dropout(self.out(mixed))


class Block(nn.Module):
    def __init__(self, width, heads, longest, dropout):
        super().__init__()
        self.before_attention = nn.LayerNorm(width)
        self.attention = Attention(width, heads, longest, dropout)
        self.before_network = nn.LayerNorm(width)
        self.network = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout)
        )

    def forward(self, x):
        x = x + self.attention(self.before_attention(x))
        return x + self.network(self.before_network(x))


class GPT(nn.Module):
    def __init__(self, characters, width, layers, heads, longest, dropout):
        super().__init__()
        self.characters = nn.Embedding(characters, width)
        self.positions = nn.Embedding(longest, width)
        self.blocks = nn.Sequential(*(Block(width, heads, longest, dropout) for _ in range(layers)))
        self.last = nn.LayerNorm(width)
        self.scores = nn.Linear(width, characters)

    def forward(self, text):
        positions = torch.arange(text.shape[1])
        x = self.characters(text) + self.positions(positions)
        return self.scores(self.last(self.blocks(x)))


def train_step(model, optimizer, text, following):
    scores = model(text)
    loss = F.cross_entropy(scores.flatten(0, 1), following.flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    return loss


def load_characters(path):
    """A text as numbers, and how many characters there are."""
    text = path.read_text() if path else "\n".join(topics.values())
    number = {character: index for index, character in enumerate(sorted(set(text)))}
    return torch.tensor([number[character] for character in text]), len(number)


def draw(text, batch, length):
    """Excerpts, and what follows each character of them."""
    starts = torch.randint(0, len(text) - length, (batch,)).tolist()
    given = torch.stack([text[start : start + length] for start in starts])
    return given, torch.stack([text[start + 1 : start + length + 1] for start in starts])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, help="default: Python's own documentation")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--every", type=int, default=20, help="print the loss every so many steps")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    text, characters = load_characters(options.text)
    model = GPT(
        characters, options.width, options.layers, options.heads, options.length, options.dropout
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    total = 0.0
    for step in range(options.steps):
        given, following = draw(text, options.batch, options.length)
        total += train_step(model, optimizer, given, following).item()
        if step % options.every == options.every - 1:
            print(f"step {step + 1}  loss {total / options.every:.4f}")
            total = 0.0


if __name__ == "__main__":
    main()
