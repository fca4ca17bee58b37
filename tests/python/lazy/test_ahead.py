"""Work that a look leaves runs on a thread of its own while Python goes on: nothing else is different."""

import contextlib
import os
import pickle
import threading

import numpy
import pytest
from apart import in_a_thread

import torch
import torchjanus
from torch import nn
from torchjanus import _core


@pytest.fixture(autouse=True)
def _doubles():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def same(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


def both_ways(program):
    """Compares what a program gives eagerly and lazily. How many segments ran ahead."""

    def lazily():
        torch.manual_seed(0)
        before = _core.lazy_counts()["ahead"]
        with torchjanus.lazy():
            found = program()
        return found, _core.lazy_counts()["ahead"] - before

    torch.manual_seed(0)
    expected = program()
    found, ahead = in_a_thread(lazily)
    same(found, expected)
    return ahead


class Trainer:
    """A small network, and its steps."""

    def __init__(self, optimizer=torch.optim.SGD, dropout=0.0, **options):
        torch.manual_seed(3)
        self.model = nn.Sequential(
            nn.Linear(6, 16),
            nn.Tanh(),
            nn.BatchNorm1d(16),
            nn.Dropout(dropout),
            nn.Linear(16, 16),
            nn.LayerNorm(16),
            nn.ReLU(),
            nn.Linear(16, 4),
        )
        self.optimizer = optimizer(self.model.parameters(), lr=0.01, **options)

    def step(self):
        x, y = torch.randn(12, 6), torch.randn(12, 4)
        loss = ((self.model(x) - y) ** 2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss

    def state(self):
        return [value.detach().clone() for value in self.model.state_dict().values()]


STEPS = 24


@pytest.mark.parametrize(
    ("optimizer", "options"),
    [
        (torch.optim.SGD, {"momentum": 0.9}),
        (torch.optim.Adam, {}),
        (torch.optim.AdamW, {"dropout": 0.2}),
        (torch.optim.RMSprop, {"dropout": 0.5}),
        (torch.optim.Adam, {"foreach": False}),
    ],
)
def test_training_with_a_look_in_each_step(optimizer, options):
    def program():
        trainer = Trainer(optimizer, **options)
        losses = [trainer.step().item() for _ in range(STEPS)]
        return losses, trainer.state()

    assert both_ways(program) >= STEPS // 2


def test_training_without_looks():
    def program():
        trainer = Trainer(torch.optim.Adam)
        losses, most = [], 0
        for _ in range(STEPS):
            losses.append(trainer.step().detach())
            most = max(most, _core.lazy_counts()["pending"])
        assert most < 1000  # two iterations, not all of them
        return losses, trainer.state()

    assert both_ways(program) >= STEPS // 2


def test_a_loop_in_converted_code():
    source = "def step():\n    return trainer.step().item()\n"
    trainers = Trainer(), Trainer()
    steps = []
    for trainer in trainers:
        names = {"trainer": trainer}
        exec(source, names)
        steps.append(names["step"])
    converted = torchjanus.function(steps[0])
    found, expected = [], []
    for step, losses in ((converted, found), (steps[1], expected)):
        torch.manual_seed(1)
        losses += [step() for _ in range(40)]
    same(found, expected)
    same(trainers[0].state(), trainers[1].state())
    assert torchjanus.stats(converted)["co_execution"]["ahead"] > 0
    assert "ran ahead of Python" in torchjanus.explain(converted)


def looks(of):
    """A program that looks at a weight, in some way, while an update of it runs."""

    def program():
        trainer = Trainer(torch.optim.Adam)
        seen = []
        for _ in range(STEPS):
            trainer.step().item()
            seen.append(of(trainer))
        return seen, trainer.state()

    return program


def add_by_numpy(trainer):
    trainer.model[0].weight.detach().numpy()[:] += 1
    return 0


def add_in_place(trainer):
    with torch.no_grad():
        trainer.model[0].weight.add_(1.0)
    return 0


def give_other_data(trainer):
    trainer.model[0].weight.data = torch.ones(16, 6)
    return 0


def save_and_load(trainer):
    trainer.model.load_state_dict(pickle.loads(pickle.dumps(trainer.model.state_dict())))
    return 0


def read_in_a_thread(trainer):
    return in_a_thread(lambda: trainer.model[0].weight.detach().sum().item())


def write_in_a_thread(trainer):
    return in_a_thread(lambda: add_in_place(trainer))


def forget_gradients(trainer):
    trainer.optimizer.zero_grad()
    return 0


def forget_everything(trainer):
    old = trainer.state()
    trainer.__init__(torch.optim.Adam)
    return old


def set_threads(trainer):
    torch.set_num_threads(torch.get_num_threads())
    return 0


LOOKS = [
    lambda trainer: trainer.model[0].weight.tolist(),
    lambda trainer: bool(trainer.model[0].bias[0] > 0),
    lambda trainer: len(str(trainer.model[2].running_mean)),
    lambda trainer: trainer.model[4].weight.grad.norm().item(),
    lambda trainer: trainer.optimizer.state[trainer.model[0].weight]["exp_avg"].clone(),
    lambda trainer: trainer.model[0].weight.untyped_storage().nbytes(),
    lambda trainer: trainer.model[0].weight.detach().nonzero().shape,
]
# Whoever has the address of a weight sees its updates at once.
EXPOSING = [
    lambda trainer: trainer.model[0].weight.detach().numpy().sum(),
    lambda trainer: numpy.from_dlpack(trainer.model[0].weight.detach()).sum(),
    lambda trainer: trainer.model[0].weight.data_ptr() != 0,
    add_by_numpy,
    save_and_load,
]
CHANGES = [
    add_in_place,
    give_other_data,
    read_in_a_thread,
    write_in_a_thread,
    forget_gradients,
    forget_everything,
    set_threads,
]


@pytest.mark.parametrize("of", [*LOOKS, *CHANGES], ids=lambda of: of.__name__)
def test_looks_while_it_runs(of):
    assert both_ways(looks(of)) > 0


@pytest.mark.parametrize("of", EXPOSING, ids=lambda of: of.__name__)
def test_addresses_of_what_it_writes(of):
    both_ways(looks(of))


def test_a_fork_while_it_runs():
    def program():
        trainer = Trainer()
        sums = []
        for _ in range(12):
            trainer.step().item()
            reader, writer = os.pipe()
            if (child := os.fork()) == 0:
                text = str(trainer.model[0].weight.detach().sum().item())
                os.write(writer, text.encode())
                os._exit(0)
            sums.append(float(os.read(reader, 100)))
            os.waitpid(child, 0)
            os.close(reader)
            os.close(writer)
        return sums, trainer.state()

    assert both_ways(program) > 0


def test_an_error_of_the_program_while_it_runs():
    def program():
        trainer = Trainer()
        for index in range(STEPS):
            trainer.step().item()
            with contextlib.suppress(ZeroDivisionError):
                index / (index % 2)
        return trainer.state()

    assert both_ways(program) > 0


def test_a_look_that_needs_nothing_of_it_does_not_wait():
    def program():
        trainer = Trainer()
        sums = []
        for _ in range(STEPS):
            other = torch.randn(4, 4)
            trainer.step().item()
            sums.append((other * 2 + 1).sum().item())
        return sums, trainer.state()

    assert both_ways(program) > 0


def test_gradients_kept_over_iterations():
    def program():
        trainer = Trainer()
        for index in range(STEPS):
            x = torch.randn(12, 6)
            loss = trainer.model(x).square().mean()
            loss.backward()
            loss.item()
            if index % 3 == 2:
                trainer.optimizer.step()
                trainer.optimizer.zero_grad(set_to_none=False)
        return [parameter.grad for parameter in trainer.model.parameters()], trainer.state()

    assert both_ways(program) > 0


def test_several_threads():
    def program():
        found = [None] * 3
        trainers = [Trainer() for _ in found]

        def train(number):
            with around():
                trainer = trainers[number]
                x, y = torch.ones(12, 6) * number, torch.ones(12, 4)
                for _ in range(STEPS):
                    loss = ((trainer.model(x) - y) ** 2).mean()
                    trainer.optimizer.zero_grad()
                    loss.backward()
                    trainer.optimizer.step()
                    loss.item()
                found[number] = trainer.state()

        threads = [threading.Thread(target=train, args=(number,)) for number in range(len(found))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
            assert not thread.is_alive()
        return found

    around = contextlib.nullcontext
    expected = program()
    around = torchjanus.lazy
    same(program(), expected)


@pytest.mark.parametrize("passed", [0, 1, 2, 5])
def test_a_run_that_fails(passed):
    """Nothing of it is seen: its calls run one by one when they are needed."""

    def program():
        trainer = Trainer()
        losses = []
        for index in range(STEPS):
            loss = trainer.step()
            if index == STEPS - 4:
                _core.testing.inject_fault("operation", passed)
            losses.append(loss.item())
        _core.testing.inject_fault("none")
        return losses, trainer.state()

    assert both_ways(program) > 0


def test_a_look_at_all_while_it_runs():
    """What runs ahead does not run a second time where a look runs all that is pending."""

    def program():
        trainer = Trainer()
        seen = []
        for _ in range(STEPS):
            other = torch.randn(4, 4)
            trainer.step().item()
            twice = other * 2 + 1
            with torchjanus.options.without("cross_iteration"):
                seen.append(twice.sum().item())
        return seen, trainer.state()

    assert both_ways(program) > 0


def test_a_memory_limit_for_some_time():
    def program():
        weight = torch.full((300, 300), 0.01)
        sums = [weight * number for number in range(6)]
        for step in range(STEPS):
            product = ((weight @ weight) * 2).sum()
            for each in sums:
                each.add_(weight).mul_(0.99)
            product.item()
            torchjanus.options.memory_limit = 2**18 if 6 <= step < 9 else 0
        return sums

    assert both_ways(program) > 0


def test_fetches_come_when_it_is_done():
    def program():
        trainer = Trainer()
        fetched = []
        for _ in range(STEPS):
            loss = trainer.step()
            torchjanus.fetch(loss, lambda value: fetched.append(value.item()))
            loss.item()
        torchjanus.synchronize()
        return fetched, trainer.state()

    assert both_ways(program) > 0


def test_operands_that_nobody_else_keeps_are_bounded():
    with torchjanus.lazy():
        most = 0
        for _ in range(200):
            image = torch.rand(1000, 1000)  # 8 MB
            image.mean()
            most = max(most, _core.lazy_counts()["pending"])
    assert most < 100


def test_without_it():
    with torchjanus.options.without("graph_runner"):
        assert both_ways(looks(LOOKS[0])) == 0
