"""After some hundred calls the steps of the example programs make no further graph, whatever lengths,
iterations and branches come."""

import itertools
import random

import a3c
import adaptive_computation
import beam_search
import dropblock
import lstm_language_model
import ppo
import pytest
import stateful_model
import torch.nn.functional as F
import tree_lstm
import tree_rnn
import trees
import varying_length

import torch
import torchjanus


def texts():
    model = varying_length.TextClassifier(51, 8, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step(tokens, labels):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(tokens), labels)
        loss.backward()
        optimizer.step()
        return loss

    return step, lambda: varying_length.make_batch(4, random.randint(3, 40), 51, 3)


def thoughts():
    model = adaptive_computation.Thinker(8, 8)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step(x, y):
        return adaptive_computation.train_step(model, optimizer, x, y, 0.001)

    def call():
        bits = torch.randint(0, 2, (4, 8))
        return bits.float() * 2 - 1, bits.sum(1) % 2

    return step, call


def rollouts():
    model = a3c.ActorCritic(4, 8, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)

    def step(*given):
        return a3c.update(model, optimizer, *given, 0.99, 0.01)

    def call():
        length = random.randint(2, 30)
        actions = torch.randint(0, 2, (length,))
        return torch.randn(length, 4), actions, [1.0] * length, torch.rand(())

    return step, call


def counting():
    model = beam_search.Model(12, 8)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)

    def step(texts):
        return beam_search.train_step(model, optimizer, texts, 8)

    return step, lambda: (beam_search.make_texts(4, random.randint(3, 9), 12),)


def dropping():
    model = dropblock.Network(2, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    schedule = dropblock.Schedule([model.drop1, model.drop2], 0.2, 2000)

    def step(x, y):
        return dropblock.train_step(model, optimizer, schedule, x, y)

    return step, lambda: (torch.rand(2, 3, 32, 32), torch.randint(0, 2, (2,)))


def policies():
    model = ppo.ActorCritic(4, 8, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)

    def step(*given):
        return ppo.update(model, optimizer, *given, 0.2)

    def call():
        rows = random.randint(2, 40)
        actions, chances = torch.randint(0, 2, (rows,)), torch.full((rows,), -0.69)
        return torch.randn(rows, 4), actions, chances, torch.randn(rows), torch.randn(rows)

    return step, call


def words():
    model = lstm_language_model.LanguageModel(30, 8, 2, 0.2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    states = [(torch.zeros(3, 8), torch.zeros(3, 8)) for _ in range(2)]

    def step(tokens, targets):
        nonlocal states
        loss, states = lstm_language_model.train_step(model, optimizer, tokens, targets, states)
        return loss

    def call():
        length = random.randint(2, 12)
        return torch.randint(0, 30, (length, 3)), torch.randint(0, 30, (length, 3))

    return step, call


def every_tree(module, model_class, batch):
    examples, count = trees.load(None, limit=100, most_words=12)
    model = model_class(count, 8, trees.CLASSES)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
    return (
        lambda given: module.train_step(model, optimizer, given),
        lambda: (random.sample(examples, batch),),
    )


def nodes():
    return every_tree(tree_rnn, tree_rnn.TreeRNN, 1)


def gated_nodes():
    return every_tree(tree_lstm, tree_lstm.TreeLSTM, 5)


def memories():
    model = stateful_model.Tracker(4, 8)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    number = itertools.count()

    def step(x, target):
        return stateful_model.train_step(model, optimizer, x, target)

    return step, lambda: stateful_model.signal(next(number), 6, 4)


PROGRAMS = [
    texts, thoughts, rollouts, counting, dropping, policies, words, nodes, gated_nodes, memories,
]  # fmt: skip


@pytest.mark.parametrize("build", PROGRAMS)
def test_thousand_steps(build):
    torch.manual_seed(0)
    random.seed(0)
    step, call = build()
    converted = torchjanus.function(step)
    for _ in range(200):
        converted(*call())
    before = converted.stats()
    for _ in range(1000):
        converted(*call())
    after = converted.stats()
    assert after["generated"] == before["generated"], after["reasons"]
    assert after["hits"] - before["hits"] >= 990, after["reasons"]
