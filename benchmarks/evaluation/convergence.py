"""Training until a quality is reached, against wall time; what looks at the quality is off the clock."""

import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import a3c
import cartpole
import fashion_mnist
import gan
import lenet
import lstm_language_model as language
import ppo
import torch.nn.functional as F
import tree_lstm
import tree_rnn
import trees

import torch
import torchjanus

from . import qualities

Look = Callable[[], float]
Training = Iterator[Look]  # it trains on each time it is asked for how to look at the quality

SYSTEMS: dict[str, Callable] = {
    "eager": lambda function: function,
    "torchjanus": torchjanus.function,
    "torch.compile": torch.compile,
}


class Options:
    """How much, and of which data."""

    def __init__(
        self,
        quick: bool = False,
        sst: Path | None = None,
        text: Path | None = None,
        looks: int = 20,
    ) -> None:
        self.sst, self.text = sst, text
        self.looks = 2 if quick else looks
        self.share = 0.02 if quick else 1.0  # of the steps

    def steps(self, count: int) -> int:
        return max(self.looks, int(count * self.share))


def looked_at(steps: Iterator[None], count: int, looks: int, look: Look) -> Training:
    """A look at the quality after each of so many equal parts of the steps."""
    for number, _ in enumerate(steps, 1):
        if number % (count // looks) == 0:
            yield look


def train_lenet(convert: Callable, options: Options) -> Training:
    images, labels = fashion_mnist.load(fashion_mnist.DEFAULT_FOLDER, "train")
    test = [each[:2000] for each in fashion_mnist.load(fashion_mnist.DEFAULT_FOLDER, "t10k")]
    model = lenet.LeNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

    @convert
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    def steps(count):
        order = torch.randperm(len(images))
        for rows in order[: 50 * count].split(50):
            yield step(images[rows], labels[rows])

    count = options.steps(1200)
    return looked_at(steps(count), count, options.looks, lambda: lenet.evaluate(model, *test, 500))


def train_gan(convert: Callable, options: Options) -> Training:
    images, _ = fashion_mnist.load(fashion_mnist.DEFAULT_FOLDER, "train")
    pictures = (images * 0.353 + 0.286).mul(2).sub(1).flatten(1)
    networks = gan.make_networks(noise=100)
    optimizers = gan.make_optimizers(networks)
    train_step = convert(gan.train_step)

    def steps(count):
        for rows in torch.randint(len(pictures), (count, 128)):
            yield train_step(networks, optimizers, pictures[rows], torch.randn(128, 100))

    count = options.steps(1600)
    look = qualities.distance_of_made(networks[0], pictures[:2000], noise=100)
    return looked_at(steps(count), count, options.looks, look)


def train_trees(module: Any, model_class: type, count: int) -> Callable:
    def train(convert: Callable, options: Options) -> Training:
        examples, held_out, words = qualities.divided_trees(options.sst)
        model = model_class(words, 100, trees.CLASSES)
        optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
        train_step = convert(module.train_step)

        def steps(count):
            for number in range(count):
                yield train_step(model, optimizer, trees.batch_of(examples, number, 25))

        taken = options.steps(count)
        look = qualities.share_of_right_roots(model, held_out, is_signed=options.sst is not None)
        return looked_at(steps(taken), taken, options.looks, look)

    return train


def train_language(convert: Callable, options: Options) -> Training:
    numbers = language.load_words(options.text, 10_000)
    text = language.in_columns(numbers[: -len(numbers) // 10], 20)
    held_out = language.in_columns(numbers[-len(numbers) // 10 :][:4000], 20)
    model = language.LanguageModel(10_000, 200, 2, 0.2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    train_step = convert(language.train_step)

    def steps(count):
        states = model.start(20)
        for number in range(count):
            tokens, targets, begins = language.window(text, 20, number)
            states = model.start(20) if begins else states
            loss, states = train_step(model, optimizer, tokens, targets, states)
            yield loss

    count = options.steps(600)
    look = qualities.perplexity(model, held_out)
    return looked_at(steps(count), count, options.looks, look)


def train_a3c(convert: Callable, options: Options) -> Training:
    environment = cartpole.make()
    observation = plain(environment.reset(seed=0)[0])
    model = a3c.ActorCritic(4, 100, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    update, rollout = convert(a3c.update), convert(a3c.rollout)
    lengths = [0]

    def steps(count):
        nonlocal observation
        for _ in range(count):
            seen, actions, rewards, ended, observation = rollout(
                model, environment, observation, 20
            )
            lengths[-1] += len(rewards)
            following = torch.zeros(())
            if ended:
                lengths.append(0)
                observation, _ = environment.reset()
            else:
                with torch.no_grad():
                    following = model(torch.tensor(observation))[1]
            observation = plain(observation)
            yield update(model, optimizer, seen, actions, rewards, following, 0.99, 0.01)

    count = options.steps(2000)
    look = qualities.mean_of_last(lengths, 20)
    return looked_at(steps(count), count, options.looks, look)


def plain(observation: Any) -> list[float]:
    return [float(value) for value in observation]


def train_ppo(convert: Callable, options: Options) -> Training:
    environment = cartpole.make()
    environment.reset(seed=0)
    model = ppo.ActorCritic(4, 64, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    update, play = convert(ppo.update), convert(ppo.play)
    lengths: list[int] = []

    def steps(count):
        for _ in range(count):
            played = [play(model, environment, 200) for _ in range(4)]
            lengths.extend(len(rewards) for *_, rewards in played)
            learn(played)
            yield

    def learn(played):
        estimates = [
            ppo.advantages_of(values, rewards, 0.99, 0.95) for *_, values, rewards in played
        ]
        x, actions, chances, values = map(torch.cat, [*zip(*played, strict=True)][:4])
        advantages = torch.cat(estimates)
        returns = advantages + values
        for _ in range(4):
            for rows in torch.randperm(len(x)).split(64):
                if len(rows) > 1:
                    chosen = (each[rows] for each in (x, actions, chances, advantages, returns))
                    update(model, optimizer, *chosen, 0.2)

    count = options.steps(40)
    return looked_at(steps(count), count, options.looks, qualities.mean_of_last(lengths, 8))


TRAININGS: dict[str, Callable[[Callable, Options], Training]] = {
    "lenet": train_lenet,
    "gan": train_gan,
    "tree_rnn": train_trees(tree_rnn, tree_rnn.TreeRNN, 160),
    "tree_lstm": train_trees(tree_lstm, tree_lstm.TreeLSTM, 160),
    "lstm": train_language,
    "a3c": train_a3c,
    "ppo": train_ppo,
}


#: Where rounding decides how good a training ends, several are run.
SEEDS = {"gan": 3, "a3c": 3, "ppo": 3}


def points(
    name: str, convert: Callable, options: Options, seed: int = 0
) -> Iterator[tuple[float, float]]:
    """Seconds of training and the quality then, one after the other."""
    torch.manual_seed(seed)
    training, spent = TRAININGS[name](convert, options), 0.0
    while True:
        start = time.perf_counter()
        look = next(training, None)
        spent += time.perf_counter() - start
        if look is None:
            return
        state = torch.get_rng_state()
        yield spent, look()
        torch.set_rng_state(state)


def listed(name: str, system: str, options: Options, seed: int) -> list[tuple[float, float]]:
    return [*points(name, SYSTEMS[system], options, seed)]


def measure(name: str, system: str, options: Options) -> dict[str, Any]:
    """Medians over the seeds. Each has a process of its own, so that none finds what another compiled."""
    seeds = range(1 if options.share < 1 else SEEDS.get(name, 1))
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as processes:
        runs = [processes.apply(listed, (name, system, options, seed)) for seed in seeds]
    medians = [[*map(statistics.median, zip(*at, strict=True))] for at in zip(*runs, strict=True)]
    return {"points": medians, "seeds": len(runs)}
