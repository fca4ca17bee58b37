"""A small GPT-2 of characters that writes a sample of text every few steps while it trains.

Sampling is a Python loop over a text that grows: NumPy draws the next character of the likeliest ones. So lengths
change from call to call, and tensors are materialised between training steps.

python examples/terra/gpt2.py                      eagerly
torchjanus run examples/terra/gpt2.py              as speculative graphs
"""

import common
import numpy as np
import torch.nn.functional as F

import torch
from torch import nn

LETTERS = " .abcdefghijklmnopqrstuvwxyz"


class GPT2(nn.Module):
    def __init__(self, letters, width, layers, heads, longest, dropout):
        super().__init__()
        self.longest = longest
        self.letters = nn.Embedding(letters, width)
        self.positions = nn.Embedding(longest, width)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(
            common.Block(common.Attention(width, heads, dropout), width, dropout, norm_first=True)
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        self.register_buffer("later", torch.ones(longest, longest).triu(1).bool())

    def forward(self, text):
        length = text.shape[1]
        x = self.dropout(self.letters(text) + self.positions(torch.arange(length)))
        for block in self.blocks:
            x = block(x, self.later[:length, :length])
        return F.linear(self.norm(x), self.letters.weight)  # the embedding's weight serves twice


def train_step(model, optimizer, text):
    scores = model(text[:, :-1])
    loss = F.cross_entropy(scores.flatten(0, 1), text[:, 1:].flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss


def sample(model, start, count, best=5, temperature=0.8):
    """Goes on with a text, each character drawn from the likeliest ones."""
    model.eval()
    text = [LETTERS.index(letter) for letter in start]
    with torch.no_grad():
        for _ in range(count):
            scores = model(torch.tensor([text[-model.longest :]]))[0, -1].numpy() / temperature
            likeliest = np.argsort(-scores, kind="stable")[:best]
            shares = np.exp(scores[likeliest] - scores[likeliest].max())
            text.append(int(np.random.choice(likeliest, p=shares / shares.sum())))
    model.train()
    return "".join(LETTERS[number] for number in text)


def make_text(words, count):
    """Sentences of made words: each word is followed by one of three others."""
    syllables = [first + second for first in "bdklmnrst" for second in "aeiou"]
    known = ["".join(np.random.choice(syllables, np.random.randint(1, 4))) for _ in range(words)]
    following, at, written = np.random.randint(0, words, (words, 3)), 0, []
    for number in range(count):
        at = following[at, np.random.randint(3)]
        written.append(known[at] + ("." if number % 9 == 8 else ""))
    return torch.tensor([LETTERS.index(letter) for letter in " ".join(written)])


def make_models(width, layers, heads, longest, dropout):
    return (GPT2(len(LETTERS), width, layers, heads, longest, dropout),)


def main(steps=100, seed=0, every=10, batch=8, width=96, layers=4, heads=4, longest=64, letters=24):
    common.seed_all(seed)
    text = make_text(40, 4000)
    (model,) = make_models(width, layers, heads, longest, 0.1)
    model.apply(common.start_weights)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    for step in common.timed(steps):
        starts = torch.randint(0, len(text) - longest - 1, (batch,)).tolist()
        given = torch.stack([text[start : start + longest + 1] for start in starts])
        loss = train_step(model, optimizer, given)
        if step % every == every - 1:
            written = sample(model, "the ", letters)
            print(f"step {step + 1}  loss {loss.item():.4f}  {written!r}")


if __name__ == "__main__":
    common.call(main, __doc__)
