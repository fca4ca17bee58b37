"""The text of random programs that mix kinds of statements, written from a seed.

Which kinds of statements occur is drawn for each program anew, so that small mixtures are tried as
well as large ones. `random_effects.py` writes programs about effects with the same means.
"""

import collections
import contextlib
import random
from collections.abc import Iterator
from typing import Any

from lazy_looks import LOOKS

FEATURES = (
    "views", "writes", "branches", "tensor_branches", "for_loops", "while_loops", "jumps", "lists",
    "dicts", "tuples", "objects", "object_writes", "globals", "closures", "module", "module_state",
    "helpers", "recursion", "numbers", "random", "dropout", "python_random", "print", "backward",
    "deques", "counters", "sets", "rearranging",
    "optimizer", "grad_function", "no_grad", "raises", "tries", "item", "comprehensions", "strings",
    "shape_changes", "number_changes", "flag_changes", "dtype_changes", "outside_changes", "none",
    "growing_lists", "loop_returns", "operators", "leaves",
)  # fmt: skip

# Of a matrix, a matrix of the same size: operators that sort, choose, pad, resample, normalise.
OPERATORS = (
    "{}.sort(0)[0]", "{}.sort(1, descending=True).values", "{}.cumsum(0)", "{}.cumsum(1)",
    "{}.tanh().cumprod(1)", "{}.logcumsumexp(0)", "{}.cummax(1).values", "{}.topk(4, 1)[0]",
    "{}.gather(1, torch.tensor([[1, 3, 0, 2]]))", "{}[:, [3, 1, 0, 2]]",
    "{}.index_select(1, torch.tensor([2, 0, 3, 1]))", "{}.tril()", "{}.diff(dim=1, append={}[:, :1])",
    "{}.masked_fill(torch.tensor([True, False, False, True]), 0.25)", "F.pad({}, (1, 0))[:, :4]",
    "F.pad({}[None], (1, 1), mode='reflect')[0, :, 1:5]", "F.layer_norm({}, (4,))",
    "torch.einsum('ij,kj->ik', {}, torch.eye(4))", "torch.cat({}.chunk(2, 1)[::-1], 1)",
    "{}.unfold(1, 2, 2).flatten(1)", "F.avg_pool1d({}[None], 3, 1, 1)[0]",
    "F.interpolate({}[None], scale_factor=2.0)[0, :, ::2]",
    "F.conv1d({}[:, None], torch.full((1, 1, 3), 0.3), padding=1)[:, 0]",
    "(F.embedding({}.argmax(1), torch.eye(4)) * {})", "{}.t().cumsum(0).t()", "{}.t().sort(0)[0].t()",
    "F.normalize({}, dim=1)", "F.gelu({})", "F.log_softmax({}, 1)", "{}.logsumexp(1, keepdim=True).expand(-1, 4)",
    "torch.lerp({}, torch.ones(4), 0.3)", "{}.repeat_interleave(2, 0)[::2]", "{}.flip(0).roll(1, 1)",
    "{}.expand(2, -1, -1)[1]", "{}.unsqueeze(2).transpose(1, 2).squeeze(1)",
    "({}.prod(1, keepdim=True).tanh() + torch.zeros(4))",
    "({}.std(1, keepdim=True) * torch.ones(4))", "F.leaky_relu({}, 0.1)", "{}.nan_to_num().clamp(min=-2)",
    "({} @ torch.eye(4).flip(0))", "torch.addmm(torch.ones(4), {}, torch.eye(4))", "{}.renorm(2, 0, 1.5)",
)  # fmt: skip

HEAD = """\
import itertools
import math
import random
from collections import Counter, defaultdict, deque

import torch
import torch.nn.functional as F
from differential import Program
from random_programs import Shown
from torch import nn

GAIN = 0.5
COUNT = 0
TABLE = {"gain": 0.75, "shift": 0.25}
HISTORY = []
RECENT = deque([0.5, 1.5], maxlen=2)
SEEN = Counter()
"""


