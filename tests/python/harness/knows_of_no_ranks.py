"""Programs that know nothing of processes, one after the other: python knows_of_no_ranks.py FOLDER [PROGRAM …]

After each step a program writes down its parameters. What it computes does not depend on how a batch is divided.
"""

import os
import pickle
import sys

import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

import torch
from torch import nn

WRITTEN = []
EXAMPLES, ROWS = 48, 6


def examples(*shapes):
    return TensorDataset(*(torch.randn(EXAMPLES, *shape) for shape in shapes))


def shuffled(data):
    return DataLoader(data, batch_size=ROWS, shuffle=True)


def write_down(*modules):
    tensors = [each for module in modules for each in module.parameters()]
    WRITTEN[-1].append([each.detach().numpy().copy() for each in tensors])


def lenet():
    data = TensorDataset(torch.randn(EXAMPLES, 1, 8, 8), torch.randint(5, (EXAMPLES,)))
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(36, 5)
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)
    for epoch in range(3):
        for x, y in shuffled(data):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            write_down(net)


def gan():
    data = examples((6,), (4,))
    make = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.1), nn.Linear(8, 6))
    judge = nn.Sequential(nn.Linear(6, 8), nn.LeakyReLU(0.1), nn.Linear(8, 1))
    of_judge = torch.optim.Adam(judge.parameters(), lr=0.01)
    of_make = torch.optim.Adam(make.parameters(), lr=0.01)
    for epoch in range(3):
        for real, noise in shuffled(data):
            of_judge.zero_grad()
            fake = make(noise)
            wrong = F.softplus(judge(torch.cat([fake, -real]))).mean()
            wrong.backward(retain_graph=True)
            of_judge.step()
            of_make.zero_grad()
            fooled = F.softplus(-judge(make(noise))).mean()
            fooled.backward()
            of_make.step()
            write_down(make, judge)


def clipped():
    data = examples((5,), (3,))
    net = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3))
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    for epoch in range(3):
        for x, y in shuffled(data):
            optimizer.zero_grad()
            F.mse_loss(net(x), y).backward()
            nn.utils.clip_grad_norm_(net.parameters(), 0.05)
            optimizer.step()
            write_down(net)


def accumulated():
    data = examples((5,), (3,))
    net = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(3):
        for number, (x, y) in enumerate(shuffled(data)):
            loss = F.mse_loss(net(x), y) / 2
            loss.backward()
            if number % 2:
                optimizer.step()
                optimizer.zero_grad()
                write_down(net)


class Sides(nn.Module):
    """A row takes the side that its first number says; in some steps only one rank has rows of a side, or none has."""

    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Linear(5, 3), nn.Linear(5, 3)

    def loss(self, x, y):
        loss = 0.0
        for side, rows in (
            (self.one, x[:, 0] > -0.7),
            (self.other, x[:, 0] <= -0.7),
        ):
            if rows.any():
                loss = loss + F.mse_loss(side(x[rows]), y[rows], reduction="sum") / len(x)
        return loss


def sides():
    data = examples((5,), (3,))
    net = Sides()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=0.1)
    for epoch in range(4):
        for x, y in shuffled(data):
            optimizer.zero_grad()
            loss = net.loss(x, y)
            loss.backward()
            optimizer.step()
            write_down(net)


def sparse_sides():
    """Some ranks have no sparse gradient in a step, and those whose rows take another side a dense one."""
    data = examples((5,), (3,))
    word, tied = nn.Embedding(9, 3, sparse=True), nn.Embedding(3, 5, sparse=True)
    last = nn.Linear(3, 3)
    optimizer = torch.optim.SGD([*word.parameters(), *tied.parameters(), *last.parameters()], 0.05)
    for epoch in range(2):
        for x, y in shuffled(data):
            optimizer.zero_grad()
            loss = F.mse_loss(last(y), y)
            for side, rows in enumerate((x[:, 0] > 0.7, x[:, 1] > 0.7, x[:, 2] > 0.7)):
                if rows.any():
                    found = x[rows]
                    numbers = found[:, 3].abs().mul(3).long()
                    if side == 0:
                        made = word(numbers.clamp(max=8))
                    elif side == 1:
                        made = tied(numbers.clamp(max=2))[:, :3]
                    else:
                        made = F.linear(found, tied.weight)
                    loss = loss + (made - y[rows]).square().sum() / len(x)
            loss.backward()
            optimizer.step()
            write_down(word, tied, last)


