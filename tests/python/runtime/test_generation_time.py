"""Making a graph takes no longer than its budget, by a simulated clock: each piece of work (a statement that
is interpreted, a node that is copied) takes a millisecond. And that work grows with the program alone."""

import pytest
from scripts import hits

import torch
import torchjanus
from torch import nn
from torchjanus import _core, options

testing = _core.testing


@pytest.fixture(autouse=True)
def _slow_work():
    limit = options.generation_limit
    yield
    testing.simulate_work(None)
    options.generation_limit = limit


def small_operations(count):
    def f(x):
        for _ in range(count):
            x = torch.sin(x) + 1
        return x

    return f


def codes(f):
    return {reason["code"] for reason in f.stats()["reasons"]}


def test_what_takes_too_long_stays_in_python():
    plain = small_operations(500)
    f = torchjanus.function(plain, profile_runs=1)
    testing.simulate_work(0.001)
    options.generation_limit = 1
    x = torch.rand(3)
    for _ in range(4):
        assert torch.equal(f(x), plain(x))
    (reason,) = (each for each in f.stats()["reasons"] if each["code"] == "limit")
    assert reason["line"] == plain.__code__.co_firstlineno + 2
    assert f.stats()["generated"] == 0


def test_a_long_loop_is_refused_after_a_few_iterations():
    """How long its graph takes is forecast: the work is not done to find out."""
    works = []
    for count in (1000, 2000):
        plain = small_operations(count)
        f = torchjanus.function(plain, profile_runs=1)
        testing.simulate_work(0.001)
        options.generation_limit = 1
        before = testing.work_done()
        for _ in range(4):
            f(torch.rand(3))
        works.append(testing.work_done() - before)
        (reason,) = (each for each in f.stats()["reasons"] if each["code"] == "limit")
        assert "a loop would be unrolled" in reason["sentence"]
    assert works[0] == works[1] < 1000


def test_a_loop_that_has_time_is_unrolled():
    f = torchjanus.function(small_operations(200), profile_runs=1)
    testing.simulate_work(0.001)
    options.generation_limit = 60
    for _ in range(4):
        f(torch.rand(3))
    assert f.stats()["hits"] == 3


def test_an_epoch_that_takes_too_long_has_graphs_for_its_steps():
    def made():
        torch.manual_seed(0)
        model = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)

        def epoch(batches):
            total = 0.0
            for x in batches:
                optimizer.zero_grad()
                loss = torch.tanh(model(x)).square().mean()
                loss.backward()
                optimizer.step()
                total = total + loss.detach()
            return total

        return model, epoch

    batches = [torch.rand(3, 4) for _ in range(40)]
    model, epoch = made()
    copy, plain = made()
    converted = torchjanus.function(epoch, profile_runs=1)
    testing.simulate_work(0.001)
    options.generation_limit = 4
    for _ in range(6):
        torch.testing.assert_close(converted(batches), plain(batches))
    torch.testing.assert_close(list(model.parameters()), list(copy.parameters()))
    assert "limit" in codes(converted)
    assert converted.stats()["generated"] == 1  # of a step, not of the epoch
    assert max(hits([converted.snapshot()]).values()) > len(batches)


def test_passes_stop_as_well():
    plain = small_operations(60)
    f = torchjanus.function(plain, profile_runs=1)
    f(torch.rand(3))
    before = testing.work_done()
    g = torchjanus.function(small_operations(60), profile_runs=1)
    g(torch.rand(3))
    g(torch.rand(3))
    work = testing.work_done() - before
    assert g.stats()["hits"] == 1
    testing.simulate_work(1.05 / work)  # all of it takes a little more than a second
    options.generation_limit = 1
    f(torch.rand(3))
    (reason,) = (each for each in f.stats()["reasons"] if each["code"] == "limit")
    assert "not optimised" in reason["sentence"]


def derivatives(x):
    x = x.detach().requires_grad_()
    (first,) = torch.autograd.grad(torch.sin(x).pow(3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad((first * first).sum(), x, create_graph=True)
    (third,) = torch.autograd.grad((second * first).sum(), x)
    return third


def test_the_time_may_be_over_anywhere():
    """Within gradients that the program takes, too: what copies nodes there has no user's line of its own."""
    x, whole = torch.rand(3), torchjanus.function(derivatives, profile_runs=1)
    before = testing.work_done()
    whole(x), whole(x)
    work = testing.work_done() - before
    assert whole.stats()["hits"] == 1
    options.generation_limit = 1
    for done in range(2, 60):
        f = torchjanus.function(derivatives, profile_runs=1)
        testing.simulate_work(60 / (done * work))
        for _ in range(2):
            assert torch.equal(f(x), derivatives(x))
        assert codes(f) == {"limit"}, done


# --- growth --------------------------------------------------------------------------------------


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.into, self.onto = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, words):
        state = torch.zeros(words.shape[1], 4)
        for word in words:
            state = torch.tanh(self.into(word) + self.onto(state))
        return state


class Deep(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(depth))

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.relu(layer(x))
        return x


def training(model, x):
    optimizer = torch.optim.Adam(model.parameters())

    def step():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def steps(count):
    step = training(nn.Linear(4, 4), torch.rand(2, 4))

    def epoch():
        total = 0.0
        for _ in range(count):
            total = total + step().detach()
        return total

    return epoch


def operations(count):
    f, x = small_operations(count), torch.rand(3)
    return lambda: f(x)


FAMILIES = {
    "iterations": lambda size: training(Recurrent(), torch.rand(size, 2, 4)),
    "layers": lambda size: training(Deep(size), torch.rand(2, 4)),
    "steps": steps,
    "operations": operations,
}


def work_of_generation(make, size):
    f = torchjanus.function(make(size), profile_runs=3)  # an optimizer's first steps differ
    for _ in range(3):
        f()
    before = testing.work_done()
    f()
    assert f.stats()["hits"] == 1, f.stats()["reasons"]
    return testing.work_done() - before


@pytest.mark.parametrize("family", FAMILIES)
def test_work_grows_with_the_program(family):
    small, middle, large = (work_of_generation(FAMILIES[family], size) for size in (10, 20, 40))
    assert large - middle <= 2.2 * (middle - small), (small, middle, large)