class Writer:
    """Writes one function body after another; knows which variables of which kind are in scope.

    Kinds: matrix (B×4), vector (4), scalar (a 0-d tensor), int, float, bool, matrices (a list),
    numbers (a list of floats), named (a dict of floats), pair (a tuple of a matrix and a float),
    maybe (a matrix or None).
    """

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        share = self.random.choice((0.15, 0.3, 0.5, 0.8))
        self.features = {name for name in FEATURES if self.random.random() < share}
        # Drawn apart: the programs of earlier seeds stay what they were.
        self.apart = random.Random(f"a second argument: {seed}")
        self.has_two_arguments = self.apart.random() < 0.3
        self.looks = random.Random(f"looks: {seed}").choice(LOOKS)
        self.lines: list[str] = []
        self.scopes: list[dict[str, list[str]]] = []
        self.depth = 0
        self.loops: list[int] = []
        self.fresh = 0
        self.in_step = False
        self.may_call_helpers = False
        self.budget = 0

    # text
    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextlib.contextmanager
    def block(self, head: str) -> Iterator[None]:
        """An indented block whose variables end with it."""
        self.line(head)
        self.depth += 1
        self.scopes.append(collections.defaultdict(list))
        try:
            yield
        finally:
            self.scopes.pop()
            self.depth -= 1

    def name(self, kind: str) -> str:
        self.fresh += 1
        return f"{kind[0]}{self.fresh}"

    def declare(self, kind: str, name: str) -> None:
        self.scopes[-1][kind].append(name)

    def known(self, kind: str) -> list[str]:
        return [name for scope in self.scopes for name in scope.get(kind, [])]

    # choices
    def has(self, feature: str) -> bool:
        return feature in self.features

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def pick(self, *options: Any) -> Any:
        return self.random.choice(options)

    def one(self, *makers: Any) -> str:
        """The text of one of several ways to write something; None stands for a missing feature."""
        maker = self.random.choice([each for each in makers if each])
        return maker if isinstance(maker, str) else maker()

    def when(self, feature: str, maker: Any) -> Any:
        return maker if self.has(feature) else None

    # --- expressions
    def expression(self, kind: str, depth: int = 2) -> str:
        return getattr(self, f"make_{kind}")(depth)

    def variable(self, kind: str, otherwise: str) -> str:
        names = self.known(kind)
        return self.random.choice(names) if names else otherwise

    def make_matrix(self, depth: int) -> str:
        leaf = lambda: self.variable("matrix", "torch.ones(2, 4)")  # noqa: E731
        if depth <= 0 or self.chance(0.25):
            return leaf()
        m = lambda: self.make_matrix(depth - 1)  # noqa: E731
        v = lambda: self.make_vector(depth - 1)  # noqa: E731
        s = lambda: self.make_scalar(depth - 1)  # noqa: E731
        f = lambda: self.make_float(depth - 1)  # noqa: E731
        return self.one(
            lambda: f"({m()} {self.pick('+', '-', '*')} {m()})",
            lambda: f"({m()} {self.pick('+', '-', '*')} {v()})",
            lambda: f"({m()} {self.pick('+', '*')} {s()})",
            lambda: f"({m()} {self.pick('+', '*')} {f()})",
            lambda: f"({f()} {self.pick('-', '*')} {m()})",
            lambda: f"{self.pick('torch.tanh', 'F.relu', 'torch.sin', 'torch.sigmoid')}({m()})",
            lambda: f"{m()}.{self.pick('tanh()', 'abs()', 'softmax(1)', 'clamp(-1, 1)', 'cos()')}",
            lambda: f"torch.where({m()} > {f()}, {m()}, {m()})",
            lambda: f"{self.pick('torch.maximum', 'torch.minimum')}({m()}, {m()})",
            lambda: f"({m()} / ({m()}.abs() + 1))",
            lambda: f"torch.cat([{leaf()}[:, 2:], {leaf()}[:, :2]], 1)",
            lambda: f"torch.stack([{leaf()}, {leaf()}]).mean(0)",
            lambda: f"({leaf()} - {leaf()}.mean(0, keepdim=True))",
            lambda: f"({m()} if {self.make_bool(0)} else {m()})",
            self.when("module", lambda: f"net({m()})" if self.in_step else leaf()),
            self.when("views", lambda: f"{leaf()}.{self.pick('t().t()', 'flip(1)', 'roll(1, 0)')}"),
            self.when("views", lambda: f"{leaf()}.reshape(-1).view(-1, 4)"),
            self.when("random", lambda: f"torch.{self.pick('rand', 'randn')}_like({leaf()})"),
            self.when("dropout", lambda: f"F.dropout({leaf()}, 0.5)"),
            self.when("operators", lambda: self.random.choice(OPERATORS).replace("{}", leaf())),
            self.when("no_grad", lambda: f"{leaf()}.detach()"),
            self.when("helpers", lambda: self.make_help(depth)),
            self.when("objects", lambda: f"cell.mix({m()})" if self.in_step else leaf()),
        )

    def make_help(self, depth: int) -> str:
        if not self.may_call_helpers:
            return self.variable("matrix", "torch.ones(2, 4)")
        matrix = self.make_matrix(depth - 1)
        if self.has("recursion") and self.chance(0.4):
            return f"descend({matrix}, {self.make_int(0)} % 4)"
        return self.one(
            lambda: f"helper({matrix}, {self.make_float(0)})",
            lambda: f"helper({matrix}, k={self.make_float(0)})",
        )

    def make_vector(self, depth: int) -> str:
        if depth <= 0 or self.chance(0.25):
            return self.variable("vector", "torch.arange(4.0)")
        m = lambda: self.variable("matrix", "torch.ones(2, 4)")  # noqa: E731
        return self.one(
            lambda: f"{m()}.{self.pick('mean(0)', 'amax(0)', 'sum(0).tanh()', 'max(0).values')}",
            lambda: f"{m()}[{self.pick('0', '-1', '1')}]",
            lambda: (
                f"({self.make_vector(depth - 1)} {self.pick('+', '*')} {self.make_vector(depth - 1)})"
            ),
            lambda: f"torch.full((4,), {self.make_float(0)})",
            lambda: f"torch.tensor([1.0, -0.5, {self.make_float(0)}, 0.25])",
            self.when("random", lambda: "torch.randn(4)"),
        )

    def make_scalar(self, depth: int) -> str:
        if depth <= 0 or self.chance(0.25):
            return self.variable("scalar", f"{self.variable('matrix', 'torch.ones(2, 4)')}.mean()")
        m = lambda: self.make_matrix(depth - 1)  # noqa: E731
        return self.one(
            lambda: f"{m()}.{self.pick('mean()', 'max()', 'std()', 'sum().tanh()')}",
            lambda: f"({m()} * {m()}).mean()",
            lambda: f"F.mse_loss({m()}, {m()})",
            lambda: f"{self.make_vector(depth - 1)}.norm()",
            lambda: f"{self.variable('matrix', 'torch.ones(2, 4)')}[0, {self.pick(1, -1)}]",
            lambda: (
                f"({self.make_scalar(depth - 1)} {self.pick('+', '*', '-')} {self.make_float(0)})"
            ),
        )

    def make_float(self, depth: int) -> str:
        constant = lambda: self.pick("0.5", "1.5", "-0.25", "0.1", "2.0")  # noqa: E731
        leaf = lambda: self.variable("float", constant())  # noqa: E731
        if depth <= 0 or self.chance(0.3):
            return leaf() if self.chance(0.7) else constant()
        f = lambda: self.make_float(depth - 1)  # noqa: E731
        return self.one(
            leaf,
            self.when("numbers", lambda: f"({f()} {self.pick('+', '-', '*')} {f()})"),
            self.when("numbers", lambda: f"({self.make_int(0)} / {self.pick('3', '4.0')})"),
            self.when("numbers", lambda: f"{self.pick('min', 'max')}({f()}, {f()})"),
            self.when("numbers", lambda: f"abs({f()})"),
            self.when("numbers", lambda: f"({f()} % 1.5)"),
            self.when("numbers", lambda: f"math.{self.pick('sin', 'tanh')}({f()})"),
            self.when("item", lambda: f"{self.make_scalar(0)}.item()"),
            self.when("item", lambda: f"float({self.make_scalar(0)})"),
            self.when("globals", self.pick("GAIN", "TABLE['gain']")),
            self.when("objects", "cell.gain" if self.in_step else constant),
            self.when("python_random", "random.random()"),
            self.when("python_random", lambda: f"random.uniform({f()}, 2.0)"),
            self.when("python_random", "random.choice([0.5, 1.0, 2.0])"),
            self.when("numbers", lambda: f"math.{self.pick('cos', 'expm1', 'atan')}({f()} / 8)"),
            self.when("numbers", lambda: f"round({f()}, 2)"),
            lambda: f"({f()} if {self.make_bool(0)} else {f()})",
        )

    def make_int(self, depth: int) -> str:
        leaf = lambda: self.variable("int", self.pick("2", "3", "1"))  # noqa: E731
        if depth <= 0 or self.chance(0.3):
            return leaf()
        i = lambda: self.make_int(depth - 1)  # noqa: E731
        lists = self.known("matrices") + self.known("numbers")
        return self.one(
            leaf,
            lambda: f"{self.variable('matrix', 'torch.ones(2, 4)')}.shape[{self.pick(0, 1)}]",
            self.when(
                "numbers", lambda: f"({i()} {self.pick('+', '-', '*')} {self.pick(1, 2, 3)})"
            ),
            self.when("numbers", lambda: f"({i()} {self.pick('//', '%')} {self.pick(2, 3)})"),
            self.when("item", lambda: f"int(({self.make_matrix(0)} > 0).sum())"),
            self.when("item", lambda: f"{self.make_matrix(0)}.argmax(1)[0].item()"),
            (lambda: f"len({self.random.choice(lists)})") if lists else None,
            self.when("objects", "cell.count" if self.in_step else leaf),
            self.when("python_random", "random.randint(1, 3)"),
            self.when("sets", lambda: f"len({{1, 2, {self.pick(3, 4)}}} & {{2, 3, 9}})"),
            self.when("globals", "COUNT"),
        )

    def make_bool(self, depth: int) -> str:
        tests = [
            self.variable("bool", "True"),
            f"{self.make_float(depth)} {self.pick('<', '>', '<=')} {self.make_float(0)}",
            f"{self.make_int(depth)} {self.pick('<', '>', '==', '!=')} {self.pick(1, 2, 3, 5)}",
            f"{self.make_int(0)} % {self.pick(2, 3)} == 0",
        ]
        if self.has("tensor_branches"):
            tests += [f"{self.make_scalar(depth)} {self.pick('<', '>')} {self.make_float(0)}"] * 3
            tests.append(
                f"({self.make_matrix(0)} > {self.make_float(0)}).{self.pick('any', 'all')}()"
            )
        if self.has("python_random"):
            tests += [f"random.random() < {self.pick(0.3, 0.5, 0.8)}"] * 2
        if self.known("maybe"):
            tests.append(f"{self.variable('maybe', '')} is {self.pick('None', 'not None')}")
        if self.known("named"):
            tests.append(f"'a' in {self.variable('named', '')}")
        if self.known("numbers"):
            tests.append(self.variable("numbers", ""))
        test = self.random.choice(tests)
        if depth > 0 and self.chance(0.3):
            other = self.make_bool(depth - 1)
            return self.pick(f"{test} and {other}", f"{test} or {other}", f"not ({test})")
        return test

    # --- statements
    def statements(self, count: int) -> None:
        before = len(self.lines)
        for _ in range(count):
            if self.budget <= 0:
                break
            self.budget -= 1
            self.statement()
        if len(self.lines) == before:
            self.line("pass")

    def statement(self) -> None:
        options = [(self.assign, 6), (self.rebind, 3)]
        for feature, method, weight in STATEMENTS:
            if self.has(feature):
                options.append((getattr(self, method), weight))
        methods, weights = zip(*options, strict=True)
        self.random.choices(methods, weights)[0]()

    def assign(self) -> None:
        kind = self.pick("matrix", "matrix", "matrix", "vector", "scalar", "float", "int", "bool")
        text = self.expression(kind)
        name = self.name(kind)
        self.line(f"{name} = {text}")
        self.declare(kind, name)

    def rebind(self) -> None:
        kind = self.pick("matrix", "matrix", "scalar", "float", "int")
        names = [each for each in self.known(kind) if each not in ("x", "n")]
        if not names or (kind == "int" and self.loops):
            return self.assign()
        name = self.random.choice(names)
        if kind == "matrix" and self.chance(0.5):
            self.line(f"{name} = ({name} + {self.make_matrix(1)}).tanh()")
        elif kind == "int":
            self.line(f"{name} = ({self.make_int(1)}) % 7")
        else:
            self.line(f"{name} = {self.expression(kind)}")

    def write(self) -> None:
        name = self.name("matrix")
        self.line(f"{name} = {self.make_matrix(1)}.clone()")
        for _ in range(self.random.randint(1, 3)):
            self.line(
                self.one(
                    lambda: f"{name}.add_({self.make_matrix(0)})",
                    lambda: f"{name}.mul_({self.make_float(0)})",
                    lambda: f"{name} += {self.make_vector(1)}",
                    lambda: f"{name} *= {self.make_float(1)}",
                    lambda: f"{name}[0] = {self.make_vector(1)}",
                    lambda: f"{name}[:, {self.pick('1:', ':2', '::2')}] *= {self.make_float(0)}",
                    lambda: f"{name}[-1, 0] = {self.make_float(1)}",
                    lambda: f"{name}[{name} > {self.make_float(0)}] = 0.25",
                    lambda: f"{name}.clamp_(-1, 1)",
                    lambda: f"{name}.copy_({self.make_matrix(0)})",
                    self.when("views", lambda: f"{name}.view(-1)[0] = {self.make_float(0)}"),
                    self.when("views", lambda: f"{name}.t()[1].add_(0.5)"),
                    self.when("random", lambda: f"{name}.uniform_(-1, 1)"),
                )
            )
        self.declare("matrix", name)

    def view_write(self) -> None:
        base, view = self.name("matrix"), self.name("vector")
        self.line(f"{base} = {self.make_matrix(1)} * 1")
        self.line(f"{view} = {base}[{self.pick('0', '-1', '1')}]")
        self.line(f"{view}.{self.pick('mul_(0.5)', 'add_(1)', 'neg_()', 'zero_()')}")
        self.declare("matrix", base)
        self.declare("vector", view)

    def branch(self) -> None:
        if self.depth > 6:
            return self.assign()
        name, kind = None, self.pick("matrix", "float", "scalar", "")
        if kind and self.chance(0.6):
            name = self.name(kind)
            text = self.expression(kind, 1)
        with self.block(f"if {self.make_bool(1)}:"):
            self.statements(self.random.randint(1, 3))
            if name:
                self.line(f"{name} = {self.expression(kind)}")
            else:
                self.jump()
        if self.chance(0.25):
            with self.block(f"elif {self.make_bool(0)}:"):
                self.statements(2)
                if name:
                    self.line(f"{name} = {self.expression(kind)}")
        if name:
            with self.block("else:"):
                self.line(f"{name} = {text}")
            self.declare(kind, name)
        elif self.chance(0.5):
            with self.block("else:"):
                self.statements(self.random.randint(1, 3))

    def jump(self) -> None:
        if not self.has("jumps") or not self.chance(0.4):
            return
        if self.loops and self.chance(0.7):
            self.line(self.pick("break", "continue"))
        elif self.in_step:
            self.line(f"return {self.make_matrix(0)}")

    def for_loop(self) -> None:
        if len(self.loops) > 1 or self.depth > 6:
            return self.assign()
        accumulator = self.name("matrix")
        self.line(f"{accumulator} = {self.make_matrix(1)}")
        index, item = self.name("int"), self.name("v")
        heads = [(f"for {index} in range({self.pick(2, 3, 4)}):", "int", index)]
        heads.append((f"for {index} in range({self.make_int(0)} % 4):", "int", index))
        heads.append((f"for {index}, {item} in enumerate({accumulator}):", "vector", item))
        heads.append((f"for {item} in {self.variable('matrix', accumulator)}:", "vector", item))
        heads.append((f"for {item} in (0.5, 1.0, -0.5):", "float", item))
        if self.known("matrices"):
            items = self.variable("matrices", "")
            heads.append((f"for {item} in {items}:", "matrix", item))
            heads.append((f"for {index}, {item} in enumerate({items}):", "matrix", item))
            heads.append((f"for {item} in reversed({items}):", "matrix", item))
            heads.append((f"for {item}, {index} in zip({items}, range(3)):", "matrix", item))
        if self.known("named"):
            heads.append((f"for _, {item} in {self.variable('named', '')}.items():", "float", item))
        head, kind, name = self.random.choice(heads)
        self.loops.append(1)
        with self.block(head):
            self.declare(kind, name)
            self.declare("matrix", accumulator)
            self.statements(self.random.randint(1, 3))
            self.line(f"{accumulator} = ({accumulator} + {self.make_matrix(1)}).tanh()")
        self.loops.pop()
        if self.chance(0.15):
            with self.block("else:"):
                self.statements(1)
        self.declare("matrix", accumulator)

    def while_loop(self) -> None:
        if len(self.loops) > 1 or self.depth > 6:
            return self.assign()
        if self.chance(0.4):
            return self.adaptive_loop()
        count, limit, state = self.name("int"), self.pick("3", "4", "n"), self.name("matrix")
        self.line(f"{count} = 0")
        self.line(f"{state} = {self.make_matrix(1)}")
        test = self.pick("", f" and ({self.make_bool(0)})")
        self.loops.append(1)
        with self.block(f"while {count} < {limit}{test}:"):
            self.line(f"{count} += 1")
            self.declare("matrix", state)
            self.statements(self.random.randint(1, 3))
            self.line(f"{state} = ({state} * 0.5 + {self.make_matrix(1)}).tanh()")
        self.loops.pop()
        self.declare("matrix", state)

    def adaptive_loop(self) -> None:
        """As in adaptive computation time: the data says how often."""
        halting, state = self.name("h"), self.name("matrix")
        self.line(f"{state} = {self.make_matrix(1)}")
        self.line(f"{halting} = torch.zeros({state}.shape[0])")
        self.loops.append(1)
        with self.block(f"while {halting}.{self.pick('max', 'min')}() < 1:"):
            self.declare("matrix", state)
            self.line(f"{state} = ({state} + {self.make_matrix(1)}).tanh()")
            self.line(f"{halting} = {halting} + {state}.abs().mean(1).clamp(0.2, 0.6)")
        self.loops.pop()
        self.declare("matrix", state)

    def growing_loop(self) -> None:
        """A list that gets longer in a loop whose iterations vary, and what is made of it."""
        if len(self.loops) > 1 or self.depth > 6:
            return self.assign()
        items, state, count = self.name("grown"), self.name("matrix"), self.name("int")
        start, of_numbers = self.make_matrix(1), self.chance(0.3)
        element = f"{state}.sum().item()" if of_numbers else self.pick(f"{state} * 2", state)
        first = "" if of_numbers or self.chance(0.6) else f"{start} * 1"
        self.line(f"{state} = {start}")
        self.line(f"{items} = [{first}]")
        self.line(f"{count} = 0")
        self.loops.append(1)
        with self.block(
            f"while {count} < {self.pick('3', 'n % 4')} and {state}.abs().max() > 0.1:"
        ):
            self.line(f"{count} += 1")
            self.line(f"{state} = ({state} * 0.6 + {self.make_float(0)}).tanh() * 0.7")
            grow = self.pick(f"{items}.append({element})", f"{items}.insert(0, {element})")
            if self.chance(0.3):
                grow = f"{items}.append({element}) if {state}.mean() > 0.1 else None"
            self.line(grow)
            if self.has("globals") and self.chance(0.3):
                self.line(f"HISTORY.append({count})")
        self.loops.pop()
        self.declare("matrix", state)
        if of_numbers:
            return self.total(self.pick(f"sum({items}) * 1.0", f"float(len({items}))"), "float")
        self.line(f"{count} = len({items})")
        whole = self.pick(
            f"torch.stack({items}).sum(0)", f"torch.stack({items}, 1).mean(1)", f"{items}[-1] * 2",
            f"{items}[0] + 1", f"sum({items})", f"sum({items}[::-1])",
        )  # fmt: skip
        if self.chance(0.3):
            with self.block(f"for each in {self.pick(items, f'reversed({items})')}:"):
                self.line(f"{state} = {state} * 0.5 + each")
        return self.total(f"{whole} if {items} else {state}", "matrix")

    def returning_loop(self) -> None:
        """A function that leaves its loop by `return`, or comes to its end."""
        if self.loops or self.depth > 3:
            return self.assign()
        found, result = self.name("found"), self.name("matrix")
        limit = self.pick("0.2", "0.5", "1.0")
        with self.block(f"def {found}(y):"):
            with self.block(f"for i in range({self.pick('3', 'n % 4')}):"):
                self.line(f"y = y * {self.pick('0.5', '0.7')} - 0.01")
                with self.block(f"if y.abs().max() < {limit}:"):
                    self.line(self.pick("return y * 2", "return y + i"))
            self.line("return y")
        self.line(f"{result} = {found}({self.make_matrix(1)})")
        self.declare("matrix", result)
        return None

    def list_work(self) -> None:
        if self.known("matrices") and self.chance(0.6):
            items = self.variable("matrices", "")
            if items == "cell.items" and not self.has("object_writes"):
                return self.assign()
            if self.loops:  # a loop over the list itself must end
                self.line(f"if len({items}) < 6:")
            self.line(
                "    " * len(self.loops[:1])
                + self.one(
                    lambda: f"{items}.append({self.make_matrix(1)})",
                    lambda: f"{items}[0] = {self.make_matrix(1)}",
                    lambda: f"{items}[-1] = {items}[0] * 0.5",
                    lambda: f"{items}.extend([{self.make_matrix(0)}, {self.make_matrix(0)}])",
                    lambda: f"{items}.insert(0, {self.make_matrix(0)})",
                    lambda: f"{items} = {items} + [{self.make_matrix(0)}]",
                    lambda: f"{items} = {items}[-3:]",
                    lambda: f"{items}.reverse()",
                )
            )
            return None
        if self.chance(0.3):
            name = self.name("numbers")
            self.line(f"{name} = [{self.make_float(0)}, {self.make_float(1)}]")
            self.line(f"{name}.append({self.make_float(1)})")
            self.declare("numbers", name)
            self.total(f"sum({name})", "float")
            return None
        name = self.name("matrices").replace("m", "items")
        self.line(f"{name} = [{self.make_matrix(1)}, {self.make_matrix(0)}]")
        self.declare("matrices", name)
        return self.total(
            self.pick(f"sum({name})", f"torch.stack({name}).sum(0)", f"{name}[-1]"), "matrix"
        )

    def total(self, text: str, kind: str) -> None:
        name = self.name(kind)
        self.line(f"{name} = {text}")
        self.declare(kind, name)

    def dict_work(self) -> None:
        if self.known("named") and self.chance(0.7):
            table = self.variable("named", "")
            self.line(
                self.one(
                    lambda: f"{table}['a'] = {self.make_float(1)}",
                    lambda: f"{table}['b'] = {table}.get('b', 0.0) + {self.make_float(0)}",
                    lambda: f"{table}.update(c={self.make_float(0)})",
                    lambda: f"{table}.setdefault('d', {self.make_float(0)})",
                    lambda: f"{table}.pop('b', None)",
                )
            )
            return self.total(f"sum({table}.values())", "float")
        name = self.name("d")
        self.line(f"{name} = {{'a': {self.make_float(0)}, 'b': {self.make_float(1)}}}")
        self.declare("named", name)
        return None

    def deque_work(self) -> None:
        if self.in_step and self.has("globals") and self.chance(0.5):
            self.line(f"RECENT.append({self.make_float(1)})")
            return self.total("sum(RECENT) / len(RECENT)", "float")
        name = self.name("queue")
        self.line(f"{name} = deque([{self.make_float(0)}, {self.make_float(1)}], maxlen=3)")
        for _ in range(self.pick(1, 2, 3)):
            self.line(
                self.one(
                    lambda: f"{name}.append({self.make_float(1)})",
                    lambda: f"{name}.appendleft({self.make_float(0)})",
                    lambda: f"{name}.extend([{self.make_float(0)}, 1.0])",
                    f"{name}.rotate(1)",
                    f"{name}.reverse()",
                )
            )
        return self.total(
            self.pick(f"sum({name})", f"{name}.popleft()", f"{name}[-1]", f"max({name})"), "float"
        )

    def counter_work(self) -> None:
        if self.in_step and self.has("globals") and self.chance(0.5):
            self.line(
                self.one(
                    "SEEN['steps'] += 1",
                    "SEEN.update(['a', 'b', 'a'])",
                    lambda: f"SEEN['n'] += {self.make_int(0)}",
                )
            )
            return self.total("SEEN['steps'] + SEEN['none'] * 2", "int")
        name = self.name("groups")
        self.line(f"{name} = defaultdict({self.pick('float', 'int')})")
        for _ in range(2):
            self.line(f"{name}[{self.pick(1, 2)!r}] += {self.make_int(0)}")
        return self.total(f"sum({name}.values()) * 1.0", "float")

    def set_work(self) -> None:
        name = self.name("seen")
        self.line(f"{name} = {{1, {self.pick(2, 3)}}}")
        for _ in range(self.pick(1, 2)):
            self.line(
                self.one(
                    f"{name}.add({self.pick(1, 5)})",
                    f"{name}.discard(1)",
                    f"{name} |= {{7}}",
                    f"{name}.update([2, 8])",
                    f"{name} = {name} - {{1}}",
                )
            )
        return self.total(f"len({name}) + (2 in {name})", "int")

    def rearranged_work(self) -> None:
        numbers = f"[{self.make_float(0)}, {self.make_float(1)}, 2.0]"
        return self.total(
            self.one(
                f"sum(itertools.accumulate({numbers}))",
                f"sum(a * b for a, b in itertools.combinations({numbers}, 2))",
                f"sum(a - b for a, b in itertools.pairwise({numbers}))",
                f"sum(itertools.islice({numbers}, 1, None))",
                f"max(itertools.chain({numbers}, [0.5]))",
            ),
            "float",
        )

    def tuple_work(self) -> None:
        first, second = self.name("matrix"), self.name("float")
        self.line(
            self.one(
                lambda: f"{first}, {second} = {self.make_matrix(1)}, {self.make_float(1)}",
                lambda: (
                    f"({first}, *_), {second} = ({self.make_matrix(0)}, 1, 2), {self.make_float(1)}"
                ),
                lambda: f"{second}, {first} = ({self.make_float(0)}, {self.make_matrix(1)})[:2]",
            )
        )
        self.declare("matrix", first)
        self.declare("float", second)
        names = self.known("matrix")
        if self.chance(0.4) and len(names) > 2:
            one, other = self.random.sample([name for name in names if name != "x"], 2)
            self.line(f"{one}, {other} = {other}, {one}")

    def comprehension(self) -> None:
        self.total(
            self.one(
                lambda: f"sum([{self.make_matrix(0)} * c for c in (0.5, 0.25)])",
                lambda: (
                    f"torch.stack([row * {self.make_float(0)} for row in {self.make_matrix(0)}])"
                ),
                lambda: f"sum({self.make_matrix(0)} * i for i in range(3) if i % 2 == 0)",
            ),
            "matrix",
        )

    def none_work(self) -> None:
        name = self.name("maybe")
        self.line(f"{name} = {self.make_matrix(0)} if {self.make_bool(1)} else None")
        self.declare("maybe", name)
        result = self.name("matrix")
        self.line(f"{result} = {self.make_matrix(0)} if {name} is None else {name} * 2")
        self.declare("matrix", result)

    def object_write(self) -> None:
        if not self.in_step or not self.has("objects"):
            return self.assign()
        self.line(
            self.one(
                "cell.count += 1",
                lambda: f"cell.gain = 0.9 * cell.gain + 0.1 * {self.make_float(0)}",
                lambda: f"cell.state = 0.9 * cell.state + 0.1 * {self.make_vector(1)}.detach()",
                lambda: f"cell.state.mul_(0.5).add_({self.make_vector(0)}.detach())",
                lambda: f"cell.log.append({self.make_float(0)})",
                lambda: f"cell.table['last'] = {self.make_float(1)}",
                lambda: f"cell.last = {self.make_matrix(1)}.detach()",
                lambda: f"cell.tick({self.make_float(0)})",
                lambda: f"setattr(cell, 'extra', {self.make_float(0)})",
                "cell.inner.count -= 1",
                "cell.inner, cell.other = cell.other, cell.inner",
            )
        )
        return None

    def object_read(self) -> None:
        if not self.in_step:
            return self.assign()
        kind, text = self.pick(
            ("vector", "cell.state * 0.5"), ("float", "cell.gain"), ("int", "cell.count % 5"),
            ("float", "cell.scaled"), ("int", "cell.inner.count"), ("matrix", "cell(x)"),
            ("matrix", "cell[1] * x"), ("vector", "(cell + x).mean(0)"),
        )  # fmt: skip
        return self.total(text, kind)

    def module_write(self) -> None:
        if not self.in_step or not self.has("module"):
            return self.assign()
        self.line(
            self.one(
                "net.steps += 1",
                lambda: f"net.running.mul_(0.9).add_(0.1 * {self.make_vector(1)}.detach())",
                lambda: f"net.scale = 0.9 * net.scale + 0.1 * {self.make_float(0)}",
                lambda: f"net.running = (net.running + {self.make_vector(0)}.detach()) / 2",
            )
        )
        return None

    def global_write(self) -> None:
        if not self.in_step:
            return self.assign()
        self.line(
            self.one(
                "COUNT += 1",
                lambda: f"GAIN = 0.9 * GAIN + 0.1 * {self.make_float(0)}",
                lambda: f"TABLE['gain'] = (TABLE['gain'] + {self.make_float(0)}) / 2",
                lambda: f"HISTORY.append({self.make_float(0)})",
            )
        )
        return None

    def closure_write(self) -> None:
        if not self.in_step:
            return self.assign()
        self.line(
            self.one(
                lambda: f"total = 0.9 * total + 0.1 * {self.make_float(0)}",
                "rounds += 1",
                lambda: f"carried = (carried + {self.make_vector(1)}.detach()).tanh()",
            )
        )
        return None

    def print_work(self) -> None:
        self.line(
            self.one(
                lambda: f"print('float', f'{{{self.make_float(0)}:.3f}}')",
                lambda: f"print('int', {self.make_int(1)})",
                # Where what is added up cancels out, the order of the sum decides the sign.
                lambda: f"print(f'mean {{abs({self.variable('matrix', 'x')}.mean().item()):.3f}}')",
                lambda: f"print('shape', tuple({self.variable('matrix', 'x')}.shape), end=';')",
            )
        )

    def string_work(self) -> None:
        name = self.name("s")
        self.line(f"{name} = f'{{{self.make_int(0)}}}-{self.pick('a', 'b')}'")
        self.total(
            f"1.0 if {name}.{self.pick('startswith', 'endswith')}('2') else len({name}) / 2",
            "float",
        )

    def backward_work(self) -> None:
        if not self.in_step or self.loops:
            return self.assign()
        loss = self.name("loss")
        if self.has("optimizer"):
            self.line("optimizer.zero_grad()")
        self.line(f"{loss} = (net({self.make_matrix(1)}) * {self.make_matrix(1)}).pow(2).mean()")
        self.line(f"{loss}.backward()")
        if self.has("optimizer"):
            self.line("optimizer.step()")
        self.total(f"{loss}.detach()", "scalar")
        return None

    def grad_function_work(self) -> None:
        if not self.in_step:
            return self.assign()
        loss, gradients = self.name("loss"), self.name("g")
        self.line(f"{loss} = (net({self.make_matrix(1)}) * {self.make_matrix(1)}).tanh().mean()")
        self.line(f"{gradients} = torch.autograd.grad({loss}, [*net.parameters()])")
        self.total(f"{gradients}[0].mean()", "scalar")
        return None

    def leaf_work(self) -> None:
        """A gradient of a tensor that existed before the call, which is then looked at or used."""
        if not self.in_step or self.loops:
            return self.assign()
        of = self.pick(
            "cell.weight", "cell.weight.t()", "cell.weight[:2]", "cell.weight[:, ::2].t()"
        )
        if self.has("operators") and self.chance(0.8):
            of = self.random.choice(OPERATORS).replace("{}", "cell.weight" + self.pick("", ".t()"))
        if self.chance(0.6):
            self.line("cell.weight.grad = None")
        result = self.name("matrix")
        self.line(f"{result} = {of}")
        self.line(f"({result} * {result}.detach().cos()).{self.pick('sum', 'mean')}().backward()")
        with self.block("with torch.no_grad():"):
            self.line(
                self.pick(
                    "cell.weight -= 0.1 * cell.weight.grad.clamp(-1, 1)",
                    "cell.weight.grad.clamp_(-1, 1)",
                    "cell.weight.grad = cell.weight.grad.t()",
                    "cell.state = cell.state + cell.weight.grad.sum(0).tanh()",
                    f"{result}.detach_()",
                )
            )
        self.total("cell.weight.grad.norm()", "scalar")
        return None

    def no_grad_work(self) -> None:
        with self.block(f"with torch.{self.pick('no_grad', 'enable_grad')}():"):
            self.statements(2)

    def raise_work(self) -> None:
        error = self.pick("ValueError", "RuntimeError", "KeyError")
        if self.chance(0.3):
            self.line(f"assert {self.make_int(0)} != 5, 'five'")
            return
        with self.block(
            f"if {self.make_int(0)} == {self.pick(4, 5)} or {self.make_float(0)} > 40:"
        ):
            self.line(f"raise {error}(f'value {{{self.make_int(0)}}}')")

    def try_work(self) -> None:
        with self.block("try:"):
            self.statements(2)
            if self.chance(0.4):
                with self.block(f"if {self.make_bool(0)}:"):
                    self.line("raise ValueError('chosen')")
            elif self.chance(0.3):
                self.line(f"{self.make_matrix(0)} @ {self.make_matrix(0)}")
        error = self.pick("ValueError", "RuntimeError", "Exception as error")
        handled = self.chance(0.7)
        if handled:
            with self.block(f"except {error}:"):
                self.statements(1)
        if not handled or self.chance(0.3):
            with self.block("finally:"):
                self.statements(1)


