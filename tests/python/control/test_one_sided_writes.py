"""What one side of a branch writes or deletes, the other one does not; each call begins anew. What a write
replaces is freed."""

from differential import Program, differential
from random_programs import Shown

import torch
import torchjanus


def calls(between=None):
    """The two sides of a test of the sum in turn; `between` runs before each call."""
    made = []
    for index in range(9):
        x = torch.rand(3, 4) + 0.1
        made += [*([between] if between else []), (x if index % 2 else -x, index)]
    return made


class Holder:
    def __init__(self, **values):
        vars(self).update(values)


class Slotted:
    __slots__ = ("count", "spare")

    def __init__(self):
        self.count, self.spare = 0, 1


@differential(hits=3)
def test_attribute():
    holder = Holder(count=0, flag=False, kept=1)

    def step(x, n):
        holder.count += 1
        if x.sum() > 0:
            holder.flag = True
        else:
            x = x * 2
        return x + holder.count

    return Program(step, calls(lambda: setattr(holder, "flag", False)), watch=[holder])


@differential(hits=3)
def test_slot():
    slotted = Slotted()

    def step(x, n):
        slotted.count += 1
        if x.sum() > 0:
            slotted.spare = 2
        else:
            x = x * 2
        return x + slotted.count

    return Program(step, calls(lambda: setattr(slotted, "spare", 1)), watch=[slotted])


@differential(hits=3)
def test_item():
    table = {"count": 0, "flag": False, "kept": 1}

    def step(x, n):
        table["count"] += 1
        if x.sum() > 0:
            table["flag"] = True
        else:
            x = x * 2
        return x + table["count"]

    return Program(step, calls(lambda: table.update(flag=False)), watch=[table])


@differential(hits=3)
def test_members_of_a_set():
    marks = {1, 2}

    def reset():
        marks.add(1)
        marks.discard(5)

    def step(x, n):
        marks.add(5)
        if x.sum() > 0:
            marks.discard(1)
        else:
            x = x * 2
        return x.tanh()

    return Program(step, calls(reset), watch=[marks])


@differential(hits=3)
def test_elements_of_a_list():
    items = []

    def step(x, n):
        items.append(x.sum().item())
        return x.tanh()

    return Program(step, calls(), watch=[items])


@differential(hits=3)
def test_elements_on_one_side():
    items = []

    def step(x, n):
        if x.sum() > 0:
            items.append(1.5)
        else:
            x = x * 2
        return x.tanh()

    return Program(step, calls(), watch=[items])


@differential(hits=3)
def test_variable():
    count, flag = 0, False

    def step(x, n):
        nonlocal count, flag
        count += 1
        if x.sum() > 0:
            flag = True
        else:
            x = x * 2
        return x + count

    def reset():
        nonlocal flag
        flag = False

    shown = Shown(lambda: {"count": count, "flag": flag})
    return Program(step, calls(reset), watch=[shown])


class Dying:
    def __init__(self, seen):
        self.seen = seen

    def __del__(self):
        self.seen.append("freed")


def with_dying(made, holder, seen):
    """The calls; before some of the last ones there is something that the program sees to end."""
    fill = lambda: setattr(holder, "thing", Dying(seen))
    return [*made[:6], fill, made[6], fill, *made[7:]]


@differential(hits=3, reasons=["unknown_callable"])
def test_what_a_write_replaces_is_freed():
    seen = []
    holder = Holder(thing=None)

    def step(x, n):
        holder.thing = None
        return x.tanh()

    return Program(step, with_dying(calls(), holder, seen), watch=[seen])


@differential(hits=3, reasons=["guard_failed"])
def test_what_one_side_replaces_is_freed():
    seen = []
    holder = Holder(thing=None)

    def step(x, n):
        if x.sum() > 0:
            holder.thing = None
        else:
            x = x * 2
        return x.tanh()

    return Program(step, with_dying(calls(), holder, seen), watch=[seen, holder])


# --- tensors ------------------------------------------------------------------------------------


@differential(hits=3)
def test_contents_of_a_tensor():
    state = torch.ones(4)

    def step(x, n):
        if x.sum() > 0:
            state.add_(x.mean(0))
        else:
            x = x * 2
        return x.tanh()

    return Program(step, calls(), watch=[state])


@differential(hits=3)
def test_gradient():
    weight = torch.randn(4, requires_grad=True)

    def step(x, n):
        if x.sum() > 0:
            weight.grad = None
        else:
            x = x * 2
        return x.tanh()

    def reset():
        weight.grad = torch.ones(4)

    return Program(step, calls(reset), watch=[weight])


@differential(hits=3)
def test_gradient_of_one_side():
    weight = torch.randn(4, requires_grad=True)
    other = torch.randn(4, requires_grad=True)

    def step(x, n):
        weight.grad = other.grad = None
        loss = x * weight if x.sum() > 0 else x * other
        loss.sum().backward()
        return x.tanh()

    return Program(step, calls(), watch=[weight, other])


@differential(reasons=["branch_changed"])
def test_hook_of_a_gradient_of_one_side():
    weight = torch.randn(4, requires_grad=True)
    other = torch.randn(4, requires_grad=True)
    seen = []
    weight.register_hook(lambda gradient: seen.append(1))

    def step(x, n):
        weight.grad = other.grad = None
        loss = x * weight if x.sum() > 0 else x * other
        loss.sum().backward()
        return x.tanh()

    return Program(step, calls(), watch=[weight, other, seen])


# --- order, and what is shown --------------------------------------------------------------------


@differential(hits=4)
def test_order_of_keys():
    def step(x, table):
        if x.sum() > 0:
            table["a"] = 1
            table["b"] = 2
        else:
            table["b"] = 2
            table["a"] = 1
        return x.tanh()

    return Program(step, [(x, {}) for x, _ in calls()])


@differential(hits=4)
def test_order_of_attributes():
    def step(x, holder):
        if x.sum() > 0:
            holder.a = 1
            holder.b = 2
        else:
            holder.b = 2
            holder.a = 1
        return x.tanh()

    return Program(step, [(x, Holder()) for x, _ in calls()])


def test_order_of_members():
    """Which a set shows where hashes of its members collide."""

    def step(x, members):
        if x.sum() > 0:
            members.add(8)
            members.add(0)
        else:
            members.add(0)
            members.add(8)
        return x.tanh()

    converted = torchjanus.function(step, profile_runs=0)
    for x, _ in calls():
        mine, its = set(), set()
        converted(x, mine)
        step(x, its)
        assert list(mine) == list(its)
    assert converted.stats()["hits"] == 7


@differential(hits=3)
def test_shown_text():
    def step(x, n):
        if x.sum() > 0:
            print("positive")
        else:
            x = x * 2
        return x.tanh()

    return Program(step, calls())
