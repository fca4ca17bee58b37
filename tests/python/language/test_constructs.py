"""Differential programs: the imperative language around the tensors. PYTEST_DONT_REWRITE"""

import math
import sys
from collections import OrderedDict, namedtuple
from dataclasses import dataclass

import pytest
import torch.nn.functional as F
from differential import Call, Program, differential

import torch
from torch import nn

SCALE = 3.0


def calls(*shapes, count=6):
    return [tuple(torch.randn(*shape) for shape in shapes) for _ in range(count)]


def double(x):
    return x * 2


def variadic(x, *rest, factor=1.0, **options):
    total = x * factor
    for other in rest:
        total = total + other
    return total + options.get("shift", 0.0)


SIMPLE = {
    "arithmetic": lambda x, y: (x + y) * 2 - y / (x.abs() + 1) + x**2 - 3 // (y.abs() + 1) + -x,
    "reflected": lambda x, y: 1 - x + 2 / (y.abs() + 1) + 3 * x + 2.0**x,
    "comparisons": lambda x, y: (x > y) & (x <= 1) | ~(y == 0),
    "matmul": lambda x, y: x @ y.t() + torch.matmul(x, y.T),
    "global constant": lambda x, y: x * SCALE + y,
    "math functions": lambda x, y: x * math.sqrt(2) + math.pi * y + math.floor(2.5),
    "helper function": lambda x, y: double(x) + double(y),
    "variadic": lambda x, y: variadic(x, y, y, factor=0.5, shift=2.0),
    "star call": lambda x, y: variadic(*[x, y], **{"factor": 2.0}),
    "conditional expression": lambda x, y: x + 1 if x.shape[0] > 3 else y,
    "shape arithmetic": lambda x, y: x.reshape(x.shape[0] * x.shape[1] // 2, 2) * x.numel() + x.dim(),
    "chained comparison": lambda x, y: x + 1 if 1 < x.size(0) <= 4 else y,
    "short circuit": lambda x, y: -x if x is not None and y.ndim == 2 else None,
    "tuple": lambda x, y: (x + 1, (y, x * 2), [x, y]),
    "dictionary": lambda x, y: {"sum": x + y, "parts": {"x": x, "y": y}},
    "same object": lambda x, y: (x, x, y, x + y),
    "none": lambda x, y: (None, x + y),
    "constant": lambda x, y: (7, x + y),
    "comprehension": lambda x, y: sum([row * i for i, row in enumerate(x)]),
    "dict comprehension": lambda x, y: {i: x[i] + y[i] for i in range(3)},
    "generator in sum": lambda x, y: sum(row.sum() for row in x),
    "nested comprehension": lambda x, y: [[x[i, j] for j in range(2)] for i in range(2) if i],
    "zip": lambda x, y: [a + b for a, b in zip(x, y, strict=True)],
    "reversed": lambda x, y: torch.stack(list(reversed(list(x)))),
    "map": lambda x, y: list(map(double, (x, y))),
    "lambda": lambda x, y: (lambda a, b=2.0: a * b)(x) + y,
    "slicing": lambda x, y: x[1:3] + y[:2] + x[-1] + y[..., 0:1][0] + x[None][0, 1],
    "index arrays": lambda x, y: x[torch.tensor([0, 2])] + y[[1, 0]],
    "is and not": lambda x, y: -x if not (x is y) else y,
    "in": lambda x, y: -x if 3 in x.shape else y,
    "string test": lambda x, y: -x if "cpu" == x.device.type else y,
    "min max": lambda x, y: x * max(1, 2, x.size(0)) + min(3.0, 2.5),
    "isinstance": lambda x, y: -x if isinstance(x, torch.Tensor) and not isinstance(y, list) else y,
    "getattr": lambda x, y: getattr(x, "sum")() + getattr(y, "missing", 3.0),  # noqa: B009
    "unpack shape": lambda x, y: (lambda a, b: x.view(b, a))(*x.shape) + 0 * y.sum(),
    "item": lambda x, y: x.sum().item() + y.mean().item(),
    "float of tensor": lambda x, y: float(x.sum()) * 2 + int(y.abs().sum()),
    "tolist": lambda x, y: x.sum(0).tolist(),
    "numpy constants": lambda x, y: x * float(torch.finfo(torch.float32).eps) + y,
    "dtype": lambda x, y: x.to(torch.float32).double() + y.type_as(x) + (x > 0).to(x.dtype),
    "new tensors": lambda x, y: x + torch.ones(4, 1) + torch.zeros_like(y) + torch.arange(3) + x.new_full((1,), 2.0),
    "as tensor": lambda x, y: (torch.as_tensor(x) is x, torch.as_tensor([1, 2.0, 3]) + torch.as_tensor(y)),
    "operator methods": lambda x, y: x.__radd__(2).__mul__(y).__rmul__(3.0),
    "tensor constant": lambda x, y: x * torch.tensor([1.0, 2.0, 3.0]) + torch.tensor(2.0),
}  # fmt: skip


@pytest.mark.parametrize("name", SIMPLE)
@differential(hits=2, graphs=1)
def test_simple(name):
    f = SIMPLE[name]

    def step(x, y):
        return f(x, y)

    return Program(step, calls((4, 3), (4, 3)))


@differential(hits=2, graphs=1)
def test_statements():
    def step(x):
        first, *rest = x
        total = first
        for row in rest:
            total += row
        a = b = total * 2
        a, b = b + 1, a
        (c, d), e = (a, b), total
        numbers = [1, 2, 3]
        numbers.append(4)
        numbers[0] = 10
        table = {"k": c}
        table["k2"] = d
        table.update(k3=e)
        del table["k"]
        count: int = 0
        while count < len(numbers):
            count += 1
            if count == 2:
                continue
            if count == 4:
                break
        else:
            raise RuntimeError
        assert count == 4, "never"
        if (n := len(table)) > 1:
            e = e * n
        pass
        return a, table, numbers, count, e

    return Program(step, calls((3, 2)))


@differential(hits=2, graphs=1)
def test_early_return_and_nested_functions():
    def step(x):
        scale = 2.0

        def inner(y, depth):
            nonlocal scale
            if depth == 0:
                return y * scale
            scale = scale + 1
            return inner(y + 1, depth - 1)

        if x.shape[0] == 3:
            return inner(x, 3)
        return x

    return Program(step, calls((3, 2)))


@differential(hits=2, graphs=1)
def test_closures_defaults_and_keyword_only():
    factor = 1.5

    def step(x, /, y, *others, scale=2.0, **named):
        result = x * factor + y * scale
        for other in others:
            result = result - other
        for value in named.values():
            result = result * value
        return result

    arguments = [
        Call((torch.randn(3), torch.randn(3), torch.randn(3)), {"weight": torch.randn(3)})
        for _ in range(6)
    ]
    return Program(step, arguments)


@differential(hits=2, graphs=1)
def test_methods_properties_and_inheritance():
    class Base:
        rate = 0.5

        def __init__(self, weight):
            self.weight = weight

        @property
        def doubled(self):
            return self.weight * 2

        @staticmethod
        def shift(x):
            return x + 1

        @classmethod
        def scaled(cls, x):
            return x * cls.rate

        def apply(self, x):
            return self.scaled(x) + self.doubled

    class Derived(Base):
        rate = 0.25

        def apply(self, x):
            return self.shift(super().apply(x))

        def __call__(self, x):
            return self.apply(x)

    model = Derived(torch.randn(3))

    def step(x):
        return model(x) + model.apply(x)

    return Program(step, calls((3,)), watch=[model])


@differential(hits=2, graphs=1)
def test_converted_method():
    import torchjanus

    class Learner:
        def __init__(self):
            self.weight = torch.randn(3, requires_grad=True)

        def step(self, x):
            loss = (self.weight * x).sum()
            loss.backward()
            with torch.no_grad():
                self.weight -= 0.1 * self.weight.grad
            self.weight.grad = None
            return loss.item()

    def convert(bound):
        function = torchjanus.function(Learner.step)
        return (lambda x: function(bound.__self__, x)), function

    learner = Learner()
    return Program(learner.step, calls((3,)), watch=[learner], convert=convert)


@differential(hits=2, graphs=1)
def test_tuples_and_records_as_results():
    Pair = namedtuple("Pair", "left right")  # noqa: PYI024

    def step(x):
        pair = Pair(x + 1, right=x * 2)
        left, right = pair
        return pair, pair.left + right, pair[1], pair._replace(left=right)

    return Program(step, calls((3,)))


@differential(hits=2, graphs=1)
def test_dataclass_configuration():
    @dataclass
    class Configuration:
        width: int = 3
        scale: float = 0.5
        name: str = "relu"

    configuration = Configuration()

    def step(x):
        activation = {"relu": F.relu, "tanh": torch.tanh}[configuration.name]
        return activation(x[:, : configuration.width]) * configuration.scale

    return Program(step, calls((4, 5)), watch=[configuration])


@differential(hits=2, graphs=1)
def test_formatted_strings_of_results():
    def step(x):
        loss = x.sum().item()
        return f"loss {loss:.3f} of {x.shape[0]:>4} {'x'!r}", "value {:.2f}".format(loss)  # noqa: UP032

    return Program(step, calls((3,)))


@differential(hits=2, graphs=1)
def test_print_is_replayed_in_order():
    def step(x):
        print("before", x.shape[0])
        loss = (x * 2).sum()
        print(f"loss {loss.item():.4f}", end="\n\n")
        print("after", loss.item() > 0)
        return loss

    return Program(step, calls((3,)))


@differential(hits=2, graphs=1)
def test_ordered_dict_module_list_and_parameter_list():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(
                OrderedDict(
                    [("one", nn.Linear(3, 4)), ("two", nn.Tanh()), ("three", nn.Linear(4, 3))]
                )
            )
            self.table = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Linear(3, 3)})
            self.scales = nn.ParameterList([nn.Parameter(torch.ones(3)) for _ in range(2)])
            self.register_buffer("offset", torch.randn(3))

        def forward(self, x):
            x = self.layers(x) + self.offset
            for name, layer in self.table.items():
                x = layer(x) if name == "a" else x + layer(x)
            for scale in self.scales:
                x = x * scale
            return x

    net = Net()

    def step(x):
        return net(x)

    return Program(step, calls((4, 3)), watch=[net])