STATEMENTS = (
    ("writes", "write", 3), ("views", "view_write", 2), ("branches", "branch", 5),
    ("for_loops", "for_loop", 4), ("while_loops", "while_loop", 3), ("lists", "list_work", 4),
    ("dicts", "dict_work", 3), ("tuples", "tuple_work", 2), ("comprehensions", "comprehension", 2),
    ("none", "none_work", 2), ("growing_lists", "growing_loop", 3),
    ("loop_returns", "returning_loop", 2), ("object_writes", "object_write", 4), ("objects", "object_read", 3),
    ("module_state", "module_write", 3), ("globals", "global_write", 2),
    ("closures", "closure_write", 3), ("print", "print_work", 2), ("strings", "string_work", 1),
    ("backward", "backward_work", 2), ("grad_function", "grad_function_work", 1),
    ("no_grad", "no_grad_work", 1), ("raises", "raise_work", 1), ("tries", "try_work", 1),
    ("deques", "deque_work", 2), ("counters", "counter_work", 2), ("sets", "set_work", 1),
    ("rearranging", "rearranged_work", 1), ("leaves", "leaf_work", 3),
)  # fmt: skip


# --- whole programs -------------------------------------------------------------------------------

CELL = """
class Inner:
    def __init__(self, count):
        self.count = count


class Cell:
    def __init__(self):
        self.state = torch.ones(4)
        self.weight = torch.linspace(-1.5, 2, 16).sin().view(4, 4).requires_grad_()
        self.count = 0
        self.gain = 0.5
        self.log = []
        self.table = {}
        self.inner = Inner(3)
        self.other = Inner(5)

    @property
    def scaled(self):
        return self.gain * 2

    def tick(self, value):
        self.count += 1
        self.table["tick"] = value

    def __call__(self, x):
        return x * self.gain + self.state

    def __getitem__(self, index):
        return self.state[index]

    def __add__(self, x):
        return x + self.state
"""


