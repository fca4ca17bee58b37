"""isinstance and issubclass: answers that stay, answers that are assumed to stay, and answers that
only the object itself can give.
PYTEST_DONT_REWRITE"""

import abc
import collections.abc
import numbers
import typing

import pytest
from differential import Program, differential

import torch
import torchjanus
from torch import nn


def at_once(step):
    return (torchjanus.function(step, profile_runs=0),) * 2


def program(step, *between, watch=()):
    """Two calls, and two behind each of the changes."""
    calls = [(torch.randn(3),) for _ in range(2)]
    for change in between:
        calls += [change, (torch.randn(3),), (torch.randn(3),)]
    return Program(step, calls, watch=watch, convert=at_once)


class Abstract(abc.ABC):
    @abc.abstractmethod
    def foo(self): ...


class Concrete(Abstract):
    def foo(self):
        return 1


class Layer(nn.Linear):
    pass


class Sized:
    def __len__(self):
        return 2


@typing.runtime_checkable
class HasFoo(typing.Protocol):
    def foo(self): ...


@typing.runtime_checkable
class HasData(typing.Protocol):
    foo: int


OBJECTS = {
    "none": None,
    "int": 3,
    "list": [1, 2],
    "dict": {1: 2},
    "layer": Layer(2, 2),
    "concrete": Concrete(),
    "sized": Sized(),
}
CLASSES = [
    int,
    (list, dict),
    int | str,
    nn.Module,
    (nn.Linear, Sized),
    numbers.Number,
    numbers.Integral | None,
    collections.abc.Mapping,
    collections.abc.Sequence,
    collections.abc.Iterable,
    collections.abc.Callable,
    collections.abc.Sized,
    collections.abc.Hashable,
    typing.Mapping,
    typing.Union[int, list],  # noqa: UP007
    Abstract,
]


@pytest.mark.parametrize("name", OBJECTS)
@differential(hits=2, graphs=1)
def test_classes_in_a_graph(name):
    value = OBJECTS[name]

    def step(x):
        made = {"a": x}
        checks = [isinstance(value, each) for each in CLASSES]
        checks += [issubclass(type(value), each) for each in CLASSES]
        checks += [isinstance(x * 2, each) for each in CLASSES]
        checks += [isinstance(made, each) for each in CLASSES]
        return x * 2, checks

    return program(step)


@pytest.mark.parametrize("asks", [isinstance, issubclass])
@differential(hits=3, graphs=2)
def test_a_class_is_registered_later(asks):
    class Kind(abc.ABC):  # noqa: B024
        pass

    class Given:
        pass

    value = Given() if asks is isinstance else Given

    def step(x):
        return x * 2 if asks(value, Kind) else x * 3

    return program(step, lambda: Kind.register(Given))


@differential(hits=3, graphs=2)
def test_a_builtin_class_is_registered_later():
    class Kind(abc.ABC):  # noqa: B024
        pass

    def step(x):
        return x * 2 if isinstance([x], (dict, Kind)) else x * 3

    return program(step, lambda: Kind.register(list))


@differential(hits=4, graphs=1)
def test_a_yes_stays():
    class Kind(abc.ABC):  # noqa: B024
        pass

    class Other:
        pass

    value = Concrete()

    def step(x):
        return x * 2 if isinstance(value, Abstract) else x * 3

    return program(step, lambda: Kind.register(Other))


@pytest.mark.parametrize("asks", [isinstance, issubclass])
@differential(hits=5, graphs=2)
def test_a_hook_is_asked_again_behind_a_registration(asks):
    class Kind(abc.ABC):  # noqa: B024
        @classmethod
        def __subclasshook__(cls, other):
            return hasattr(other, "foo")

    class Given:
        pass

    value = Given() if asks is isinstance else Given

    def give():
        Given.foo = 1

    def step(x):
        return x * 2 if asks(value, Kind) else x * 3

    return program(step, give, lambda: Kind.register(Sized))


@differential(reasons=["expression"])
def test_a_protocol_of_data():
    class Given:
        pass

    value = Given()

    def give():
        value.foo = 1

    def step(x):
        return x * 2 if isinstance(value, HasData) else x * 3

    return program(step, give)