@differential(hits=2, graphs=1)
def test_try_finally_and_known_context_managers():
    def step(x):
        try:
            with torch.no_grad():
                y = x * 2
            with torch.enable_grad():
                z = y + 1
        finally:
            w = z * 3
        return w

    return Program(step, calls((3,)))


@differential(hits=4)
def test_python_float_argument_that_varies():
    def step(x, rate):
        return x * rate + rate**2

    arguments = [(torch.randn(3), 0.1 * index) for index in range(10)]
    return Program(step, arguments)


@differential(hits=4)
def test_python_int_argument_that_varies():
    def step(x, count):
        return x * count + count // 2 - count % 3

    return Program(step, [(torch.randn(3), index) for index in range(2, 12)])


@differential(hits=3)
def test_print_every_third_step():
    def step(x, index):
        loss = (x**2).sum()
        if index % 3 == 0:
            print("step", index, loss.item())
        return loss

    return Program(step, [(torch.randn(3), index) for index in range(15)])


@differential(hits=2, graphs=1)
def test_random_numbers_in_program_order():
    def step(x):
        a = torch.rand(3)
        b = torch.randn_like(x)
        c = F.dropout(x, 0.3)
        d = torch.bernoulli(torch.full((3,), 0.4))
        e = torch.randint(0, 10, (3,))
        f = torch.empty(3).uniform_(-1, 1) + torch.empty(3).normal_()
        return a, b, c, d, e, f

    return Program(step, calls((3,)))