# Two arguments, and how they have to do with each other.
TWO = """

def two(way, x):
    if way == "same":
        return x, x
    if way == "view":
        return x, x[:]
    if way == "parts":
        both = torch.cat([x.detach(), x.detach() * 2])
        return both[: len(x)], both[len(x) :]
    return x, torch.randn_like(x).requires_grad_(x.requires_grad)
"""


def write_program(seed: int) -> str:
    """The text of the mixed program of this seed."""
    writer = Writer(seed)
    writer.lines = [*HEAD.splitlines(), *CELL.splitlines()]
    if writer.has_two_arguments:
        writer.lines += TWO.splitlines()
    write_mix(writer)
    write_module(writer)
    write_helpers(writer)
    write_build(writer)
    return "\n".join(writer.lines) + "\n"


@contextlib.contextmanager
def function(writer: Writer, head: str, budget: int, **parameters: str) -> Iterator[None]:
    """A function: nothing of the surroundings is in scope but what its parameters give."""
    scopes, writer.scopes = writer.scopes, []
    writer.budget = budget
    with writer.block(head):
        for name, kind in parameters.items():
            writer.declare(kind, name)
        yield
    writer.scopes = scopes


def write_mix(writer: Writer) -> None:
    writer.depth = 1
    writer.line("")
    with function(writer, "def mix(self, x):", 2, x="matrix"):
        writer.declare("vector", "self.state")
        writer.declare("float", "self.gain")
        writer.statements(2)
        if writer.has("object_writes") and writer.chance(0.6):
            writer.line(
                writer.pick("self.count += 1", "self.gain *= 0.9", "self.log.append(self.count)")
            )
        writer.line(f"return {writer.make_matrix(2)}")
    writer.depth = 0


