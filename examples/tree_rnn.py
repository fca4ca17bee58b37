"""A recursive network over trees: what a phrase says is computed from what its two parts say.

python examples/tree_rnn.py                                  syntax trees of Python's standard library
python examples/tree_rnn.py --sst FILE                       the Stanford Sentiment Treebank
torchjanus run examples/tree_rnn.py                          as speculative graphs
"""

import argparse
from pathlib import Path

import torch.nn.functional as F
import trees

import torch
from torch import nn


class TreeRNN(nn.Module):
    def __init__(self, words, hidden, classes):
        super().__init__()
        self.embedding = nn.Embedding(words, hidden)
        self.combine = nn.Linear(2 * hidden, hidden)
        self.classify = nn.Linear(hidden, classes)

    def forward(self, node):
        """The state of a subtree, and the loss of all its labels."""
        if isinstance(node, trees.Leaf):
            state = self.embedding.weight[node.word]
            return state, self.loss(state, node.label)
        left, left_loss = self(node.left)
        right, right_loss = self(node.right)
        state = torch.tanh(self.combine(torch.cat([left, right])))
        return state, left_loss + right_loss + self.loss(state, node.label)

    def loss(self, state, label):
        return -F.log_softmax(self.classify(state), dim=0)[label]


def train_step(model, optimizer, batch):
    """One update from a batch of trees: their loss, and how many roots were named rightly."""
    total, right = 0.0, 0
    for tree in batch:
        state, loss = model(tree)
        total = total + loss
        right = right + (model.classify(state).argmax() == tree.label)
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    return total, right


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sst", type=Path, help="a file of the Stanford Sentiment Treebank")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--batch", type=int, default=1, help="trees for one update")
    parser.add_argument("--hidden", type=int, default=100)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--every", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    examples, words = trees.load(options.sst, limit=2000)
    model = TreeRNN(words, options.hidden, trees.CLASSES)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=options.lr)
    total, right, nodes = 0.0, 0, 0
    for step in range(options.steps):
        batch = trees.batch_of(examples, step, options.batch)
        loss, correct = train_step(model, optimizer, batch)
        total += loss.item()
        right += correct.item()
        nodes += sum(2 * len(trees.leaves(tree)) - 1 for tree in batch)
        if step % options.every == options.every - 1:
            accuracy = right / (options.every * options.batch)
            print(f"step {step + 1}  loss per node {total / nodes:.4f}  roots {accuracy:.3f}")
            total, right, nodes = 0.0, 0, 0


if __name__ == "__main__":
    main()
