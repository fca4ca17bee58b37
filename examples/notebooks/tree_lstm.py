# %% [markdown]
# # Tree-LSTM
#
# A recursive model over binary trees, each of another shape. Eager PyTorch calls small operators node by node. As a
# graph, the recursion is one function of the graph, and nodes that don't depend on each other are computed together.

# %%
import random

import torch.nn.functional as F

import torch
import torchjanus
from torch import nn

# %load_ext torchjanus
torch.manual_seed(0)
random.seed(0)
WORDS, HIDDEN = 40, 32


# %% [markdown]
# Made-up sentences: half of the words are good, half are bad. A tree's label says which of them it has more of.


# %%
class Leaf:
    def __init__(self, word):
        self.word, self.value = word, 1 if word % 2 else -1
        self.label = int(self.value > 0)


class Branch:
    def __init__(self, left, right):
        self.word, self.left, self.right = None, left, right
        self.value = left.value + right.value
        self.label = int(self.value > 0)


def make_tree(words):
    if len(words) == 1:
        return Leaf(words[0])
    middle = random.randint(1, len(words) - 1)
    return Branch(make_tree(words[:middle]), make_tree(words[middle:]))


def sentence():
    return [random.randrange(WORDS) for _ in range(random.randint(3, 12))]


trees = [make_tree(sentence()) for _ in range(200)]


class TreeLSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, HIDDEN)
        self.from_word = nn.Linear(HIDDEN, 3 * HIDDEN)
        self.from_left = nn.Linear(HIDDEN, 5 * HIDDEN)
        self.from_right = nn.Linear(HIDDEN, 5 * HIDDEN, bias=False)
        self.classify = nn.Linear(HIDDEN, 2)
        self.losses = []

    def leaf(self, word):
        enter, leave, candidate = self.from_word(self.embedding.weight[word]).chunk(3)
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


model = TreeLSTM()
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)

# %% [markdown]
# Training, four trees for one update: the recursion, the backward pass and the update.


# %%
# %%torchjanus
@torchjanus.function
def train_step(batch):
    model.losses = []
    for tree in batch:
        model(tree)
    loss = torch.stack(model.losses).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


total = 0.0
for step in range(200):
    total += train_step(trees[4 * step % len(trees) :][:4])
    if step % 50 == 49:
        print(f"step {step + 1}  loss of a node {total / 50:.4f}")
        total = 0.0

# %% [markdown]
# How often is the label of a new tree found?

# %%
with torch.no_grad():
    new = [make_tree(sentence()) for _ in range(40)]
    right = sum(int(model.classify(model(tree)[0]).argmax()) == tree.label for tree in new)
print(f"{right} of {len(new)} right")

# %% [markdown]
# A function shows itself as the last line of a cell.

# %%
train_step
