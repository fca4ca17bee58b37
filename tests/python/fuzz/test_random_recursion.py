"""Random recursions over trees with lists of children do the same eagerly and converted: leaves with and
without a gradient, sums that begin with zeros, stacks, weights that only some nodes use, `no_grad`; those
that write attributes of the nodes and read those of children."""

import os
import random

from random_programs import compare_program

PROGRAMS = int(os.environ.get("TORCHJANUS_RANDOM_RECURSIONS", "40"))

HEAD = """
import random
import torch
import torchjanus
from torch import nn
from differential import Program
from random_trees import random_children


class Node:
    def __init__(self, kind, value, children):
        self.kind, self.value, self.children = kind, value, children


def tree(size):
    children = random_children(size, tree)
    return Node(random.choice("ab"), random.randrange(20) / 10, children)


def build():
    layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])
    calls = [(tree(random.randrange(1 if i % 9 == 8 else 2, 8)), torch.randn(3)) for i in range(14)]
"""


class Writer:
    """The text of one program."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.lines: list[str] = []

    def expression(self, depth: int, leaves: list[str]) -> str:
        def part() -> str:
            return self.expression(depth - 1, leaves)

        if depth == 0:
            return self.random.choice(leaves)
        form = self.random.choice(
            ["{0}", "torch.tanh({0})", "layers[0]({0})", "layers[1]({0})", "layers[2]({0})", "({0} + {1})",
             "({0} * node.value)", "({0} * {1} * 0.5)", "({0}).detach()", "torch.sin({0})"]
        )  # fmt: skip
        return form.format(part(), part())

    def add(self, indent: int, line: str) -> None:
        self.lines.append("    " * indent + line)

    def write_children(self, call: str) -> None:
        """`h` is made of what the children give."""
        form = self.random.randrange(6)
        if form in (2, 3) or self.random.random() < 0.5:
            self.add(2, "if not node.children:")
            self.add(3, f"return {self.expression(2, ['x'])} * 1.0")
        if form in (0, 1):
            start = ["torch.zeros(3)", "x * 0.1", "layers[0](x)"]
            self.add(2, f"h = {'torch.zeros(3)' if form == 1 else self.random.choice(start)}")
            self.add(2, "for child in node.children:")
            added = self.expression(2, [call, "x", call])
            self.add(3, f"h += {added}" if form == 1 else f"h = h + {added}")
        elif form == 2:
            reduced = self.random.choice(["sum(0)", "mean(0)", "sum(0, keepdim=True)[0]"])
            self.add(2, f"h = torch.stack([{call} for child in node.children]).{reduced}")
        elif form == 3:
            self.add(2, f"h = sum([{self.expression(1, [call])} for child in node.children])")
        elif form == 4:
            self.add(2, f"states = [{call} for child in node.children]")
            self.add(2, "h = torch.zeros(3)")
            self.add(2, "for state in states:")
            self.add(3, f"h = h + {self.expression(1, ['state'])}")
        else:
            self.add(2, "h = x")
            self.add(2, "if len(node.children) > 0:")
            self.add(3, "child = node.children[0]")
            self.add(3, f"h = {self.expression(2, [call, 'x'])}")

    def write_return(self) -> None:
        known = ["x", "h", "h"]
        if self.random.random() < 0.3:
            self.add(2, "with torch.no_grad():")
            self.add(3, f"k = {self.expression(2, known)} * 1.0")
            known.append("k")
        test = self.random.choice(["node.kind == 'a'", "node.value > 1.0", None])
        if test is not None:
            self.add(2, f"if {test}:")
            self.add(3, f"h = {self.expression(2, known)} * 1.0")
        self.add(2, f"return {self.expression(3, known)} * 1.0 + h * 0.5")

    def write_attributes(self, values: list[str]) -> None:
        for name in ("state", "seen", "state"):
            if self.random.random() < 0.6:
                value = self.random.choice(values)
                if name == "seen":
                    value = self.random.choice(["True", "len(node.children)", "node.value * 2"])
                self.add(2, f"node.{name} = {value}")

    def write_states_of_children(self, call: str) -> None:
        self.add(2, "node.state = x * 0.3")
        self.add(2, "h = x * 0.1")
        self.add(2, "for child in node.children:")
        self.add(3, call)
        self.add(3, f"h = h + {self.expression(1, ['child.state'])}")

    def write(self, writes: bool = False) -> str:
        self.add(1, "def go(node, x):")
        call = f"go(child, {self.random.choice(['x', 'x * 0.5', 'torch.sin(x)'])})"
        if writes and self.random.random() < 0.5:
            self.write_states_of_children(call)
        else:
            self.write_children(call)
        if writes:
            self.write_attributes(["h * 1.0", "h.detach() * 1.0", "torch.tanh(h)", "x * 2"])
        self.write_return()
        self.write_step()
        return HEAD + "\n".join(self.lines) + "\n"

    def write_step(self) -> None:
        self.add(1, "def step(root, x):")
        self.add(2, "layers.zero_grad()")
        self.add(2, "loss = go(root, x).square().sum()")
        if self.random.random() < 0.5:
            self.add(2, "if loss.requires_grad:")
        else:
            self.add(2, "if True:")
        self.add(3, "loss.backward()")
        self.add(2, "return loss.detach()")
        self.add(1, "return Program(step, calls, watch=[layers])")


class OutsideWriter(Writer):
    """Several results whose gradients are due outside, which the caller hooks, keeps or asks for."""

    USES = (
        "for one in live: one.retain_grad()\nlive[-1].square().sum().backward()\nreturn [one.grad for one in live]",
        "live[0].register_hook(lambda g: g * 3)\nsum(one.sum() * (i + 1) for i, one in enumerate(live)).backward()",
        "live[-1].square().sum().backward(retain_graph=True)\nlive[0].register_hook(lambda g: g * 2)\n"
        "live[-1].square().sum().backward()",
        "return torch.autograd.grad(live[-1].square().sum(), live, allow_unused=True)",
        "sum(one.sum() * (i + 1) for i, one in enumerate(live)).backward()",
    )  # fmt: skip

    def write_step(self) -> None:
        choice = self.random.choice
        self.add(1, "def outputs(node, x):")
        self.add(2, f"a = {choice(['x * 2', 'layers[0](x)', 'layers[0](x).tanh()'])}")
        self.add(2, f"b = go(node, {choice(['a', 'x'])})")
        self.add(2, f"c = {choice(['layers[1](b)', 'b * 2', 'go(node, b)', 'layers[2](b) * a'])}")
        self.add(2, f"d = {self.expression(2, ['a', 'b', 'c', 'c'])} * 1.0")
        self.add(2, f"return {choice(['a, b, c, d', 'b, c', 'a, c', 'b, d', 'c, b', 'c, a, d'])}")
        self.add(1, "def use(results):")
        self.add(2, "layers.zero_grad()")
        self.add(2, "live = [one for one in results if one.requires_grad]")
        self.add(2, "if not live: return None")
        for line in choice(self.USES).split("\n"):
            self.add(2, line)
        self.add(1, "def step_with(function):")
        self.add(2, "return lambda node, x: use(function(node, x))")
        self.add(1, "def convert(step):")
        self.add(2, "converted = torchjanus.function(outputs)")
        self.add(2, "return step_with(converted), converted")
        program = "Program(step_with(outputs), calls, watch=[layers], convert=convert)"
        self.add(1, f"return {program}")


class LaterWriter(Writer):
    """States with gradients that are written to nodes, and a backward() of some of them after the run."""

    def write_step(self) -> None:
        self.add(1, "def train(root, x):")
        self.add(2, "layers.zero_grad()")
        self.add(2, "loss = go(root, x).square().sum()")
        self.add(2, "if loss.requires_grad:")
        self.add(3, "loss.backward()")
        self.add(2, "return loss.detach()")
        self.add(1, "def each(node):")
        self.add(2, "return [node] + [below for child in node.children for below in each(child)]")
        self.add(1, "def again(node):")
        self.add(2, "state = getattr(node, 'state', None)")
        self.add(2, "if state is None or not state.requires_grad: return None")
        self.add(2, "try: state.sum().backward()")
        self.add(2, "except RuntimeError: return 'raised'")
        self.add(2, "return 'computed'")
        self.add(1, "def step_with(function):")
        nodes = self.random.choice(["each(root)", "reversed(each(root))", "each(root)[-1:]"])
        self.add(2, f"return lambda root, x: (function(root, x), [again(n) for n in {nodes}])")
        self.add(1, "def convert(step):")
        self.add(2, "converted = torchjanus.function(train)")
        self.add(2, "return step_with(converted), converted")
        program = "Program(step_with(train), calls, watch=[layers], convert=convert)"
        self.add(1, f"return {program}")


def compare_all(
    tmp_path, programs: int, writes: bool, writer: type[Writer] = Writer, share: float = 0.4
) -> None:
    converted, different = 0, []
    for seed in range(programs):
        text = writer(seed).write(writes)
        outcome = compare_program(text, tmp_path, f"{writer.__name__}_{writes}_{seed}")
        converted += outcome.hits > 3
        if outcome.kind != "same":
            different.append(f"seed {seed}: {outcome.kind}: {outcome.message[:600]}\n{text}")
    assert not different, "\n".join(different)
    assert converted > share * programs


def test_random_recursions(tmp_path):
    compare_all(tmp_path, PROGRAMS, writes=False)


def test_random_recursions_that_write(tmp_path):
    compare_all(tmp_path, PROGRAMS // 2, writes=True)


def test_random_recursions_of_several_results(tmp_path):
    compare_all(tmp_path, PROGRAMS // 2, writes=False, writer=OutsideWriter)


def test_random_recursions_whose_states_are_used_later(tmp_path):
    """Few keep their graph: most read or return only some of the states."""
    compare_all(tmp_path, PROGRAMS // 2, writes=True, writer=LaterWriter, share=0.1)