IMPERATIVE = {
    "generator": "generator",
    "class": "statement",
    "import": "statement",
    "attribute of a tensor": "heap_write",
    "opaque call": "unknown_callable",
    "eval": "unknown_callable",
}


class Counter:
    def __init__(self):
        self.count = 0
        self.items = [1]


def forget():
    Counter.instance = None


@pytest.mark.parametrize("name", IMPERATIVE)
def test_stays_imperative_with_its_reason(name):
    def build():
        counter = Counter()

        def generator(x):
            yield x * 2

        def class_(x):
            class Local:
                scale = 2

            return x * Local.scale

        def import_(x):
            import colorsys as m  # for the first time

            del sys.modules["colorsys"]
            return x * len(m.__name__)

        def attribute(x):
            y = x * counter.count
            y.note = "seen"
            return y

        def opaque_call(x):
            import_function = open
            with import_function("/dev/null") as file:
                return x * file.fileno() * 0

        def eval_(x):
            return eval("x * 2")

        step = {
            "generator": lambda x: [*generator(x)],
            "class": class_,
            "import": import_,
            "attribute of a tensor": attribute,
            "opaque call": opaque_call,
            "eval": eval_,
        }[name]
        return Program(step, [(torch.randn(3),) for _ in range(7)], watch=[counter])

    differential(reasons=[IMPERATIVE[name]])(build)()