def write_module(writer: Writer) -> None:
    writer.lines += [
        "", "", "class Net(nn.Module):", "    def __init__(self):", "        super().__init__()",
        "        self.first = nn.Linear(4, 3)", "        self.second = nn.Linear(3, 4)",
        "        self.weight = nn.Parameter(torch.randn(4) * 0.3)",
        "        self.register_buffer('running', torch.zeros(4))",
        "        self.scale = 0.8", "        self.steps = 0",
        f"        self.drop = nn.Dropout({0.3 if writer.has('dropout') else 0.0})",
        f"        self.norm = {writer.pick('nn.Identity()', 'nn.LayerNorm(4)', 'nn.BatchNorm1d(4)')}",
        "",
    ]  # fmt: skip
    writer.depth = 1
    with function(writer, "def forward(self, x):", 3, x="matrix"):
        writer.declare("vector", "self.weight")
        writer.declare("vector", "self.running")
        writer.declare("float", "self.scale")
        writer.line("hidden = self.drop(self.second(torch.tanh(self.first(x))))")
        writer.declare("matrix", "hidden")
        writer.statements(writer.random.randint(0, 2))
        if writer.has("module_state") and writer.chance(0.6):
            writer.line(
                writer.pick(
                    "self.steps += 1",
                    "self.scale = 0.9 * self.scale + 0.05",
                    "self.running = 0.9 * self.running + 0.1 * x.detach().mean(0)",
                    "self.running.mul_(0.9).add_(x.detach().mean(0), alpha=0.1)",
                )
            )
        writer.line(f"return self.norm({writer.make_matrix(1)}) * self.weight")
    writer.depth = 0


