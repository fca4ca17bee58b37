"""The report on a converted module is about its class and its `forward`, not about how torch calls it."""

import inspect
import threading

import torch
import torchjanus
from torch import nn


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x)
        if y.sum() > 1e9:
            y = y * 2
        return y.tanh()


class Noting(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(4)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).tanh()
        threading.get_native_id()
        for layer in self.layers:
            x = layer(x).sigmoid()
        return x


def report_on(module):
    converted = torchjanus.function(module)
    for _ in range(20):
        converted(torch.randn(3, 4))
    return torchjanus.explain(converted), torchjanus.stats(converted)


def marks(text):
    """The mark of each line of source, by the line's text."""
    rows = [line.split(" | ", 1) for line in text.splitlines() if " | " in line]
    return {source.strip(): mark.split()[0] for mark, source in rows if not mark.isspace()}


def test_forward_is_shown_with_its_marks():
    text, stats = report_on(Gate())
    _, first = inspect.getsourcelines(Gate.forward)
    assert text.startswith(f"Gate (module)  ({__file__}:{first}): runs as a graph")
    assert (stats["file"], stats["line"]) == (__file__, first)
    assert marks(text) == {
        "def forward(self, x):": "graph",
        "y = self.layer(x)": "graph",
        "if y.sum() > 1e9:": "assumed",
        "y = y * 2": "not",
        "return y.tanh()": "graph",
    }


def test_place_is_the_same_before_the_first_call():
    module = torchjanus.function(Gate())
    before = torchjanus.stats(module)
    module(torch.randn(3, 4))
    after = torchjanus.stats(module)
    assert [before[key] for key in ("name", "file", "line")] == [
        after[key] for key in ("name", "file", "line")
    ]


def test_forward_that_is_cut_is_shown_with_the_cut():
    text, stats = report_on(Noting())
    assert stats["state"] == "cut" and stats["file"] == __file__
    assert text.startswith(f"Noting (module)  ({__file__}:")
    assert marks(text)["threading.get_native_id()"] == "cut"
    assert "in Module._call_impl" not in text


def test_module_of_torch_is_shown_with_its_own_forward():
    text, _ = report_on(nn.Sequential(nn.Linear(4, 4), nn.Tanh()))
    assert text.startswith(f"Sequential (module)  ({inspect.getsourcefile(nn.Sequential)}:")
    assert marks(text)["for module in self:"] in ("graph", "folded", "assumed")
    assert "in Module._call_impl" not in text
