"""BERT that tells which of two made sentences is the friendlier one, with a learning rate that warms up and falls.

The step materialises tensors in the middle: the loss decides whether an outlier is left out, and the norm of the
gradients whether they are clipped. What is learned of both is kept in a Python object.

python examples/terra/bert_classification.py                      eagerly
torchjanus run examples/terra/bert_classification.py              as speculative graphs
"""

import random

import common
import torch.nn.functional as F

import torch
from torch import nn

START, SEPARATOR, FIRST_WORD = 1, 2, 3


class Classifier(nn.Module):
    def __init__(self, words, width, layers, heads, longest, dropout):
        super().__init__()
        self.bert = common.Bert(words, width, layers, heads, longest, dropout)
        self.pool = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)
        self.classify = nn.Linear(width, 2)

    def forward(self, text, segments):
        x = self.bert(text, segments)[:, 0]
        return self.classify(self.dropout(torch.tanh(self.pool(x))))


class Watch:
    """The running mean of the loss, and how often a step was left out or its gradients clipped."""

    def __init__(self):
        self.mean = None
        self.outliers, self.clipped, self.right, self.seen = 0, 0, 0, 0

    def is_outlier(self, loss):
        mean = loss if self.mean is None else self.mean
        self.mean = 0.9 * mean + 0.1 * loss
        if loss > 1.5 * mean:
            self.outliers += 1
            return True
        return False


def gradient_norm(model):
    total = 0.0
    for parameter in model.parameters():
        if parameter.grad is not None:
            total += parameter.grad.norm().item() ** 2
    return total**0.5


def train_step(model, optimizer, schedule, watch, text, segments, kinds, limit=1.0):
    scores = model(text, segments)
    loss = F.cross_entropy(scores, kinds)
    watch.right += (scores.argmax(1) == kinds).sum().item()
    watch.seen += len(kinds)
    if watch.is_outlier(loss.item()):
        return loss
    optimizer.zero_grad()
    loss.backward()
    norm = gradient_norm(model)
    if norm > limit:
        watch.clipped += 1
        for parameter in model.parameters():
            parameter.grad.mul_(limit / norm)
    optimizer.step()
    schedule.step()
    return loss


def make_batch(batch, words, longest):
    """Pairs of sentences, and which has more of the upper half of all words: these are the friendly ones."""
    rows, segments, kinds = [], [], []
    for _ in range(batch):
        half = random.randint(longest // 4, longest // 2 - 2)
        first, second = ([random.randrange(FIRST_WORD, words) for _ in range(half)] for _ in "12")
        friendly = [sum(word >= words // 2 for word in sentence) for sentence in (first, second)]
        row = [START, *first, SEPARATOR, *second]
        padding = longest - len(row)
        rows.append(row + [0] * padding)
        segments.append([0] * (half + 2) + [1] * half + [0] * padding)
        kinds.append(int(friendly[1] > friendly[0]))
    return torch.tensor(rows), torch.tensor(segments), torch.tensor(kinds)


def make_models(words, width, layers, heads, longest, dropout):
    return (Classifier(words, width, layers, heads, longest, dropout),)


def main(steps=120, seed=0, every=15, batch=16, width=96, layers=4, heads=4, words=60, longest=40):
    common.seed_all(seed)
    (model,) = make_models(words, width, layers, heads, longest, 0.1)
    model.apply(common.start_weights)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / 10, max(0.0, 1 - step / steps))
    )
    watch = Watch()
    for step in common.timed(steps):
        text, segments, kinds = make_batch(batch, words, longest)
        loss = train_step(model, optimizer, schedule, watch, text, segments, kinds)
        if step % every == every - 1:
            print(
                f"step {step + 1}  loss {loss.item():.4f}  accuracy {watch.right / watch.seen:.3f}"
                f"  clipped {watch.clipped}  left out {watch.outliers}"
            )


if __name__ == "__main__":
    common.call(main, __doc__)