def write_helpers(writer: Writer) -> None:
    writer.lines += ["", ""]
    with function(writer, "def helper(a, k=0.5):", 4, a="matrix", k="float"):
        writer.statements(writer.random.randint(0, 3))
        if writer.has("branches") and writer.chance(0.5):
            with writer.block(f"if {writer.make_bool(0)}:"):
                writer.line(f"return {writer.make_matrix(1)}")
        writer.line(f"return {writer.make_matrix(2)}")
    writer.lines += ["", ""]
    with function(writer, "def descend(a, level):", 2, a="matrix"):
        with writer.block("if level <= 0:"):
            writer.line(f"return {writer.make_matrix(1)}")
        writer.statements(writer.random.randint(0, 2))
        writer.line(f"return descend(({writer.make_matrix(1)}).tanh(), level - 1) * 0.5")


def write_build(writer: Writer) -> None:
    writer.lines += ["", "", "def build():"]
    writer.depth = 1
    optimizer = writer.pick(
        "torch.optim.SGD(net.parameters(), 0.1)",
        "torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)",
        # With Adam's own eps the rounding of a gradient that is almost 0 decides about a whole step.
        "torch.optim.Adam(net.parameters(), 0.01, eps=1e-3)",
    )
    for text in (
        "net = Net()", "cell = Cell()", f"optimizer = {optimizer}", "total = 0.0", "rounds = 0",
        "carried = torch.zeros(4)", "",
    ):  # fmt: skip
        writer.line(text)
    write_step(writer)
    write_calls(writer)
    writer.line("shown = ('GAIN', 'COUNT', 'TABLE', 'HISTORY', 'RECENT', 'SEEN')")
    writer.line("globals_shown = Shown(lambda: {k: globals()[k] for k in shown})")
    writer.line(
        "closure_shown = Shown(lambda: {'total': total, 'rounds': rounds, 'carried': carried})"
    )
    writer.line("watch = [net, cell, optimizer, globals_shown, closure_shown]")
    writer.line(f"return Program(step, calls, watch=watch, looks={writer.looks!r})")
    writer.depth = 0


