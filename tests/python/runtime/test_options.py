"""What can be left out by name: the results stay eager's, and what was left out is not there."""

import pytest
import torch.nn.functional as F
from differential import Program, differential

import torch
import torchjanus
from torch import nn

options = torchjanus.options


@pytest.fixture(autouse=True)
def restored():
    disabled, limits = options.disabled, (options.unroll_limit, options.inline_limit)
    yield
    options.disabled = disabled
    options.unroll_limit, options.inline_limit = limits


def warmed_up(function, *calls):
    """The converted function after some calls."""
    converted = torchjanus.function(function)
    for call in calls:
        converted(*call)
    return converted


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolutions = nn.ModuleList([nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 4, 3)])
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 3)
        self.scale = 0.5

    def forward(self, x):
        for convolution in self.convolutions:
            x = F.relu(convolution(x))
        x = self.norm(x) * self.scale
        for _ in range(3):
            x = x + x.tanh()
        if x.mean() > -100:
            x = x * 2
        return self.head(x.mean((2, 3)))


def training():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    batches = [(torch.randn(n, 2, 8, 8), torch.randint(0, 3, (n,))) for n in [5] * 7 + [6] * 3]
    return Program(step, batches, watch=[model, optimizer])


@pytest.mark.parametrize("name", sorted(options.switches()))
def test_results_without(name):
    with options.without(name):
        differential(hits=6)(training)()


def test_results_without_anything():
    with options.without(*options.switches()):
        differential(hits=6)(training)()


def test_unroll():
    def step(x):
        x = x.tanh()
        for i in range(4):
            x = x * 1.5 + i
        return x

    calls = [(torch.ones(3),)] * 6
    assert "while" not in warmed_up(step, *calls).graph()
    with options.without("unroll"):
        assert "while" in warmed_up(step, *calls).graph()


def test_specialised_shapes():
    def step(x):
        return x.tanh().sum(1)

    calls = [(torch.ones(4, 3),)] * 5 + [(torch.ones(5, 3),)] * 5
    specialised = warmed_up(step, *calls[:5])
    assert "f32[4,3]" in specialised.graph()
    with options.without("specialise_shapes"):
        general = warmed_up(step, *calls)
    assert "f32[4,3]" not in general.graph()
    assert general.stats()["misses"] == 0


def test_specialised_numbers():
    def step(x, factor):
        return x * factor

    with options.without("specialise_numbers"):
        general = warmed_up(step, *((torch.ones(3), i / 2) for i in [1] * 5 + [2, 3, 4]))
    assert general.stats()["misses"] == 0
    assert len(general.snapshot()["cache"]) == 1


def test_specialised_branches():
    def step(x):
        if x.sum() > 0:
            return x * 2
        return x - 1

    calls = [(torch.ones(3),)] * 6
    followed = warmed_up(step, *calls)
    assert "guard" in followed.graph() and " if " not in followed.graph()
    with options.without("specialise_branches"):
        both = warmed_up(step, *calls)
    assert " if " in both.graph()
    both(-torch.ones(3))
    assert both.stats()["aborts"] == 0


def test_control_flow():
    def step(x):
        if x.sum() > 0:
            return x * 2
        return x - 1

    calls = [(torch.ones(3),), (-torch.ones(3),)] * 5
    assert " if " in warmed_up(step, *calls).graph()
    with options.without("control_flow"):
        assert " if " not in warmed_up(step, *calls).graph()


def test_memory_plan():
    def step(x):
        return (x @ x).tanh() @ x

    calls = [(torch.ones(8, 8),)] * 8
    assert "arena" in warmed_up(step, *calls).snapshot()["cache"][0]["program"]
    with options.without("memory_plan"):
        assert "arena" not in warmed_up(step, *calls).snapshot()["cache"][0]["program"]


def test_a_graph_keeps_what_it_was_made_with():
    def step(x):
        x = x.tanh()
        for i in range(4):
            x = x * 1.5 + i
        return x

    converted = warmed_up(step, *[(torch.ones(3),)] * 5)
    with options.without("unroll"):
        converted(torch.ones(3))
        assert "while" not in converted.graph()
    assert "unroll" not in options.disabled


def test_limits():
    def helper(x):
        return x + 1

    def step(x):
        for _ in range(6):
            x = helper(x)
        return x

    calls = [(torch.ones(3),)] * 6
    assert warmed_up(step, *calls).stats()["hits"] > 0
    options.unroll_limit = 5
    assert warmed_up(step, *calls).stats()["hits"] == 0
    options.unroll_limit = 6
    assert warmed_up(step, *calls).stats()["hits"] > 0
    options.inline_limit = 0
    assert warmed_up(step, *calls).stats()["hits"] == 0
    options.inline_limit = 1
    assert warmed_up(step, *calls).stats()["hits"] > 0


def test_what_does_not_exist():
    with pytest.raises(
        ValueError, match=r"there is no unrol \(did you mean unroll\?\); there are "
    ):
        options.disabled = ["unrol"]
    assert "unrol" not in options.disabled
    for limit in (-1, 2.5, True, "many"):
        with pytest.raises(ValueError, match="a limit is an int"):
            options.inline_limit = limit


def test_options_that_do_not_exist():
    with pytest.raises(AttributeError, match=r"no strikt \(did you mean strict\?\); there are "):
        options.strikt = True
    with pytest.raises(AttributeError, match="there is no colour; there are disabled, dump_folder"):
        options.colour = 3
    assert not hasattr(options, "colour")


def test_values_that_options_do_not_take():
    with pytest.raises(TypeError, match="strict is True or False, not 'yes'"):
        options.strict = "yes"
    with pytest.raises(TypeError):
        options.dump_folder = 3
    assert not options.strict and options.dump_folder == ""


def test_channels_that_do_not_exist():
    for use in (options.log_level, options.set_log_level):
        with pytest.raises(
            ValueError, match=r"no speculat \(did you mean speculate\?\); there are "
        ):
            use("speculat")
    with pytest.raises(ValueError, match="a level is an int that is not negative"):
        options.set_log_level("speculate", -1)
    options.set_log_level("time", 0)
    assert options.log_level("time") == 0


def test_dump_folder_that_is_a_path(tmp_path):
    options.dump_folder = tmp_path
    try:
        assert options.dump_folder == str(tmp_path)
    finally:
        options.dump_folder = ""
