"""A language model of hand-written LSTM cells; the state is carried from step to step and truncated.

python examples/lstm_language_model.py                      eagerly
torchjanus run examples/lstm_language_model.py              as speculative graphs
"""

import argparse
import collections
import math
import re
from pathlib import Path
from pydoc_data.topics import topics

import torch.nn.functional as F

import torch
from torch import nn


class LSTMCell(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.from_input = nn.Linear(inputs, 4 * hidden)
        self.from_hidden = nn.Linear(hidden, 4 * hidden, bias=False)

    def forward(self, x, state):
        hidden, cell = state
        gates = self.from_input(x) + self.from_hidden(hidden)
        enter, forget, candidate, leave = gates.chunk(4, dim=1)
        cell = torch.sigmoid(forget) * cell + torch.sigmoid(enter) * torch.tanh(candidate)
        hidden = torch.sigmoid(leave) * torch.tanh(cell)
        return hidden, cell


class LanguageModel(nn.Module):
    def __init__(self, words, hidden, layers, dropout):
        super().__init__()
        self.hidden = hidden
        self.embedding = nn.Embedding(words, hidden)
        self.cells = nn.ModuleList(LSTMCell(hidden, hidden) for _ in range(layers))
        self.dropout = nn.Dropout(dropout)
        self.decoder = nn.Linear(hidden, words)

    def start(self, batch):
        zeros = torch.zeros(batch, self.hidden)
        return [(zeros, zeros) for _ in self.cells]

    def read(self, tokens, states):
        """What the last layer says after each word, and all states after the last one."""
        states = list(states)
        outputs = []
        for x in self.dropout(self.embedding(tokens)):
            for layer, cell in enumerate(self.cells):
                states[layer] = cell(x, states[layer])
                x = states[layer][0]
            outputs.append(x)
        return self.dropout(torch.stack(outputs)), states

    def forward(self, tokens, states):
        outputs, states = self.read(tokens, states)
        return self.decoder(outputs), states


def train_step(model, optimizer, tokens, targets, states):
    scores, states = model(tokens, states)
    loss = F.cross_entropy(scores.flatten(0, 1), targets.flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    return loss, [(hidden.detach(), cell.detach()) for hidden, cell in states]


def load_words(path, limit):
    """The words of a text as numbers; the rarest share the last one."""
    text = path.read_text() if path else "\n".join(topics.values())
    words = re.findall(r"\w+|[^\w\s]", text)
    frequent = [word for word, _ in collections.Counter(words).most_common(limit - 1)]
    number = {word: index for index, word in enumerate(frequent)}
    return torch.tensor([number.get(word, limit - 1) for word in words])


def in_columns(numbers, batch):
    """The text cut into so many columns, side by side."""
    rows = len(numbers) // batch
    return numbers[: rows * batch].view(batch, rows).t().contiguous()


def window(text, length, step):
    """What a step reads: so many words, the words behind them, and whether the text begins there."""
    start = step % ((len(text) - 1) // length) * length
    return text[start : start + length], text[start + 1 : start + length + 1], start == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, help="default: Python's own documentation")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--words", type=int, default=10_000)
    parser.add_argument("--hidden", type=int, default=200)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=20)
    parser.add_argument("--length", type=int, default=20)
    parser.add_argument("--dropout", type=float, default=0.2)
    parser.add_argument("--every", type=int, default=20, help="print the loss every so many steps")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    numbers = load_words(options.text, options.words)
    text = in_columns(numbers, options.batch)

    model = LanguageModel(options.words, options.hidden, options.layers, options.dropout)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    total = 0.0
    for step in range(options.steps):
        tokens, targets, begins = window(text, options.length, step)
        if begins:
            states = model.start(options.batch)
        loss, states = train_step(model, optimizer, tokens, targets, states)
        total += loss.item()
        if step % options.every == options.every - 1:
            mean = total / options.every
            print(f"step {step + 1}  loss {mean:.4f}  perplexity {math.exp(mean):.2f}")
            total = 0.0


if __name__ == "__main__":
    main()