def write_step(writer: Writer) -> None:
    parameters = {"x": "matrix", "n": "int", "scale": "float", "flag": "bool"}
    head = "def step(x, n, scale=0.5, flag=True):"
    if writer.has_two_arguments:
        parameters["y"] = "matrix"
        head = "def step(x, y, n, scale=0.5, flag=True):"
    with function(writer, head, writer.random.randint(4, 16), **parameters):
        if writer.has("globals"):
            writer.line("global GAIN, COUNT")
        if writer.has("closures"):
            writer.line("nonlocal total, rounds, carried")
            writer.declare("float", "total")
            writer.declare("int", "rounds")
            writer.declare("vector", "carried")
        writer.in_step = writer.may_call_helpers = True
        writer.statements(writer.random.randint(3, 10))
        if not writer.has("backward") and not writer.has("grad_function") and writer.chance(0.3):
            writer.line("loss = (net(x) * " + writer.make_matrix(1) + ").mean()")
            writer.line("loss.backward()")
        write_return(writer)
        writer.in_step = writer.may_call_helpers = False


def write_return(writer: Writer) -> None:
    values = [writer.make_matrix(0)]
    for kind in ("matrix", "vector", "scalar", "float", "int", "bool"):
        if writer.known(kind) and writer.chance(0.6):
            values.append(writer.random.choice(writer.known(kind)))
    for kind in ("matrices", "numbers", "named", "maybe"):
        if writer.known(kind) and writer.chance(0.7):
            values.append(writer.random.choice(writer.known(kind)))
    form = writer.pick("tuple", "tuple", "dict", "list", "one")
    if form == "tuple":
        writer.line(f"return ({', '.join(values)},)")
    elif form == "dict":
        writer.line(
            "return {" + ", ".join(f"'k{i}': {value}" for i, value in enumerate(values)) + "}"
        )
    elif form == "list":
        writer.line(f"return [{', '.join(values)}]")
    else:
        writer.line(f"return {values[0]}")


