# %% [markdown]
# # Beam search
#
# A small recurrent model learns to count, then a beam search writes texts with it. Hypotheses live in Python lists, and
# how many there are changes while the search runs. `%load_ext torchjanus` lets loops of the cells below it run as
# graphs. `%%torchjanus` shows under a cell what became of each line.

# %%
import torch.nn.functional as F

import torch
import torchjanus
from torch import nn

# %load_ext torchjanus
torch.manual_seed(0)
END, WORDS, HIDDEN = 0, 24, 48


# %% [markdown]
# The model and the data: counting upwards in steps of one or two, then the end.


# %%
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, HIDDEN)
        self.cell = nn.GRUCell(HIDDEN, HIDDEN)
        self.decoder = nn.Linear(HIDDEN, WORDS)

    def forward(self, tokens, state):
        state = self.cell(self.embedding(tokens), state)
        return F.log_softmax(self.decoder(state), dim=1), state


def make_texts(count, length):
    start = torch.randint(1, WORDS // 2, (count, 1))
    step = torch.randint(1, 3, (count, 1))
    texts = start + step * torch.arange(length)
    return torch.where(texts < WORDS, texts, END)


model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

# %% [markdown]
# Training. The inner loop over positions is unrolled; forward pass, backward pass and update are one graph. A click on
# a line with a triangle says more.

# %%
# %%torchjanus
for step in range(120):
    texts = make_texts(32, 10)
    state = torch.zeros(len(texts), HIDDEN)
    loss = torch.zeros(())
    for position in range(texts.shape[1] - 1):
        scores, state = model(texts[:, position], state)
        loss = loss + F.nll_loss(scores, texts[:, position + 1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 40 == 39:
        print(f"step {step + 1}  loss {loss.item() / (texts.shape[1] - 1):.4f}")

# %% [markdown]
# The search. What it does with lists is Python's work; the model's part is a graph for each number of hypotheses.


# %%
# %%torchjanus
@torchjanus.function
def scores_of(tokens, totals, state):
    scores, state = model(tokens, state)
    sums = scores + totals.unsqueeze(1)
    best = sums.flatten().topk(min(6, sums.numel()))
    return best.values, best.indices, state


def search(first, width=3, longest=24):
    beams, state, finished = [(0.0, [first])], torch.zeros(1, HIDDEN), []
    for _ in range(longest):
        tokens = torch.tensor([words[-1] for _, words in beams])
        totals = torch.tensor([score for score, _ in beams])
        values, indices, state = scores_of(tokens, totals, state)
        chosen, kept = [], []
        for score, index in zip(values.tolist(), indices.tolist(), strict=True):
            row, word = divmod(index, WORDS)
            words = [*beams[row][1], word]
            if word == END:
                finished.append((score / len(words), words))
            elif len(chosen) < width:
                chosen.append((score, words))
                kept.append(row)
        if not chosen or len(finished) >= width:
            break
        beams, state = chosen, state[torch.tensor(kept)]
    return max(finished, default=(0.0, []))


with torch.no_grad():
    for first in range(1, 13):
        score, words = search(first)
        print(f"from {first:2}: {score:.3f} {words}")

# %% [markdown]
# A function, or what `explain` gives, shows itself as the last line of a cell.

# %%
torchjanus.explain(scores_of)
