"""What trained models are judged by, with data that they have not seen."""

import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch.nn.functional as F
import trees

import torch
from torch import nn

MOST_TREES = 2000


def distance_of_made(painter: nn.Module, pictures: torch.Tensor, noise: int) -> Callable:
    """The sliced Wasserstein distance: over random directions, how far the sorted pictures lie apart."""
    generator = torch.Generator().manual_seed(1)
    directions = F.normalize(torch.randn(pictures.shape[1], 64, generator=generator), dim=0)
    wanted = (pictures @ directions).sort(0).values
    drawn = torch.randn(len(pictures), noise, generator=generator)

    @torch.no_grad()
    def look() -> float:
        made = (painter(drawn) @ directions).sort(0).values
        return (made - wanted).abs().mean().item()

    return look


def divided_trees(sst: Path | None) -> tuple[list, list, int]:
    """Trees to learn from, trees that are held out, and the size of their vocabulary."""
    if sst is None:
        examples, words = trees.load(None, MOST_TREES, least_words=4)
        chosen = [examples[i::5] for i in range(5)]
        return [tree for part in chosen[1:] for tree in part], chosen[0][:300], words
    learnt = shuffled(sst / "sst.train.txt")[:MOST_TREES]
    held_out = shuffled(sst / "sst.dev.txt")[:300]
    numbers: dict[str, int] = {}
    for tree in (*learnt, *held_out):
        for leaf in trees.leaves(tree):
            leaf.word = numbers.setdefault(leaf.word, len(numbers))
    return learnt, held_out, len(numbers)


def shuffled(file: Path) -> list:
    """In the treebank's files the positive trees come first."""
    found = [*trees.read_sst(file)]
    random.Random(0).shuffle(found)
    return found


def share_of_right_roots(model: nn.Module, held_out: list, is_signed: bool) -> Callable:
    """Of the roots that are named rightly. Signed labels: only whether they are above the middle."""

    @torch.no_grad()
    def look() -> float:
        right = []
        for tree in held_out:
            scores = model.classify(state_of(model(tree)))
            if not is_signed:
                right.append(scores.argmax().item() == tree.label)
            elif tree.label != 2:
                chances = scores.softmax(0)
                right.append((chances[3:].sum() > chances[:2].sum()).item() == (tree.label > 2))
        return sum(right) / len(right)

    return look


def state_of(result: Any) -> torch.Tensor:
    """Models of trees give the state first: with the loss, or with the memory."""
    state, _ = result
    return state


def perplexity(model: nn.Module, text: torch.Tensor) -> Callable:
    @torch.no_grad()
    def look() -> float:
        model.eval()
        scores, _ = model(text[:-1], model.start(text.shape[1]))
        loss = F.cross_entropy(scores.flatten(0, 1), text[1:].flatten())
        model.train()
        return math.exp(loss.item())

    return look


def mean_of_last(lengths: Sequence[int], count: int) -> Callable:
    """Of the last episodes; the one that is being played is not at its end."""
    return lambda: sum(lengths[-count - 1 : -1]) / max(1, len(lengths[-count - 1 : -1]))