def write_calls(writer: Writer) -> None:
    """About eight calls; from the fourth on, what the program's features say may change."""
    writer.line("")
    writer.line("calls = [")
    writer.depth += 1
    batch, number, scale, flag, dtype = 3, writer.pick(2, 3), 0.5, True, ""
    early = writer.chance(0.4)  # whether profiled runs see the changes already
    for index in range(8):
        if index >= 4 or early:
            if writer.has("shape_changes") and writer.chance(0.4):
                batch = writer.pick(1, 2, 3, 5)
            if writer.has("number_changes") and writer.chance(0.6):
                number = writer.pick(0, 1, 2, 3, 4, 5)
                scale = round(writer.random.uniform(-1, 2), 2)
            if writer.has("flag_changes") and writer.chance(0.4):
                flag = not flag
            if writer.has("dtype_changes") and writer.chance(0.2):
                dtype = writer.pick("", ".float()", ".requires_grad_()", ".t().contiguous().t()")
        if index >= 4 and writer.has("outside_changes") and writer.chance(0.3):
            change = writer.pick(
                "net.eval()", "net.train()", "TABLE.update(gain=0.3)", "setattr(cell, 'gain', 1.25)",
                "setattr(cell, 'state', torch.full((4,), 0.5))", "cell.log.clear()",
                "net.requires_grad_(False)", "net.requires_grad_(True)", "setattr(cell, 'gain', 2)",
                "setattr(net, 'scale', 0.1)", "optimizer.param_groups[0].update(lr=0.02)",
            )  # fmt: skip
            writer.line(f"lambda: {change},")
        given = f"torch.randn({batch}, 4){dtype}"
        if writer.has_two_arguments:
            way = writer.apart.choice(("apart", "apart", "same", "view", "parts"))
            given = f"*two({way!r}, {given})"
        writer.line(f"({given}, {number}, {scale}, {flag}),")
    writer.depth -= 1
    writer.line("]")
