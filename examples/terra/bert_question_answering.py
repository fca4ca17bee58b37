"""BERT that finds the answer to a question in a passage, as in SQuAD, on made text.

NumPy picks the best valid span of every passage in the middle of the step, and Python counts exact matches and the
overlap of words. So the step has third-party calls and materialised tensors between loss and backward pass.

python examples/terra/bert_question_answering.py                      eagerly
torchjanus run examples/terra/bert_question_answering.py              as speculative graphs
"""

from collections import Counter

import common
import numpy as np
import torch.nn.functional as F

import torch
from torch import nn

START, SEPARATOR, FULL_STOP, FIRST_WORD = 1, 2, 3, 4


class QuestionAnswering(nn.Module):
    def __init__(self, words, width, layers, heads, longest, dropout):
        super().__init__()
        self.bert = common.Bert(words, width, layers, heads, longest, dropout)
        self.ends = nn.Linear(width, 2)

    def forward(self, text, segments):
        first, last = self.ends(self.bert(text, segments)).unbind(-1)
        outside = segments == 0
        return first.masked_fill(outside, -1e4), last.masked_fill(outside, -1e4)


def best_spans(first, last, longest=5, candidates=8):
    """For each passage the likeliest first and last word that are not the wrong way round."""
    spans = []
    for one_first, one_last in zip(first, last, strict=True):
        starts = np.argsort(-one_first, kind="stable")[:candidates]
        ends = np.argsort(-one_last, kind="stable")[:candidates]
        scores = one_first[starts][:, None] + one_last[ends][None, :]
        lengths = ends[None, :] - starts[:, None]
        scores = np.where((lengths >= 0) & (lengths < longest), scores, -np.inf)
        row, column = np.unravel_index(np.argmax(scores), scores.shape)
        spans.append((int(starts[row]), int(ends[column])))
    return spans


class Scores:
    """Exact matches and overlap since the last report."""

    def __init__(self):
        self.answers, self.exact, self.overlap = 0, 0, 0.0

    def update(self, words, expected):
        self.answers += 1
        self.exact += words == expected
        common_words = sum((Counter(words) & Counter(expected)).values())
        self.overlap += 2 * common_words / max(1, len(words) + len(expected))

    def report(self):
        text = f"exact {self.exact / self.answers:.3f}  F1 {self.overlap / self.answers:.3f}"
        self.__init__()
        return text


def train_step(model, optimizer, scores, text, segments, answers):
    first, last = model(text, segments)
    loss = (F.cross_entropy(first, answers[:, 0]) + F.cross_entropy(last, answers[:, 1])) / 2
    spans = best_spans(first.detach().numpy(), last.detach().numpy())
    for words, (start, end), expected in zip(text.tolist(), spans, answers.tolist(), strict=True):
        scores.update(words[start : end + 1], words[expected[0] : expected[1] + 1])
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss


def make_batch(batch, words, longest):
    """Questions of one word. The answer begins with that word in the passage and ends with a full stop."""
    text = np.zeros((batch, longest), dtype=np.int64)
    segments, answers = np.zeros_like(text), np.zeros((batch, 2), dtype=np.int64)
    for row in range(batch):
        length = np.random.randint(longest // 2, longest - 2)
        passage = np.random.randint(FIRST_WORD + 8, words, length - 3)
        asked = np.random.randint(FIRST_WORD, FIRST_WORD + 8)
        place, count = np.random.randint(0, len(passage) - 6), np.random.randint(1, 5)
        passage[place], passage[place + count] = asked, FULL_STOP
        text[row, :length] = [START, asked, SEPARATOR, *passage]
        segments[row, 3:length] = 1
        answers[row] = 3 + place, 3 + place + count
    return map(torch.from_numpy, (text, segments, answers))


def make_models(words, width, layers, heads, longest, dropout):
    return (QuestionAnswering(words, width, layers, heads, longest, dropout),)


def main(steps=120, seed=0, every=15, batch=8, width=96, layers=4, heads=4, words=200, longest=64):
    common.seed_all(seed)
    (model,) = make_models(words, width, layers, heads, longest, 0.1)
    model.apply(common.start_weights)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scores = Scores()
    for step in common.timed(steps):
        text, segments, answers = make_batch(batch, words, longest)
        loss = train_step(model, optimizer, scores, text, segments, answers)
        if step % every == every - 1:
            print(f"step {step + 1}  loss {loss.item():.4f}  {scores.report()}")


if __name__ == "__main__":
    common.call(main, __doc__)