@differential(graphs=1, hits=3)
def test_what_a_tensor_says_of_where_it_lies():
    def step(x):
        y = x * 2
        flags = [y.is_cpu, y.is_cuda, y.is_sparse, y.is_mtia, y.is_xla, y.is_vulkan]
        if y.layout == torch.strided and y.layout is x.layout:
            y = y.H @ y
        return y, flags, str(x.layout)

    return Program(step, [(torch.randn(3, 2),) for _ in range(7)])


@differential(hits=6)
def test_bits_and_powers_of_ints_that_vary():
    def step(x, a, b, flag):
        numbers = (
            a & b,
            a | b,
            a ^ b,
            ~a,
            a ** (b & 3),
            flag & (a > 0),
            flag | (b > 2),
            flag ^ True,
        )
        return x * (a ^ b), numbers, x + (a**b if b < 4 else a)

    calls = [(torch.randn(3), i * 7 - 20, i % 5, i % 3 == 0) for i in range(16)]
    return Program(step, calls)


@differential(hits=9, graphs=2)
def test_negative_powers_of_ints_that_vary():
    def step(x, n):
        return x * n**-2, n**-1, (-n) ** -3, (n > 4) ** 2, (n * 10**15 + 1) ** -1

    return Program(step, [(torch.randn(3), 2 + index) for index in range(14)])


@differential(hits=5)
def test_negative_powers_of_zero():
    def step(x, n):
        return x * 2, n**-2

    numbers = [3, 4, 5, 6, 7, 0, 8, 9, -4, 0, 11, 12]
    return Program(step, [(torch.randn(3), n) for n in numbers])


@differential(hits=5)
def test_powers_that_come_out_as_floats_or_do_not_fit():
    def step(x, a, b):
        return x * 2, a**b

    exponents = [2, 3, 4, 5, 2, 3, -1, 62, 63, 64, 0, -2, 5]
    return Program(step, [(torch.randn(3), 2 + i % 2, b) for i, b in enumerate(exponents)])


class Scaled:
    def __init__(self):
        self.value, self.reads = 1.0, 0

    @property
    def scaled(self):
        self.reads += 1
        return self.value * 2


class ScaledAgain(Scaled):
    @property
    def scaled(self):
        return super().scaled + 1


@differential(hits=4)
def test_property_of_the_class_above():
    this = ScaledAgain()

    def step(x):
        this.value = this.value * 0.5 + this.scaled * 0.1
        return x * this.scaled

    return Program(step, [(torch.randn(3),) for _ in range(8)], watch=[this])


@differential(hits=10)
def test_identity_of_numbers():
    state = {"count": 0}
    five, seven, half, text = 5, 7, 0.5, "text"

    def step(x, a):
        state["count"] += 1
        flag, number = x.sum().item() > 0, state["count"]
        same = flag is True, flag is (a > 2), number is five, number is not seven, number is None
        other = a is a, a is True, flag is number, half is a, text is number, five is seven - 2
        return x * number, same, other

    return Program(step, [(torch.randn(3), i % 5) for i in range(16)], watch=[state])


@pytest.mark.parametrize("name", ["floats", "numbers"])
def test_identity_that_python_decides(name):
    def floats(x):
        half = 0.5
        other = float("0.5")
        return x * 2, half is other

    def numbers(x):
        number, other = x.sum().item(), x.mean().item()
        return x * 2, number is other

    step = {"floats": floats, "numbers": numbers}[name]
    differential(reasons=["expression"])(
        lambda: Program(step, [(torch.randn(3),) for _ in range(8)])
    )()
