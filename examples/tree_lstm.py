"""A binary tree-LSTM: each subtree has a state and a memory; each child its own forget gate.

python examples/tree_lstm.py                                 syntax trees of Python's standard library
python examples/tree_lstm.py --sst FILE                      the Stanford Sentiment Treebank
torchjanus run examples/tree_lstm.py                         as speculative graphs
"""

import argparse
from pathlib import Path

import torch.nn.functional as F
import trees

import torch
from torch import nn


class TreeLSTM(nn.Module):
    def __init__(self, words, hidden, classes):
        super().__init__()
        self.embedding = nn.Embedding(words, hidden)
        self.from_word = nn.Linear(hidden, 3 * hidden)
        self.from_left = nn.Linear(hidden, 5 * hidden)
        self.from_right = nn.Linear(hidden, 5 * hidden, bias=False)
        self.classify = nn.Linear(hidden, classes)
        self.losses = []

    def leaf(self, word):
        gates = self.from_word(self.embedding.weight[word])
        enter, leave, candidate = gates.chunk(3)
        cell = torch.sigmoid(enter) * torch.tanh(candidate)
        return torch.sigmoid(leave) * torch.tanh(cell), cell

    def branch(self, left, right):
        gates = self.from_left(left[0]) + self.from_right(right[0])
        enter, leave, candidate, keep_left, keep_right = gates.chunk(5)
        cell = torch.sigmoid(enter) * torch.tanh(candidate)
        cell = cell + torch.sigmoid(keep_left) * left[1] + torch.sigmoid(keep_right) * right[1]
        return torch.sigmoid(leave) * torch.tanh(cell), cell

    def forward(self, node):
        if node.word is not None:
            state = self.leaf(node.word)
        else:
            state = self.branch(self.forward(node.left), self.forward(node.right))
        scores = self.classify(state[0])
        self.losses.append(F.cross_entropy(scores.unsqueeze(0), torch.tensor([node.label])))
        return state


def train_step(model, optimizer, batch):
    model.losses = []
    for tree in batch:
        model(tree)
    loss = torch.stack(model.losses).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sst", type=Path, help="a file of the Stanford Sentiment Treebank")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=4, help="trees for one update")
    parser.add_argument("--hidden", type=int, default=100)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--every", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    examples, words = trees.load(options.sst, limit=2000)
    model = TreeLSTM(words, options.hidden, trees.CLASSES)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=options.lr)
    total = 0.0
    for step in range(options.steps):
        loss = train_step(model, optimizer, trees.batch_of(examples, step, options.batch))
        total += loss.item()
        if step % options.every == options.every - 1:
            print(f"step {step + 1}  loss per node {total / options.every:.4f}")
            total = 0.0


if __name__ == "__main__":
    main()
