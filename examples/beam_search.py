"""Beam search over a small recurrent model that has learnt to count: hypotheses live in Python lists.

python examples/beam_search.py                      eagerly
torchjanus run examples/beam_search.py              as speculative graphs
"""

import argparse

import torch.nn.functional as F

import torch
from torch import nn

END = 0


class Model(nn.Module):
    def __init__(self, words, hidden):
        super().__init__()
        self.embedding = nn.Embedding(words, hidden)
        self.cell = nn.GRUCell(hidden, hidden)
        self.decoder = nn.Linear(hidden, words)

    def forward(self, tokens, state):
        state = self.cell(self.embedding(tokens), state)
        return F.log_softmax(self.decoder(state), dim=1), state


def train_step(model, optimizer, texts, hidden):
    state = torch.zeros(len(texts), hidden)
    loss = torch.zeros(())
    for position in range(texts.shape[1] - 1):
        scores, state = model(texts[:, position], state)
        loss = loss + F.nll_loss(scores, texts[:, position + 1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss / (texts.shape[1] - 1)


def search(model, first, hidden, width, longest):
    """The best texts that begin with `first`: (logarithm of the probability, words)."""
    beams = [(0.0, [first])]
    state = torch.zeros(1, hidden)
    finished = []
    for _ in range(longest):
        tokens = torch.tensor([words[-1] for _, words in beams])
        scores, state = model(tokens, state)
        totals = scores + torch.tensor([score for score, _ in beams]).unsqueeze(1)
        best = totals.flatten().topk(min(2 * width, totals.numel()))
        chosen, kept = [], []
        for score, index in zip(best.values.tolist(), best.indices.tolist(), strict=True):
            row, word = divmod(index, scores.shape[1])
            words = [*beams[row][1], word]
            if word == END:
                finished.append((score / len(words), words))
            elif len(chosen) < width:
                chosen.append((score, words))
                kept.append(row)
        if not chosen or len(finished) >= width:
            break
        beams, state = chosen, state[torch.tensor(kept)]
    return sorted(finished, reverse=True)


def make_texts(count, length, words):
    """Counting upwards in steps of one or two, then the end."""
    start = torch.randint(1, words // 2, (count, 1))
    step = torch.randint(1, 3, (count, 1))
    texts = start + step * torch.arange(length)
    return torch.where(texts < words, texts, END)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200, help="steps of training")
    parser.add_argument("--searches", type=int, default=20)
    parser.add_argument("--words", type=int, default=40)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--width", type=int, default=4)
    parser.add_argument("--every", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    model = Model(options.words, options.hidden)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    for step in range(options.steps):
        texts = make_texts(32, 12, options.words)
        loss = train_step(model, optimizer, texts, options.hidden)
        if step % options.every == options.every - 1:
            print(f"step {step + 1}  loss {loss.item():.4f}")
    with torch.no_grad():
        for number in range(options.searches):
            first = number % (options.words - 1) + 1
            texts = search(model, first, options.hidden, options.width, options.words)
            found = f"{texts[0][0]:.3f} {texts[0][1]}" if texts else "nothing"
            print(f"from {first}: {found}")


if __name__ == "__main__":
    main()
