"""docs/roadmap.md is true: what its tables call a gap is one, for the reason that they name.

A row whose example is one piece of code is run as it stands, in `def f(x, n, w)`: `x` is a tensor whose sum has
either sign, `n` a number from 2 to 4, `w` a leaf that requires a gradient; the other names are in `space()`. Other
rows have a program here, under the text of their first column, or none where one would be long.
A gap that a change closes fails its test: then its row goes.
"""
# ruff: noqa: F401  (the examples use them)

import contextlib
import copy
import functools
import heapq
import inspect
import json
import linecache
import random
import re
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

import torch
import torchjanus
from torch import nn

PAGE = Path(__file__).parents[3] / "docs" / "roadmap.md"
CALLS = 12
COLUMNS = 4  # of the tables of gaps: what, example, reason, size
SIZES = {"S", "M", "L"}
FOLLOWED = "one graph an outcome"
PROGRAMS: dict[str, Callable] = {}


def rows() -> list[list[str]]:
    """Of the tables of gaps."""
    sections = PAGE.read_text().split("\n## ")
    lines = [line for each in sections if each.startswith("Gaps: ") for line in each.split("\n")]
    cells = [line.strip("| ").split(" | ") for line in lines if line.startswith("|")]
    assert all(len(row) == COLUMNS for row in cells if len(row) > 1), cells
    return [row for row in cells if row[-1] in SIZES]


def gap(what: str) -> Callable:
    """Marks the program of a row."""
    return lambda build: PROGRAMS.setdefault(what, build)


# --- what programs use -----------------------------------------------------------------------------


class Plain:
    def __init__(self, value=None):
        self.value = value


class Hashed(Plain):
    def __hash__(self):
        return hash(self.value)

    def __eq__(self, other):
        return self.value == other.value


class OwnList(list):
    pass


class OwnDict(dict):
    pass


class Keyed:
    """A mapping that is no dict."""

    def keys(self):
        return ["y"]

    def __getitem__(self, key):
        return 2.0


class OwnTensor(torch.Tensor):
    pass


class Looking(nn.Module):
    def __getattribute__(self, name):
        return super().__getattribute__(name)

    def forward(self, x):
        return x * 2


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        return 2 * ctx.saved_tensors[0] * gradient


class Leaf:
    def __init__(self, size):
        self.label = random.randrange(3)
        self.text, self.list, self.state, self.children = "abc"[: self.label + 1], [1, 2], None, []

    @property
    def shown(self):
        return self.label

    @shown.setter
    def shown(self, value):
        self.other = value


class Branch(Leaf):
    def __init__(self, size):
        super().__init__(size)
        split = random.randrange(1, size)
        self.left, self.right = tree(split), tree(size - split)
        self.children = [self.left, self.right] + [Leaf(1)] * (self.label == 1)


def tree(size):
    return Leaf(1) if size == 1 else Branch(size)


RECURSION = """\
def go(node, v):
    START
    if not isinstance(node, Branch): return v * node.label
    INNER
    return GIVEN
go(tree, FIRST)RESULT"""


def recursion(
    start="pass",
    inner="pass",
    given="go(node.left, v + 1) + go(node.right, v)",
    first="w * 1",
    result="",
):
    """A program around one over a tree, another tree in each call."""
    parts = {"START": start, "INNER": inner, "GIVEN": given, "FIRST": first, "RESULT": result}
    text = RECURSION
    for name, part in parts.items():
        text = text.replace(name, part)
    return lambda: program(text, "tree, w")


varying = {"earlier": None}  # other things in each call


def scaled(x, y):
    return x * y


def ones_of(x):
    yield x
    yield x * 2


@contextlib.contextmanager
def looping():
    for each in range(1):
        yield each


def space():
    torch.manual_seed(0)
    return {
        **globals(),
        "buffer": torch.ones(4),
        "state": Plain(1.0),
        "model": nn.Linear(4, 4),
        "source": nn.Linear(4, 4).weight,
        "own": OwnTensor(torch.ones(4)),
        "looking": Looking(),
        "keyed": Keyed(),
        "names": {"a", "b", "c"},
        "states": {},
        "param": nn.Parameter(torch.ones(4)),
        "hashed": {Hashed(1): 2.0},
        "array": numpy.ones(4, dtype=numpy.float32),
        "number": numpy.int64(2),
    }


