"""Counts of words, which are known when the graph is made."""

from collections import Counter, defaultdict

import torch

words = ["a", "b", "a", "c"]


def step(x):
    groups = defaultdict(list)
    for i, word in enumerate(words):
        groups[word].append(x[i])
    counts = Counter(words)
    return {word: sum(rows) / counts[word] for word, rows in groups.items()}


CALLS = [(torch.randn(4, 2),) for _ in range(5)]
