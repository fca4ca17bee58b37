"""Methods, properties, constructors and records of the program's classes. PYTEST_DONT_REWRITE"""

from collections import namedtuple
from dataclasses import dataclass

import torch.nn.functional as F
from differential import Program, differential

import torch
import torchjanus


class Checked(property):
    """A property that reads as any other."""


class Base:
    limit = 3.0

    def __init__(self, shift):
        self.shift = shift
        super().__init__()


class CheckedResult(Base):
    def __init__(self, x):
        if not torch.all(x < 100):
            raise ValueError(f"{x.max()} is too much")
        self.x = x
        super().__init__(x.mean())

    @Checked
    def result(self):
        return self.x * 2 - self.shift


@differential(hits=4)
def test_objects_made_by_a_chain_of_constructors_that_check():
    """The check is in code that the profile does not see; when it fails, eager raises."""

    def step(x):
        return CheckedResult(x).result

    return Program(step, [(torch.randn(3),) for _ in range(8)] + [(torch.full((3,), 200.0),)])


def calls(*shapes, count=6):
    return [tuple(torch.randn(*shape) for shape in shapes) for _ in range(count)]


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