def reasons(f: Callable) -> tuple[set[str], int]:
    """The codes that are reported, and how many graphs are made, in calls of the function."""
    torch.manual_seed(0)
    w = torch.ones(4, requires_grad=True)
    converted = torchjanus.function(f)
    with torchjanus.options.without("background"):
        for call in range(CALLS):
            torch.manual_seed(call)
            random.seed(call)
            x = torch.randn(4, 4).abs() * (-1) ** (call // 2) * (1 + call % 3)
            varying["earlier"] = (w * x).sum()
            with contextlib.suppress(Exception):
                if f.__code__.co_argcount == 2:
                    converted(tree(random.randrange(2, 9)), w)
                else:
                    converted(x, call % 3 + 2, w)
    stats = converted.stats()
    return {each["code"] for each in stats["reasons"]}, stats["generated"]


# --- rows whose example is more than one line --------------------------------------------------------


@gap("generator whose steps show, behind `zip`, `next` or a `break`")
def stepwise():
    def lengths(seen):
        for _ in range(3):
            yield len(seen)

    def f(x, n, w):
        seen = []
        for length, _ in zip(lengths(seen), range(3)):
            seen.append(length)
        return x * sum(seen)

    return f


@gap("function converted that is itself a generator")
def generator():
    def f(x, n, w):
        yield x * 2

    return f


@gap("exception that leaves a loop in the graph")
def raised_in_loop():
    def f(x, n, w):
        y = x.abs()
        try:
            while True:
                y = y / 2
                if y.sum() < n:
                    raise ValueError
        except ValueError:
            return y

    return f


@gap("exception that the handler keeps, or asks for its traceback or cause")
def kept_exception():
    kept = []

    def f(x, n, w):
        try:
            if x.sum() > 0:
                raise ValueError(n)
        except ValueError as error:
            kept.append(error)
        return x * 2

    return f


@gap("exception of a tensor operation that the program handles")
def handled_tensor_error():
    def f(x, n, w):
        try:
            return x + torch.ones(3)
        except RuntimeError:
            return x * 2

    return f


@gap("function without source")
def without_source():
    names = {}
    exec("def f(x, n, w): return x * 2", names)
    return names["f"]


@gap("`warnings.warn` with a `stacklevel` in a module's `forward`")
def warning_module():
    class Warns(nn.Module):
        def forward(self, x):
            warnings.warn("late", stacklevel=2)
            return x * 2

    module = Warns()
    return lambda x, n, w: module(x)


@gap("texts of several forms, joined of one list")
def joined_texts():
    def f(x, n, w):
        parts = []
        for i in range(n):
            parts.append("first" if i == 0 else f"{i}")
        print("".join(parts))
        return x * 2

    return f


@gap("print of a container that outlives the call")
def printed_container():
    kept = []

    def f(x, n, w):
        kept.append(1)
        print(kept)
        return x * 2

    return f


@gap("list that each iteration replaces by one of another length")
def window():
    def f(x, n, w):
        window = []
        for i in range(n):
            window = [*window[-3:], x * i]
        return window

    return f


@gap("container that an iteration replaces while somebody else holds it")
def held():
    def f(x, n, w):
        first = states = [x, x * 2]
        for i in range(n):
            states = [states[1], states[0] * i]
        return states, first

    return f


@gap("attribute that iterations of a varying loop make or delete")
def made_attributes():
    state = Plain()

    def f(x, n, w):
        for i in range(n):
            setattr(state, f"at_{i}", x * i)
        return x

    return f


@gap("other shape, container or object from iteration to iteration")
def shrinking():
    def f(x, n, w):
        for _ in range(n):
            x = x[x > -1]
        return x

    return f


@gap("container or object of another kind on one side, stored in an object")
def stored_containers():
    state = Plain()

    def f(x, n, w):
        state.value = [x * 2] if x.sum() > 0 else (x * 2,)
        return x

    return f


@gap("test of a loop that has effects")
def effects_of_a_test():
    kept = []

    def f(x, n, w):
        while kept.append(1) or n < 5 + x.sum():
            n = n + 1
        return x * n

    return f


@gap("sizes that the run decides, collected in a list")
def collected_sizes():
    def f(x, n, w):
        parts = [x[x > i] for i in range(n)]
        return torch.cat(parts)

    return f


@gap("hooks of several parameters that leave traces in an order")
def hooks_with_traces():
    kept = []
    leaves = [nn.Parameter(torch.ones(4)) for _ in range(2)]
    for place, leaf in enumerate(leaves):
        leaf.register_hook(lambda gradient, place=place: kept.append(place))
    return lambda x, n, w: (leaves[0] * leaves[1] * x).sum().backward()


@gap("hook of a parameter that reads variables, beside one of a module")
def beside_full_hook():
    model, state = nn.Linear(4, 4), {"factor": 2.0}
    model.register_full_backward_hook(lambda module, given, made: None)
    model.weight.register_hook(lambda gradient: gradient * state["factor"])
    return lambda x, n, w: model(x).sum().backward()


@gap("writes under `no_grad` to a tensor whose gradient is due")
def written_under_no_grad():
    return lambda x, n, w: F.gaussian_nll_loss(x, x * 2, (w * w).expand(4, 4).clone()).backward()


@gap("`requires_grad` switched while a view is held, or with gradients due outside")
def held_view():
    def f(x, n, w):
        part = w[:1]
        w.requires_grad_(False)
        wanted = part.requires_grad
        w.requires_grad_(True)
        return x * 2, wanted

    return f


@gap("result on the way of another's gradient that is a view of memory that others show")
def view_on_the_way():
    def f(x, n, w):
        whole = x * w.sum()
        part = whole[:1]
        return whole, part, (part * 2).exp()

    return f


@gap("parameter that only some elements of a list use, of which the run reads some")
def some_elements():
    def f(x, n, w):
        parts = []
        for i in range(n):
            parts.append((w if i == 0 else x) * i)
        return parts[n - 1].sum()

    return f


@gap("optimizers with `fused=True` and a rate that is a tensor")
def fused():
    model = nn.Linear(4, 4)
    optimizer = torch.optim.Adam(model.parameters(), lr=torch.tensor(0.1), fused=True)

    def f(x, n, w):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()

    return f


@gap("LBFGS until its history is full")
def lbfgs():
    model = nn.Linear(4, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)

    def f(x, n, w):
        def closure():
            optimizer.zero_grad()
            loss = model(x).square().sum()
            loss.backward()
            return loss

        return optimizer.step(closure)

    return f


@gap("`torch.jit.script` of a module")
def scripted_module():
    scripted = torch.jit.script(nn.Linear(4, 4))
    return lambda x, n, w: scripted(x) * 2


@gap("modes of torch")
def mode():
    from torch.overrides import TorchFunctionMode

    class Nothing(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    def f(x, n, w):
        with Nothing():
            return x * 2

    return f


@gap("`torch.utils.checkpoint` of what changes something outside")
def checkpointed_norm():
    norm = nn.BatchNorm1d(4)
    return lambda x, n, w: checkpoint(norm, x * w, use_reentrant=False).sum().backward()


@gap("autocast: operators made of others, `backward()` within")
def autocast_einsum():
    def f(x, n, w):
        with torch.autocast("cpu", torch.bfloat16):
            return torch.einsum("ij,jk->ik", x, x)

    return f


@gap("results made inside and outside of inference mode in one call")
def two_modes():
    def f(x, n, w):
        with torch.inference_mode():
            y = x * 2
        return y, x * 3

    return f


@gap("`nn.CTCLoss` with joined targets, its lengths tensors")
def joined_targets():
    def f(x, n, w):
        scores = torch.log_softmax(x[:, None].expand(4, 2, 4), 2)
        lengths = torch.tensor([4, 4]), torch.tensor([1, 2])
        return F.ctc_loss(scores, torch.tensor([1, 2, 3]), *lengths)

    return f


@gap("strides of what `F.interpolate` gives")
def dropout_behind_interpolate():
    return lambda x, n, w: F.dropout(
        F.interpolate(x[None, None], scale_factor=2.0, mode="bilinear")
    )


@gap("arguments that overlap in memory while one is written")
def overlapping():
    shared = torch.ones(8)

    def f(x, n, w):
        shared[:4].add_(parts[0])
        return shared * 2

    parts = [shared[2:6]]
    return f


@gap("parameters that are parts of one memory, written")
def parts_of_one():
    model = nn.Linear(4, 4)
    vector = nn.utils.parameters_to_vector(model.parameters()).detach()
    nn.utils.vector_to_parameters(vector, model.parameters())
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def f(x, n, w):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()

    return f


@gap("list that grows in the graph and outlives the call with one of its tensors")
def outliving_list():
    def f(x, n, w):
        parts = []
        for i in range(n):
            parts.append(x * i)
        return parts, parts[0]

    return f


PROGRAMS |= {
    "items and elements of containers met at run time, written": recursion("node.list[0] = 2"),
    "writes in place to a pre-existing tensor": recursion("buffer.add_(1)"),
    "deletes an attribute": recursion("node.other = 1; del node.other"),
    "writes values of several kinds under one name": recursion(
        "node.state = None", "node.state = v"
    ),
    "writes through a property": recursion("node.shown = 2.0"),
    "writes attributes with gradients due outside": recursion("node.state = v * 2"),
    "more than the sum of its children's stacked results": recursion(
        given="torch.stack([go(child, v) for child in node.children]).amax(0)"
    ),
    "asks for `requires_grad`, which differs from activation to activation": recursion(
        "if node.label == 2: return torch.ones(4)",
        "b = go(node.right, v)",
        "go(node.left, v) + b * (2 if b.requires_grad else 3)",
    ),
    "is given a leaf, or gives one back": recursion("if node.label == 2: return w"),
    "parameters that some nodes use, in loops over children": recursion(
        inner="for child in node.children: v = v + (w if child.label else v)",
        first="torch.ones(4)",
        result=".sum().backward()",
    ),
    "parameters that some nodes use, by way of a node's attribute": recursion(
        inner="node.state = param if node.label else w",
        given="go(node.left, v) * node.state + go(node.right, v)",
    ),
    "parameters that some nodes use, on what an activation is given": recursion(
        given="go(node.left, param if node.label else v) + go(node.right, v)"
    ),
    "nodes as keys of dicts": recursion("states[node] = v"),
    "`loss = 0` in front of a loop over children that adds tensors": recursion(
        inner="loss = 0\n    for child in node.children: loss = loss + go(child, v)", given="loss"
    ),
    "children's results transposed": recursion(
        inner="below, same = zip(*map(lambda child: (go(child, v), v), node.children))",
        given="sum(below) + sum(same)",
    ),
    "text in nodes other than compared with constants": recursion("v = v * len(node.text)"),
    "loop in the recursion that prints": recursion(
        inner="for child in node.children: print(child.label)"
    ),
}


# --- the tests -------------------------------------------------------------------------------------


def program(text: str, parameters: str = "x, n, w") -> Callable:
    """A function with these statements; it returns what the last one gives."""
    *before, last = text.split("\n")
    with contextlib.suppress(SyntaxError):
        compile(last, "", "eval")
        last = f"return {last}"
    lines = [f"def f({parameters}):", *(f"    {line}" for line in [*before, last])]
    file = f"<{text}>"
    linecache.cache[file] = (len(text), None, [f"{line}\n" for line in lines], file)
    names = space()
    exec(compile("\n".join(lines), file, "exec"), names)
    return names["f"]


def program_of(what: str, example: str) -> Callable | None:
    """The program of a row, if there is one."""
    if what in PROGRAMS:
        return PROGRAMS[what]()
    found = re.fullmatch(r"`([^`…]+)`", example)
    return program("\n".join(found[1].split("; "))) if found else None


RUN = [row for row in rows() if program_of(*row[:2])]


def test_programs_have_rows():
    assert set(PROGRAMS) <= {what for what, *_ in rows()}
    assert len(RUN) > 70


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("row", RUN, ids=lambda row: row[0])
def test_gap(row, capsys):
    what, example, reason, _ = row
    codes, graphs = reasons(program_of(what, example))
    if reason == FOLLOWED:
        assert graphs > 1
    else:
        assert reason.strip("`") in codes


def test_no_sentence_is_long():
    text = re.sub(r"`[^`]*`", "code", PAGE.read_text())
    for line in text.split("\n\n") + text.split("\n"):
        cells = line.split(" | ") if line.startswith("|") else re.split(r"(?<=[.:])\s", line)
        for sentence in cells if "\n|" not in line else []:
            assert len(sentence.split()) <= 30, sentence
