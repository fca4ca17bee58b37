"""Whether an object has an attribute is an assumption, both ways: of tensors, functions, classes."""

import types

import pytest
from differential import Program, differential

import torch
from torch import nn


def with_change(step, change, watch=()):
    """Eight calls, a change of the surroundings, eight calls."""
    calls = [(torch.ones(3) * i,) for i in range(16)]
    return Program(step, [*calls[:8], change, *calls[8:]], watch=watch)


class Plain:
    pass


class Slotted:
    __slots__ = ("flag",)


class Meta(type):
    pass


def objects():
    """Makes what may get the attribute `flag`."""

    def function(x):
        return x

    class WithMethod:
        def method(self):
            pass

    return {
        "tensor": torch.randn(3),
        "parameter": nn.Parameter(torch.randn(3)),
        "function": function,
        "module": types.ModuleType("m"),
        "class": type("C", (), {}),
        "object": Plain(),
        "slots": Slotted(),
        "nn.Module": nn.Linear(3, 3),
        "dict": type("D", (dict,), {})(),
        "method": WithMethod().method,
    }


@pytest.mark.parametrize("kind", sorted(objects()))
@differential(hits=9, graphs=2)
def test_attribute_that_appears(kind):
    each = objects()[kind]
    owner = each.__func__ if kind == "method" else each

    def step(x):
        return x * 2 if hasattr(each, "flag") else x * 3

    return with_change(step, lambda: setattr(owner, "flag", 1))


@pytest.mark.parametrize("kind", sorted(objects()))
@differential(hits=9, graphs=2)
def test_attribute_that_goes(kind):
    each = objects()[kind]
    owner = each.__func__ if kind == "method" else each
    owner.flag = 5

    def step(x):
        return x * getattr(each, "flag", 7)

    return with_change(step, lambda: delattr(owner, "flag"))


@pytest.mark.parametrize("kind", sorted(objects()))
@differential(hits=9, graphs=2)
def test_attribute_error_that_ends(kind):
    each = objects()[kind]
    owner = each.__func__ if kind == "method" else each

    def step(x):
        try:
            factor = each.flag
        except AttributeError:
            factor = 4
        return x * factor

    return with_change(step, lambda: setattr(owner, "flag", 3))


@differential(hits=9, graphs=2)
def test_attribute_of_an_argument():
    arguments = [torch.ones(3) for _ in range(16)]
    for each in arguments[8:]:
        each.flag = 1

    def step(x):
        return x * 2 if hasattr(x, "flag") else x * 3

    return Program(step, [(each,) for each in arguments])


@differential(hits=9, graphs=2)
def test_attribute_that_a_metaclass_gets():
    class C(metaclass=Meta):
        pass

    def step(x):
        return x * 2 if hasattr(C, "flag") else x * 3

    program = with_change(step, lambda: setattr(Meta, "flag", 1))
    program.calls.append(lambda: delattr(Meta, "flag"))
    return program


@differential(hits=9, graphs=2)
def test_getattr_that_a_module_gets():
    module = types.ModuleType("m")

    def step(x):
        return x * 2 if hasattr(module, "flag") else x * 3

    return with_change(step, lambda: setattr(module, "__getattr__", lambda name: 1))


@pytest.mark.parametrize("owner", [torch.Tensor, torch])
@differential(hits=9, graphs=2)
def test_attribute_that_torch_gets(owner):
    def step(x):
        of = owner if owner is torch else x + 1
        return x * 2 if hasattr(of, "no_such_thing") else x * 3

    program = with_change(step, lambda: setattr(owner, "no_such_thing", 1))
    program.calls.append(lambda: delattr(owner, "no_such_thing"))
    return program


@differential(hits=9, graphs=2)
def test_method_that_a_tensor_has_of_its_own():
    weight = torch.ones(3)

    def step(x):
        return x * weight.sum()

    return with_change(step, lambda: setattr(weight, "sum", lambda: 11))


# --- attributes of tensors, read and written -----------------------------------------------------


@differential(hits=6, graphs=1)
def test_parameters_told_apart_by_an_attribute():
    weights = [nn.Parameter(torch.randn(3)) for _ in range(4)]
    weights[0]._no_weight_decay = True
    weights[2]._no_weight_decay = False

    def step(x):
        return sum(
            (x * w).sum() * (2 if getattr(w, "_no_weight_decay", False) else 3) for w in weights
        )

    return Program(step, [(torch.randn(3),) for _ in range(9)])


@differential(hits=5)
def test_number_counted_on_a_parameter():
    weight = nn.Parameter(torch.randn(3))

    def step(x):
        weight.seen = getattr(weight, "seen", 0) + 1
        return (x * weight).sum() * weight.seen

    calls = [(torch.randn(3),) for _ in range(10)]
    return Program(step, calls, watch=[weight, vars(weight)])


@differential(hits=5)
def test_moving_average_kept_on_a_parameter():
    weight = nn.Parameter(torch.randn(3))
    weight.average = torch.zeros(3)

    def step(x):
        loss = (x * weight).sum()
        weight.average = weight.average * 0.9 + x * 0.1
        return loss

    calls = [(torch.randn(3),) for _ in range(8)]
    return Program(step, calls, watch=[weight, vars(weight)])


@differential(hits=5)
def test_attribute_set_and_deleted():
    weight = nn.Parameter(torch.randn(3))

    def step(x):
        weight.scratch = x.sum()
        y = weight * weight.scratch
        del weight.scratch
        return y

    return Program(step, [(torch.randn(3),) for _ in range(8)], watch=[weight, vars(weight)])


@differential(hits=5)
def test_attribute_of_one_tensor_by_two_names():
    weight = torch.randn(3)
    other = weight

    def step(x):
        weight.tag = x * 2
        return other.tag + 1

    return Program(step, [(torch.randn(3),) for _ in range(8)], watch=[vars(weight)])


@differential(hits=5)
def test_class_of_a_tensor():
    weight = nn.Parameter(torch.randn(3))

    def step(x):
        plain = 2 if x.__class__ is torch.Tensor else 3
        return x * weight * plain * (5 if weight.__class__.__name__ == "Parameter" else 7)

    return Program(step, [(torch.randn(3),) for _ in range(8)])


@differential(reasons=["heap_write"])
def test_attribute_of_a_tensor_made_in_the_run():
    def step(x):
        y = x * 2
        y.tag = 3
        return y

    return Program(step, [(torch.randn(3),) for _ in range(8)])
