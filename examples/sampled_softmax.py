"""A language model with a bigger LSTM whose softmax sees a sample of the words, drawn anew in each step.

python examples/sampled_softmax.py                          eagerly
torchjanus run examples/sampled_softmax.py                  as speculative graphs

Of a large vocabulary the exact softmax is most of a step. Here each step compares the words that came with
the same few others, drawn uniformly, whose scores stand for all words (Jean et al., "On Using Very Large
Target Vocabulary for Neural Machine Translation", 2015).
"""

import argparse
import math
from pathlib import Path

import lstm_language_model
import torch.nn.functional as F

import torch
from torch import nn


def sampled_loss(decoder, outputs, targets, count):
    """The cross entropy of the targets against so many other words."""
    words = decoder.weight.shape[0]
    others = torch.randint(0, words, (count,))
    wanted = (outputs * decoder.weight[targets]).sum(1) + decoder.bias[targets]
    scores = F.linear(outputs, decoder.weight[others], decoder.bias[others])
    scores = scores + math.log(words / count)  # each stands for so many words
    scores = scores.masked_fill(others == targets.unsqueeze(1), -1e9)
    scores = torch.cat([wanted.unsqueeze(1), scores], dim=1)
    return F.cross_entropy(scores, torch.zeros_like(targets))


def train_step(model, optimizer, tokens, targets, states, count):
    outputs, states = model.read(tokens, states)
    loss = sampled_loss(model.decoder, outputs.flatten(0, 1), targets.flatten(), count)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    return loss, [(hidden.detach(), cell.detach()) for hidden, cell in states]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, help="default: Python's own documentation")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--words", type=int, default=10_000)
    parser.add_argument("--sample", type=int, default=500, help="words that a step compares with")
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--batch", type=int, default=20)
    parser.add_argument("--length", type=int, default=20)
    parser.add_argument("--every", type=int, default=20, help="print the loss every so many steps")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    numbers = lstm_language_model.load_words(options.text, options.words)
    text = lstm_language_model.in_columns(numbers, options.batch)
    model = lstm_language_model.LanguageModel(options.words, options.hidden, 1, 0.2)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    total = 0.0
    for step in range(options.steps):
        tokens, targets, begins = lstm_language_model.window(text, options.length, step)
        if begins:
            states = model.start(options.batch)
        loss, states = train_step(model, optimizer, tokens, targets, states, options.sample)
        total += loss.item()
        if step % options.every == options.every - 1:
            print(f"step {step + 1}  sampled loss {total / options.every:.4f}")
            total = 0.0


if __name__ == "__main__":
    main()
