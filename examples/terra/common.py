"""What the ten programs share: command line, seeds, the clock of their steps, transformer blocks."""

import argparse
import inspect
import json
import math
import os
import random
import time
from pathlib import Path

import numpy as np
import torch.nn.functional as F

import torch
from torch import nn


def call(main, description):
    """Calls a program's main function: every parameter is an option of the type of its default."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    for name, parameter in inspect.signature(main).parameters.items():
        default = parameter.default
        parser.add_argument(f"--{name}", type=type(default), default=default, metavar="N")
    main(**vars(parser.parse_args()))


def seed_all(seed):
    torch.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)


def timed(steps):
    """The numbers of the steps. STEP_TIMES names a file for the beginning and end of each, by the monotonic clock."""
    times = []
    for step in range(steps):
        start = time.monotonic()
        yield step
        times.append((start, time.monotonic()))
    if path := os.environ.get("STEP_TIMES"):
        Path(path).write_text(json.dumps(times))


class Attention(nn.Module):
    """Attention of several heads; `hidden` is true where a query must not look."""

    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads = heads
        self.query_key_value = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)

    def split(self, x):
        batch, length, width = x.shape
        return x.view(batch, length, self.heads, width // self.heads).transpose(1, 2)

    def forward(self, x, hidden):
        query, key, value = map(self.split, self.query_key_value(x).chunk(3, dim=-1))
        scores = self.scores(query, key).masked_fill(hidden, float("-inf"))
        shares = self.dropout(F.softmax(scores, dim=-1))
        return self.out((shares @ value).transpose(1, 2).flatten(2))

    def scores(self, query, key):
        return query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])


class Block(nn.Module):
    """A layer of a transformer: norms come first as in GPT-2, or last as in BERT."""

    def __init__(self, attention, width, dropout, norm_first):
        super().__init__()
        self.attention = attention
        self.norm_first = norm_first
        self.norm1 = nn.LayerNorm(width)
        self.norm2 = nn.LayerNorm(width)
        self.network = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, hidden):
        if self.norm_first:
            x = x + self.dropout(self.attention(self.norm1(x), hidden))
            return x + self.dropout(self.network(self.norm2(x)))
        x = self.norm1(x + self.dropout(self.attention(x, hidden)))
        return self.norm2(x + self.dropout(self.network(x)))


def start_weights(module):
    """Small normal weights, as GPT and BERT start."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, 0.0, 0.02)
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.bias)


class Bert(nn.Module):
    """BERT's encoder: embeddings of words, positions and segments, then blocks. Word 0 is padding."""

    def __init__(self, words, width, layers, heads, longest, dropout):
        super().__init__()
        self.words = nn.Embedding(words, width, padding_idx=0)
        self.positions = nn.Embedding(longest, width)
        self.segments = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(
            Block(Attention(width, heads, dropout), width, dropout, norm_first=False)
            for _ in range(layers)
        )

    def forward(self, text, segments):
        positions = torch.arange(text.shape[1])
        x = self.words(text) + self.positions(positions) + self.segments(segments)
        x = self.dropout(self.norm(x))
        hidden = (text == 0)[:, None, None, :]
        for block in self.blocks:
            x = block(x, hidden)
        return x
