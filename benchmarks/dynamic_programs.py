"""The steps of the example programs, for the table: control flow, recursion, state, changing lengths."""

import random
import sys
import types
from pathlib import Path

import torch.nn.functional as F

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))

import a3c
import adaptive_computation
import beam_search
import dropblock
import inception_v3
import lstm_language_model
import pix2pix
import ppo
import resnet50
import sampled_softmax
import shapes
import small_gpt
import stateful_model
import stochastic_depth
import tree_lstm
import tree_rnn
import trees
import varying_length


def classification(optimizer):
    """The step of every classifier."""

    def make_step(model):
        def step(x, y):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        return step

    return make_step


def lstm():
    model = lstm_language_model.LanguageModel(10_000, 200, 2, 0.2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    text = lstm_language_model.in_columns(
        lstm_language_model.load_words(None, 10_000)[: 20 * 401], 20
    )

    def make_step(model):
        states = [(torch.zeros(20, 200), torch.zeros(20, 200)) for _ in range(2)]

        def step(tokens, targets):
            nonlocal states
            loss, states = lstm_language_model.train_step(model, optimizer, tokens, targets, states)
            return loss

        return step

    return [model], make_step, [window(text, i) for i in range(0, 400, 20)]


def large_vocabulary():
    model = lstm_language_model.LanguageModel(10_000, 512, 1, 0.2)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    text = lstm_language_model.in_columns(
        lstm_language_model.load_words(None, 10_000)[: 20 * 401], 20
    )

    def make_step(model):
        states = model.start(20)

        def step(tokens, targets):
            nonlocal states
            loss, states = sampled_softmax.train_step(
                model, optimizer, tokens, targets, states, 500
            )
            return loss

        return step

    return [model], make_step, [window(text, i) for i in range(0, 400, 20)]


def window(text, start):
    """Twenty words of each column, and the words behind them."""
    return text[start : start + 20], text[start + 1 : start + 21]


def gpt():
    text, characters = small_gpt.load_characters(None)
    model = small_gpt.GPT(characters, 128, 4, 4, 64, 0.1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def make_step(model):
        return lambda given, following: small_gpt.train_step(model, optimizer, given, following)

    return [model], make_step, [small_gpt.draw(text, 16, 64) for _ in range(8)]


def tree(module, model_class, batch, least_words):
    examples, words = trees.load(None, limit=200, least_words=least_words)
    model = model_class(words, 100, trees.CLASSES)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)

    def make_step(model):
        return lambda given: module.train_step(model, optimizer, given)

    steps = len(examples) // batch
    return [model], make_step, [(trees.batch_of(examples, i, batch),) for i in range(steps)]


def recursive(batch, least_words=2):
    return lambda: tree(tree_rnn, tree_rnn.TreeRNN, batch, least_words)


def recursive_lstm(batch, least_words=2):
    return lambda: tree(tree_lstm, tree_lstm.TreeLSTM, batch, least_words)


def adaptive():
    model = adaptive_computation.Thinker(16, 128)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    bits = [torch.randint(0, 2, (32, 16)) for _ in range(16)]

    def make_step(model):
        def step(x, y):
            return adaptive_computation.train_step(model, optimizer, x, y, 0.001)

        return step

    return [model], make_step, [(each.float() * 2 - 1, each.sum(1) % 2) for each in bits]


def random_depth():
    random.seed(0)
    model = stochastic_depth.Network(784, 256, 12, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.003, momentum=0.9)
    batches = [(torch.randn(32, 784), torch.randint(0, 2, (32,))) for _ in range(8)]

    def make_step(model):
        return lambda x, y: stochastic_depth.train_step(model, optimizer, x, y)

    return [model], make_step, batches


def lengths():
    model = varying_length.TextClassifier(2000, 128, 10)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    batches = [varying_length.make_batch(32, 10 + 37 * i % 111, 2000, 10) for i in range(40)]

    return [model], classification(optimizer), batches


def actor_critic():
    model = a3c.ActorCritic(4, 100, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    batches = []
    for index in range(30):
        length = 20 if index % 4 else 5 + index % 15
        actions = torch.randint(0, 2, (length,))
        batches.append((torch.randn(length, 4), actions, [1.0] * length, torch.rand(())))

    def make_step(model):
        def step(observations, actions, rewards, following):
            return a3c.update(
                model, optimizer, observations, actions, rewards, following, 0.99, 0.01
            )

        return step

    return [model], make_step, batches


def proximal():
    model = ppo.ActorCritic(4, 64, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    batches = []
    for index in range(16):
        rows = 64 if index % 8 else 23
        actions, chances = torch.randint(0, 2, (rows,)), torch.full((rows,), -0.69)
        x, advantages, returns = torch.randn(rows, 4), torch.randn(rows), torch.randn(rows)
        batches.append((x, actions, chances, advantages, returns))

    def make_step(model):
        return lambda *given: ppo.update(model, optimizer, *given, 0.2)

    return [model], make_step, batches


def beams():
    model = beam_search.Model(40, 64)

    def make_step(model):
        # Each system has a function of its own: where a step is cut, what it calls is cut with it.
        search = types.FunctionType(beam_search.search.__code__, vars(beam_search))

        def step(first):
            with torch.no_grad():
                return search(model, first, 64, 4, 20)

        return step

    return [model], make_step, [(first,) for first in range(1, 30)]


def stateful():
    model = stateful_model.Tracker(16, 128)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def make_step(model):
        return lambda x, target: stateful_model.train_step(model, optimizer, x, target)

    return [model], make_step, [stateful_model.signal(step, 32, 16) for step in range(40)]


def drop_blocks():
    model = dropblock.Network(32, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    schedule = dropblock.Schedule([model.drop1, model.drop2], 0.2, 1000)
    pictures, kinds = shapes.draw(256, 32, channels=3)

    def make_step(model):
        return lambda x, y: dropblock.train_step(model, optimizer, schedule, x, y)

    return (
        [model],
        make_step,
        [(pictures[i : i + 32], kinds[i : i + 32]) for i in range(0, 256, 32)],
    )


def paint():
    generator, critic = pix2pix.Generator(32), pix2pix.make_critic(32)
    generator_optimizer = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    critic_optimizer = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
    pictures, _ = shapes.draw(64, 64, channels=3)
    outlines = shapes.edges(pictures)

    def make_step(generator, critic):
        def step(outlines, real):
            return pix2pix.train_step(
                generator, critic, generator_optimizer, critic_optimizer, outlines, real, 100.0
            )

        return step

    batches = [(outlines[i : i + 8], pictures[i : i + 8]) for i in range(0, 64, 8)]
    return [generator, critic], make_step, batches


class SequenceEncoder(torch.nn.Module):
    """The last state of one sequence, by a loop over its steps."""

    def __init__(self, features, width, classes):
        super().__init__()
        self.inputs = torch.nn.Linear(features, width)
        self.states = torch.nn.Linear(width, width)
        self.out = torch.nn.Linear(width, classes)

    def forward(self, sequence):
        state = torch.zeros(self.states.in_features)
        for t in range(sequence.shape[0]):
            state = torch.tanh(self.inputs(sequence[t]) + self.states(state))
        return self.out(state)


def sequences():
    """Nothing is padded: a list of tensors, each of a length of its own."""
    model = SequenceEncoder(32, 256, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    rng = random.Random(0)

    def make_step(model):
        def step(inputs, kinds):
            optimizer.zero_grad()
            loss = 0
            for sequence, kind in zip(inputs, kinds, strict=True):
                loss = loss + F.cross_entropy(model(sequence)[None], kind[None])
            loss.backward()
            optimizer.step()
            return loss

        return step

    def batch():
        inputs = [torch.randn(rng.randint(5, 40), 32) for _ in range(16)]
        return inputs, [torch.tensor(rng.randrange(3)) for _ in inputs]

    return [model], make_step, [batch() for _ in range(20)]


def residual_network():
    model = resnet50.ResNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    pictures, kinds = shapes.draw(16, 112, channels=3)

    return (
        [model],
        classification(optimizer),
        [(pictures[i : i + 4], kinds[i : i + 4]) for i in range(0, 16, 4)],
    )


def inception():
    model = inception_v3.Inception(10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    pictures, kinds = shapes.draw(8, 107, channels=3)

    def make_step(model):
        def step(x, y):
            scores, auxiliary = model(x)
            loss = F.cross_entropy(scores, y) + 0.4 * F.cross_entropy(auxiliary, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        return step

    return [model], make_step, [(pictures[i : i + 2], kinds[i : i + 2]) for i in range(0, 8, 2)]


PROGRAMS = {
    "lstm": ("language model, 2 hand-written LSTM layers of 200, batch 20, 20 words", lstm),
    "sampled_softmax": (
        "language model, LSTM of 512, softmax of 500 sampled words, batch 20, 20 words",
        large_vocabulary,
    ),
    "gpt": ("GPT of 4 layers of 128, 64 characters, batch 16", gpt),
    "tree_rnn": ("TreeRNN of width 100, a tree a step", recursive(1)),
    "tree_rnn_25": ("TreeRNN, 25 trees of 10 to 40 words a step", recursive(25, 10), 8),
    "tree_lstm": ("TreeLSTM of width 100, 4 trees a step", recursive_lstm(4)),
    "tree_lstm_25": ("TreeLSTM, 25 trees of 10 to 40 words a step", recursive_lstm(25, 10), 8),
    "adaptive": ("adaptive computation time, GRU of 128, batch 32", adaptive),
    "stochastic_depth": ("stochastic depth, 12 blocks of 256, batch 32", random_depth),
    "lengths": ("text model, length 10 to 120 at random, batch 32", lengths),
    "sequences": ("16 sequences of 5 to 40 steps one by one, hand-written cell of 256", sequences),
    "a3c": ("A3C update, rollouts of 5 to 20 steps", actor_critic, 30),
    "ppo": ("PPO update, 64 rows", proximal, 8),
    "beam_search": ("beam search, width 4, 20 words", beams),
    "stateful": ("model with its state in attributes, batch 32", stateful),
    "dropblock": ("DropBlock with a schedule, batch 32", drop_blocks),
    "pix2pix": ("pix2pix, 64×64, batch 8", paint),
    "resnet50": ("ResNet-50, 112×112, batch 4", residual_network),
    "inception_v3": ("Inception-v3, 107×107, batch 2", inception),
}
