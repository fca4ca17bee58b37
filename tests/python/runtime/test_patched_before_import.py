"""What the program puts in the place of torch's own before it imports torchjanus."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import math
import torch
from torch import nn
from torch.nn import functional as F

multiply = torch.Tensor.mul

class Callable:
    def __call__(self, x):
        return multiply(x, 7)

{patch}
import torchjanus

torchjanus.options.disabled |= {{"background"}}
step = lambda x: {body}
converted = torchjanus.function(step, profile_runs=0)
for i in range(4):
    x = torch.full((2,), float(i + 1))
    expected, actual = step(x), converted(x)
    assert torch.equal(expected, actual), (expected, actual)
stats = converted.stats()
print(stats["hits"], *sorted({{each["code"] for each in stats["reasons"]}}))
"""


def run(folder, patch, body):
    """Runs it apart: how many calls were a graph's, and why others were not."""
    file = folder / "program.py"
    file.write_text(SCRIPT.format(patch=patch, body=body))
    outcome = subprocess.run(
        [sys.executable, str(file)],
        env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True,
    )  # fmt: skip
    assert outcome.returncode == 0, outcome.stderr
    hits, *reasons = outcome.stdout.split()
    return int(hits), reasons


CLASS = {
    "method": ("old = torch.Tensor.__add__\ntorch.Tensor.__add__ = lambda a, b: old(a, b) * 2", "x + 1"),
    "reflected": ("torch.Tensor.__rsub__ = lambda a, b: multiply(a, 7)", "5 - x"),
    "called by torch's": ("torch.Tensor.reciprocal = lambda a: multiply(a, 7)", "1 / x"),
    "property": ("torch.Tensor.shape = property(lambda a: (9,))", "x * x.shape[0]"),
    "added": ("torch.Tensor.__getattr__ = lambda a, name: 9", "x * x.missing"),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(CLASS))
def test_of_the_class_of_tensors(name, tmp_path):
    assert run(tmp_path, *CLASS[name]) == (0, ["mode_active"])


FUNCTIONS = {
    "torch": ("torch.relu = lambda a: multiply(a, 7)", "torch.relu(x)"),
    "functional": ("F.relu = lambda a, inplace=False: multiply(a, 7)", "F.relu(x)"),
    "inside torch": ("F.relu = lambda a, inplace=False: multiply(a, 7)", "nn.ReLU()(x)"),
    "code": ("F.relu.__code__ = (lambda input, inplace=False: input * 7).__code__", "F.relu(x)"),
    "object": ("torch.relu = Callable()", "torch.relu(x)"),
    "method": ("torch.Tensor.sum = lambda a: multiply(a, 7)", "x.sum()"),
    "another's": ("torch.tensor = lambda value: torch.full((2,), 9.0)", "x + torch.tensor(3.0)"),
    "of Python": ("math.ceil = lambda value: 50", "x * math.ceil(x.shape[0] / 2)"),
}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functions(name, tmp_path):
    hits, _ = run(tmp_path, *FUNCTIONS[name])
    assert hits >= 3


def test_a_list_as_an_index_needs_no_function_of_the_program(tmp_path):
    hits, _ = run(tmp_path, "torch.tensor = lambda value: torch.full((2,), 9.0)", "x[[1, 0]]")
    assert hits >= 3


UNTOUCHED = {
    "nothing": ("", "torch.relu(x) + F.relu(x) + (5 - x) * math.ceil(x.shape[0] / 2)"),
    "what only shows": ("torch.Tensor.__repr__ = lambda a: 'tensor'", "x + 1"),
    "a property of the program's": ("torch.Tensor.rgb = property(lambda a: 4)", "x + 1"),
    "a method of the program's": ("torch.Tensor.twice = lambda a: a * 2", "x + 1"),
}


@pytest.mark.parametrize("name", sorted(UNTOUCHED))
def test_what_is_torchs_own_stays_in_graphs(name, tmp_path):
    assert run(tmp_path, *UNTOUCHED[name]) == (4, [])
