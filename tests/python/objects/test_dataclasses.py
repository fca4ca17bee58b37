"""The `__init__` that @dataclass writes, called directly, by a subclass, and by a wrapper. PYTEST_DONT_REWRITE"""

import collections
import dataclasses
import enum
import functools

import pytest
from differential import Program, differential

import torch


def calls(count=6):
    return [(torch.randn(3),) for _ in range(count)]


@dataclasses.dataclass
class Point:
    x: torch.Tensor
    scale: float = 2.0
    marks: list = dataclasses.field(default_factory=list)
    made: dict = dataclasses.field(default_factory=dict, init=False)
    shift: dataclasses.InitVar[float] = 1.0
    rate: float = dataclasses.field(default=0.5, kw_only=True)
    kind: dataclasses.InitVar[str] = dataclasses.field(default="plain", kw_only=True)

    def __post_init__(self, shift, kind):
        self.made[kind] = self.x * self.scale + shift


@differential(hits=3, graphs=1)
def test_fields_of_all_kinds():
    def step(x):
        first, second = Point(x), Point(x, 3.0, [x], 2.0, rate=0.1, kind="other")
        first.marks.append(second.made["other"] * second.rate)
        return first.made["plain"].sum(), first.marks, second.marks, vars(second)

    return Program(step, calls())


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: torch.Tensor
    parts: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class self_named:  # noqa: N801
    self: torch.Tensor


@dataclasses.dataclass
class Empty:
    pass


@dataclasses.dataclass(slots=True)
class Slots:
    x: torch.Tensor
    given: int = dataclasses.field(default=3, init=False)


@differential(hits=3, graphs=1)
def test_frozen_slotted_and_empty_classes():
    def step(x):
        return Frozen(x * 2), self_named(x + 1).self, Empty(), Slots(x).given * Slots(x).x

    return Program(step, calls())


@dataclasses.dataclass
class Derived(Point):
    def __init__(self, x):
        super().__init__(x * 2, kind="derived")


@differential(hits=3, graphs=1)
def test_a_written_constructor_calls_the_generated_one():
    return Program(lambda x: Derived(x).made["derived"], calls())


def wrapped(cls):
    initialise = cls.__init__

    @functools.wraps(initialise)
    def replaced(self, *args, **kwargs):
        initialise(self, *args, **kwargs)

    cls.__init__ = replaced
    return cls


class Output(collections.OrderedDict):
    """What a model gives, in the manner of transformers: a dict without what is None, a tuple, and attributes."""

    def __post_init__(self):
        names = dataclasses.fields(self)
        if not all(field.default is None for field in names[1:]):
            raise ValueError(f"{self.__class__.__name__} has more than one required field.")
        for field in names:
            value = self.__dict__.get(field.name)
            if value is not None:
                self[field.name] = value

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        super().__setattr__(key, value)

    def __setattr__(self, name, value):
        if name in {field.name for field in dataclasses.fields(self)} and value is not None:
            super().__setitem__(name, value)
        super().__setattr__(name, value)

    def __getitem__(self, key):
        return dict(self.items())[key] if isinstance(key, str) else self.to_tuple()[key]

    def to_tuple(self):
        return tuple(self[key] for key in self.keys())


@wrapped
@dataclasses.dataclass
class ModelOutput(Output):
    loss: torch.Tensor | None = None
    logits: torch.Tensor = None
    hidden: tuple | None = None


@pytest.mark.parametrize(
    "use",
    [
        lambda out: out,
        lambda out: (out[0], out["logits"]),
        lambda out: (out.loss, out.hidden, out[1:], len(out), "hidden" in out),
        lambda out: (out.to_tuple(), list(out.keys()), dict(out.items())),
    ],
)
@differential(hits=3, graphs=1)
def test_a_wrapped_output_of_a_model(use):
    return Program(lambda x: use(ModelOutput(loss=x.sum(), logits=x * 2)), calls())


@differential(hits=4, graphs=1)
def test_a_whole_step_by_way_of_an_output():
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters(), 0.1)

    def forward(x):
        logits = model(x)
        return ModelOutput(loss=logits.square().mean(), logits=logits)

    def step(x):
        optimizer.zero_grad()
        out = forward(x)
        out.loss.backward()
        optimizer.step()
        return out["loss"].item()

    batches = [(torch.randn(5, 3),) for _ in range(8)]
    return Program(step, batches, watch=[model, optimizer])


def fresh():
    @dataclasses.dataclass
    class Fresh:
        x: torch.Tensor
        scale: float = 2.0
        parts: list = dataclasses.field(default_factory=list)

    return Fresh


@differential(hits=4)
def test_an_initialiser_with_other_defaults():
    Fresh = fresh()

    def change():
        Fresh.__init__.__defaults__ = (5.0, *Fresh.__init__.__defaults__[1:])

    def step(x):
        made = Fresh(x)
        return made.x * made.scale, made.parts

    return Program(step, [*calls(5), change, *calls(5)])


@differential(hits=4)
def test_an_initialiser_with_another_factory():
    Fresh = fresh()

    def change():
        closure = Fresh.__init__.__closure__
        cells = dict(zip(Fresh.__init__.__code__.co_freevars, closure, strict=True))
        # 3.13 writes the name with more around it.
        (name,) = (each for each in cells if "dflt_parts" in each)
        cells[name].cell_contents = lambda: [1]

    return Program(lambda x: (x * 2, Fresh(x).parts), [*calls(5), change, *calls(5)])


@differential(hits=2)
def test_an_initialiser_that_is_replaced():
    Fresh = fresh()

    def change():
        Fresh.__init__ = lambda self, x: setattr(self, "x", x * 7)

    return Program(lambda x: Fresh(x).x * 2, [*calls(5), change, *calls(5)])


class Action(str, enum.Enum):
    none = "none"
    warn = "warn"


class Plain(str):
    pass


@differential(hits=3, graphs=1)
def test_members_that_are_texts_are_compared():
    kept = Plain("warn")

    def step(x):
        action = Action.warn
        tests = (action == Action.none, action in (Action.warn, "none"), action != "warn")
        return x * 2, tests, action == kept, kept < Action.none, action == 1, action is None

    return Program(step, calls())


@differential(hits=2)
def test_a_text_that_is_another_one():
    class State:
        action = Action.none

    def change():
        State.action = Action.warn

    def step(x):
        return x * 2 if State.action == Action.warn else x * 3

    return Program(step, [*calls(5), change, *calls(5)])