def checkpointed():
    """backward() calls itself while it runs."""
    data = examples((5,), (3,))
    first, second, third = nn.Linear(5, 4), nn.Linear(4, 4), nn.Linear(4, 3)
    optimizer = torch.optim.SGD(
        [*first.parameters(), *second.parameters(), *third.parameters()], lr=0.1
    )
    for epoch in range(2):
        for x, y in shuffled(data):
            optimizer.zero_grad()
            made = checkpoint(lambda x: torch.tanh(second(x)), first(x), use_reentrant=True)
            F.mse_loss(third(second(made)), y).backward()
            optimizer.step()
            write_down(first, second, third)


def by_hand():
    """No backward(): the program sets gradients itself."""
    data = examples((5,), (3,))
    net = nn.Linear(5, 3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for x, y in shuffled(data):
            gradients = torch.autograd.grad(F.mse_loss(net(x), y), list(net.parameters()))
            for parameter, gradient in zip(net.parameters(), gradients):
                parameter.grad = gradient
            optimizer.step()
            write_down(net)


def late():
    """Parameters that are added later, that two optimizers have, and that are written to once they are shared."""
    data = examples((5,), (3,))
    first, second = nn.Linear(5, 4), nn.Linear(4, 3)
    second.requires_grad_(False)
    optimizer = torch.optim.SGD(first.parameters(), lr=0.05)
    another = torch.optim.SGD(first.parameters(), lr=0.01, momentum=0.5)
    nn.init.normal_(first.weight)
    for epoch in range(3):
        for x, y in shuffled(data):
            optimizer.zero_grad()
            F.mse_loss(second(torch.tanh(first(x))), y).backward()
            optimizer.step()
            another.step()
            write_down(first, second)
        if epoch == 0:
            second.requires_grad_(True)
            optimizer.add_param_group({"params": second.parameters(), "lr": 0.02})


def sparse():
    data = TensorDataset(torch.randint(9, (EXAMPLES, 2)), torch.randn(EXAMPLES, 3))
    net = nn.Embedding(9, 3, sparse=True)
    optimizer = torch.optim.SparseAdam(net.parameters(), lr=0.01)
    for epoch in range(2):
        for words, y in shuffled(data):
            optimizer.zero_grad()
            F.mse_loss(net(words).sum(1), y).backward()
            optimizer.step()
            write_down(net)


def second_order():
    """An optimizer that decides by the loss how often it calls backward()."""
    data = examples((5,), (3,))
    net = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3))
    optimizer = torch.optim.LBFGS(
        net.parameters(), lr=0.5, max_iter=4, line_search_fn="strong_wolfe"
    )
    for x, y in shuffled(data):

        def closure():
            optimizer.zero_grad()
            loss = F.mse_loss(net(x), y)
            loss.backward()
            return loss

        optimizer.step(closure)
        write_down(net)


def lazily():
    """The optimizer has parameters before they have a shape."""
    data = examples((5,), (3,))
    net = nn.Sequential(nn.LazyLinear(4), nn.Tanh(), nn.LazyLinear(3))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in shuffled(data):
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        optimizer.step()
        write_down(net)


def within_backward():
    """Each parameter has an optimizer, which takes its gradient away while others are computed."""
    data = examples((5,), (3,))
    net = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3))
    optimizers = {each: torch.optim.Adam([each], lr=0.01) for each in net.parameters()}

    def update(parameter):
        optimizers[parameter].step()
        parameter.grad = None

    for each in net.parameters():
        each.register_post_accumulate_grad_hook(update)
    for epoch in range(2):
        for x, y in shuffled(data):
            F.mse_loss(net(x), y).backward()
            assert all(each.grad is None for each in net.parameters())
            write_down(net)


PROGRAMS = [
    lenet,
    gan,
    clipped,
    accumulated,
    sides,
    sparse_sides,
    checkpointed,
    by_hand,
    late,
    sparse,
    second_order,
    lazily,
    within_backward,
]


def main():
    folder, *names = sys.argv[1:]
    torch.set_default_dtype(torch.float64)
    for program in PROGRAMS:
        if not names or program.__name__ in names:
            torch.manual_seed(3)
            WRITTEN.append([])
            program()
            print(program.__name__, len(WRITTEN[-1]))
    with open(f"{folder}/{os.environ.get('RANK', 'alone')}.pickle", "wb") as file:
        pickle.dump(WRITTEN, file)
    torch.save(WRITTEN[0][0], f"{folder}/saved.by{os.environ.get('RANK', '')}")


if __name__ == "__main__":
    main()
