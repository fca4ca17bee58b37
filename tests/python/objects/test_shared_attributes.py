"""Objects whose `__dict__` is one that all objects of the class share. PYTEST_DONT_REWRITE"""

import pytest
from differential import Program, differential

import torch


def shared_class():
    class Shared:
        everything: dict = {}

        def __init__(self):
            self.__dict__ = self.everything

        @property
        def doubled(self):
            return self.scale * 2

    Shared.everything = {"scale": 3.0, "count": 0}
    return Shared


def calls(count=6):
    return [(torch.randn(3),) for _ in range(count)]


@differential(hits=3, graphs=1)
def test_attributes_are_read_from_the_shared_dict():
    Shared = shared_class()

    def step(x):
        state = Shared()
        return x * state.doubled, state.count, hasattr(state, "missing"), "scale" in vars(state)

    return Program(step, calls(), watch=[Shared.everything])


@differential(hits=3)
def test_attributes_are_written_to_the_shared_dict():
    Shared = shared_class()
    existing = Shared()

    def step(x):
        state = Shared()
        state.count += 1
        state.latest = x * 2
        other = Shared()
        del other.latest
        other.kept = x + state.count
        return existing.count, existing.kept, Shared.everything["count"], state.kept is other.kept

    return Program(step, calls(8), watch=[Shared.everything, existing])


@differential(hits=4)
def test_an_attribute_that_changes_between_calls():
    Shared = shared_class()

    def change():
        Shared.everything["scale"] = 5.0

    return Program(lambda x: x * Shared().doubled, [*calls(5), change, *calls(5)])


@differential(hits=4)
def test_another_dict_between_calls():
    Shared = shared_class()

    def change():
        Shared.everything = {"scale": 7.0}

    return Program(lambda x: x * Shared().doubled, [*calls(5), change, *calls(5)])


@differential(reasons=["dynamic_value"])
def test_an_object_with_the_shared_dict_that_outlives_the_run():
    Shared = shared_class()

    def step(x):
        y = x * 2
        return y, Shared()

    return Program(step, calls())


def assigned_late(shared):
    shared.own = 1
    shared.__dict__ = {"scale": 2.0}


def assigned_a_new_one(shared):
    shared.__dict__ = {"scale": 2.0}


@pytest.mark.parametrize("change", [assigned_late, assigned_a_new_one])
@differential(reasons=["heap_write"])
def test_a_dict_that_is_assigned_otherwise(change):
    class Plain:
        pass

    def step(x):
        y = x.exp()
        plain = Plain()
        change(plain)
        return y * plain.scale

    return Program(step, calls())


@differential(hits=3)
def test_two_objects_from_before_with_one_dict():
    Shared = shared_class()
    one, other = Shared(), Shared()

    def step(x):
        one.count += 1
        other.latest = x * other.count
        return one.latest + 1, other.doubled

    return Program(step, calls(8), watch=[Shared.everything])


@differential(hits=4, reasons=["guard_failed"])
def test_one_of_them_gets_a_dict_of_its_own():
    Shared = shared_class()
    one, other = Shared(), Shared()

    def separate():
        other.__dict__ = dict(Shared.everything)

    def step(x):
        one.count += 1
        return x * other.count

    return Program(step, [*calls(8), separate, *calls(8)], watch=[one, other])


# --- attributes of classes -------------------------------------------------------------------------


def family(*, own):
    """A class with a number, one derived from it, with `own` also with a number of its own, and an object."""

    class Base:
        number = 1.0

    class Middle(Base):
        pass

    class Derived(Middle):
        if own:
            number = 5.0

    return Base, Middle, Derived, Derived()


def writes_the_base(Base, Middle, Derived, made):
    def step(x):
        Base.number = Base.number + 1
        return x * Derived.number, x * made.number, Derived.number

    return step


def writes_both(Base, Middle, Derived, made):
    def step(x):
        Base.number = Base.number + 1
        Derived.number = Derived.number + 1
        return x * Derived.number, made.number

    return step


CHANGES = {
    "deleted": lambda Other, Middle, Derived: delattr(Derived, "number"),
    "derived": lambda Other, Middle, Derived: setattr(Derived, "number", 50.0),
    "bases": lambda Other, Middle, Derived: setattr(Derived, "__bases__", (Other,)),
    "between": lambda Other, Middle, Derived: setattr(Middle, "number", 70.0),
}


@pytest.mark.parametrize("step", [writes_the_base, writes_both])
@pytest.mark.parametrize("change", sorted(CHANGES))
@differential(hits=4)
def test_which_class_has_the_attribute_changes(step, change):
    Base, Middle, Derived, made = family(own=step is writes_both or change == "deleted")
    Other = type("Other", (), {"number": 20.0})

    seen = []

    def look():
        seen.append([vars(each).get("number") for each in (Base, Middle, Derived)])

    arguments = [each for call in calls(20) for each in (call, look)]
    arguments[18:18] = [lambda: CHANGES[change](Other, Middle, Derived)]
    return Program(step(Base, Middle, Derived, made), arguments, watch=[seen])