@differential(reasons=["expression"])
def test_a_protocol_of_methods_that_an_object_gets():
    class Given:
        pass

    value = Given()

    def give():
        value.foo = lambda: 1

    def step(x):
        return x * 2 if isinstance(value, HasFoo) else x * 3

    return program(step, give)


@pytest.mark.parametrize("value", [Concrete(), 3, (1, 2)])
@differential(hits=2, graphs=1)
def test_a_protocol_of_methods_of_the_class(value):
    def step(x):
        return x * 2 if isinstance(value, HasFoo) else x * 3

    return program(step)


@differential(hits=2, graphs=1)
def test_classes_that_implement_a_protocol():
    class Given(HasData):
        foo = 1

    value, other = Given(), Sized()

    def step(x):
        return x * 2, isinstance(value, Given), isinstance(other, Given), issubclass(Sized, Given)

    return program(step)


@differential(hits=3, graphs=2)
def test_what_a_metaclass_of_the_program_reads():
    class Meta(type):
        def __instancecheck__(cls, instance):
            return cls.takes

    class Kind(metaclass=Meta):
        takes = False

    def give():
        Kind.takes = True

    def step(x):
        return x * 2 if isinstance(x, Kind) else x * 3

    return program(step, give)


@differential()
def test_an_object_that_checks():
    class Checks:
        takes = False

        def __instancecheck__(self, instance):
            return self.takes

    check = Checks()

    def give():
        check.takes = True

    def step(x):
        return x * 2 if isinstance(x, check) else x * 3

    return program(step, give)


@differential(reasons=["expression"])
def test_an_object_that_claims_another_class():
    class Claims:
        claimed = Sized

        @property
        def __class__(self):
            return self.claimed

    value = Claims()

    def give():
        value.claimed = int

    def step(x):
        return x * 2 if isinstance(value, Sized) else x * 3

    return program(step, give)


@differential()
def test_torch_classes_that_check():
    parameter = nn.Parameter(torch.ones(2))

    def step(x):
        y = x * 2
        return y, [
            isinstance(each, of)
            for each in (x, y, parameter)
            for of in (nn.Parameter, torch.Tensor, torch.autograd.Variable)
        ]

    return program(step)


@pytest.mark.parametrize("is_made", [False, True])
@differential()
def test_older_classes_of_tensors(is_made):
    def step(x):
        y = x * 2 if is_made else x
        return x * 3, isinstance(y, torch.autograd.Variable), isinstance(y, nn.Parameter)

    return program(step)


@differential(reasons=["expression"])
def test_classes_of_tensors_of_one_dtype():
    def step(x):
        y = x * 2
        return y if isinstance(y, torch.DoubleTensor) else x * 3

    return program(step)


def a_union(x):
    return x * 2 if isinstance([], list | tuple) and not isinstance(x, int | None) else x


def a_union_with_a_module(x):
    return x * 2 if isinstance(LAYER, nn.Conv2d | nn.Linear | None) else x


def a_union_of_abstract_classes(x):
    kinds = Abstract | collections.abc.Mapping
    return x * 2 if isinstance(Concrete(), kinds) and issubclass(dict, kinds) else x


def a_union_first(x):
    return x * 2 if isinstance(None, (int | float) | None) else x


LAYER = Layer(2, 2)
CHOSEN = {"kind": int}


@differential()
@pytest.mark.parametrize(
    "step", [a_union, a_union_with_a_module, a_union_of_abstract_classes, a_union_first]
)
def test_unions_of_classes(step):
    return program(step)


@differential(hits=2)
def test_a_union_of_a_class_that_changes():
    CHOSEN["kind"] = int

    def step(x):
        return x * 2 if isinstance(3.0, CHOSEN["kind"] | None) else x + 1

    return program(step, lambda: CHOSEN.update(kind=float))


class Joined(type):
    def __or__(cls, other):
        return "joined"


class OfJoined(metaclass=Joined):
    pass


@differential()
def test_a_metaclass_with_its_own_union():
    def step(x):
        return x * 2, OfJoined | int

    return program(step)
