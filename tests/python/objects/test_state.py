"""Differential programs: state that sides of a branch, iterations of a loop and activations of a function
write, delete, append to and put in another order. PYTEST_DONT_REWRITE"""

import collections

import pytest
from differential import Program, differential

import torch
import torchjanus

LENGTHS = (2, 1, 3, 2, 3, 1, 2, 0, 3, 2, 1, 3)


class State:
    def __init__(self, **values):
        vars(self).update(values)


class Slots:
    __slots__ = ("first", "second", "third")


class Shown:
    """What a function gives, as an object's dictionary: for `watch`."""

    def __init__(self, show):
        object.__setattr__(self, "show", show)

    @property
    def __dict__(self):
        return {"shown": self.show()}


def slots_of(value):
    return {name: getattr(value, name) for name in Slots.__slots__ if hasattr(value, name)}


def learned_at_once(f):
    """Converted with the first call: both outcomes of a branch are met by graphs."""
    converted = torchjanus.function(f, profile_runs=0)
    return converted, converted


def calls_between(reset, count=len(LENGTHS)):
    """Calls with sums on both sides of 0, and lengths; `reset` before each."""
    calls = []
    for index in range(count):
        x = torch.randn(4)
        x = x.abs() if index % 2 == 0 else -x.abs()
        calls += [reset, (x, LENGTHS[index % len(LENGTHS)])]
    return calls


# --- deleted on one side ---------------------------------------------------------------------------


@pytest.mark.parametrize("convert", [None, learned_at_once])
@pytest.mark.parametrize("change", ["discard", "remove", "add", "clear"])
@differential(hits=4)
def test_set_changed_on_one_side(change, convert):
    members = {1, 2}

    def discard(x):
        if x.sum() > 0:
            members.discard(1)

    def remove(x):
        if x.sum() > 0:
            members.remove(1)

    def add(x):
        if x.sum() > 0:
            members.add(3)

    def clear(x):
        if x.sum() > 0:
            members.discard(1)
            members.discard(2)

    do = {"discard": discard, "remove": remove, "add": add, "clear": clear}[change]

    def step(x, n):
        do(x)
        return x * 2, len(members), 1 in members

    def reset():
        members.clear()
        members.update((1, 2))

    return Program(step, calls_between(reset), watch=[members], convert=convert)


@differential(hits=10, graphs=2)
def test_set_left_as_it_is_by_both_sides():
    members = {1, 2}

    def step(x, n):
        if x.sum() > 0:
            members.add(1)
            y = x * 2
        else:
            y = x * 3
        return y, len(members)

    return Program(step, calls_between(lambda: None, 14), watch=[members])


@pytest.mark.parametrize("convert", [None, learned_at_once])
@pytest.mark.parametrize("side", [True, False])
@differential(hits=4)
def test_slot_deleted_on_one_side(side, convert):
    state = Slots()

    def step(x, n):
        if (x.sum() > 0) == side:
            del state.first
        return x * 2, hasattr(state, "first")

    def reset():
        state.first, state.second = 1.0, 2.0

    return Program(
        step, calls_between(reset), watch=[Shown(lambda: slots_of(state))], convert=convert
    )


@differential(hits=7, graphs=2)
def test_slot_set_on_one_side():
    state = Slots()
    state.first = torch.ones(4)

    def step(x, n):
        if x.sum() > 0:
            state.first = state.first + x
        return state.first * 2

    return Program(
        step,
        calls_between(lambda: None),
        watch=[Shown(lambda: slots_of(state))],
    )


@pytest.mark.parametrize("convert", [None, learned_at_once])
@differential(hits=4)
def test_slot_made_on_one_side(convert):
    state = Slots()

    def step(x, n):
        if x.sum() > 0:
            state.third = 3.0
        return x * 2

    def reset():
        if hasattr(state, "third"):
            del state.third

    return Program(
        step, calls_between(reset), watch=[Shown(lambda: slots_of(state))], convert=convert
    )


@pytest.mark.parametrize("place", ["attribute", "item", "global", "slot"])
@differential(hits=4)
def test_made_and_deleted_again_on_one_side(place):
    """A call that finds it there keeps it on the other side."""
    global temporary
    temporary = 1.0
    state, items, slots = State(kept=1), {"kept": 1}, Slots()

    def attribute(x):
        if x.sum() > 0:
            state.temporary = x
            del state.temporary

    def item(x):
        if x.sum() > 0:
            items["temporary"] = x
            del items["temporary"]

    def of_globals(x):
        global temporary
        if x.sum() > 0:
            temporary = x
            del temporary

    def slot(x):
        if x.sum() > 0:
            slots.first = x
            del slots.first

    do = {"attribute": attribute, "item": item, "global": of_globals, "slot": slot}[place]

    def step(x, n):
        do(x)
        return x * 2

    def put():
        global temporary
        state.temporary = items["temporary"] = slots.first = temporary = 7

    calls = calls_between(lambda: None)
    calls[15:15] = [put]
    shown = Shown(lambda: [globals().get("temporary"), slots_of(slots)])
    return Program(step, calls, watch=[state, items, shown])


# --- the order of new keys -------------------------------------------------------------------------


@pytest.mark.parametrize("convert", [None, learned_at_once])
@pytest.mark.parametrize("place", ["attributes", "items", "ordered", "default"])
@differential(hits=4)
def test_keys_made_in_another_order(place, convert):
    state = State(kept=1)
    items = {"ordered": collections.OrderedDict(), "default": collections.defaultdict(int)}.get(
        place, {}
    )

    def attributes(x):
        if x.sum() > 0:
            state.one = x
            state.two = 2
        else:
            state.two = x
            state.one = 3

    def of_items(x):
        if x.sum() > 0:
            items["one"] = 1
            items["two"] = x
        else:
            items["two"] = x * 2
            items["one"] = 1

    def step(x, n):
        (attributes if place == "attributes" else of_items)(x)
        return x * 2

    def reset():
        items.clear()
        for name in ("one", "two"):
            vars(state).pop(name, None)

    return Program(step, calls_between(reset), watch=[state, items], convert=convert)


@differential(hits=9, graphs=1)
def test_old_keys_written_in_another_order():
    state = State(one=torch.ones(4), two=torch.zeros(4))

    def step(x, n):
        if x.sum() > 0:
            state.one = x + state.two
            state.two = x * 2
        else:
            state.two = x * 3
            state.one = x - state.two
        return state.one * state.two

    return Program(step, calls_between(lambda: None), watch=[state])


@pytest.mark.parametrize("convert", [None, learned_at_once])
@differential(hits=4)
def test_old_key_moved_to_the_end_on_one_side(convert):
    items = {"one": 1.0, "two": 2.0}

    def step(x, n):
        if x.sum() > 0:
            items["one"] = 3.0
        else:
            del items["one"]
            items["one"] = 4.0
        return x * 2

    def reset():
        items.clear()
        items.update(one=1.0, two=2.0)

    return Program(step, calls_between(reset), watch=[items], convert=convert)


# --- .grad -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("convert", [None, learned_at_once])
@pytest.mark.parametrize("change", ["halve", "clear", "zero", "replace"])
@pytest.mark.parametrize("before", ["set", "backward", "found"])
@differential(hits=3)
def test_grad_changed_in_iterations(before, change, convert):
    weight = torch.ones(4, requires_grad=True)
    optimizer = torch.optim.SGD([weight], 0.1)

    def halve(x):
        weight.grad = weight.grad * 0.5

    def clear(x):
        weight.grad = None

    def zero(x):
        optimizer.zero_grad()

    def replace(x):
        weight.grad = x * 2

    do = {"halve": halve, "clear": clear, "zero": zero, "replace": replace}[change]

    def step(x, n):
        if before == "set":
            weight.grad = x.clone()
        elif before == "backward":
            (weight * x).sum().backward()
        for _ in range(n):
            do(x)
        return x * 2, None if weight.grad is None else weight.grad * 2

    def reset():
        weight.grad = torch.ones(4)

    return Program(step, calls_between(reset), watch=[weight], convert=convert)


@differential(hits=3)
def test_grad_read_by_the_test_of_a_loop():
    weight = torch.ones(4, requires_grad=True)

    def step(x):
        weight.grad = None
        (weight * x).sum().backward()
        while weight.grad.norm() > 0.3:
            weight.grad = weight.grad * 0.5
        return weight.grad * 2

    return Program(step, [(torch.randn(4),) for _ in range(14)], watch=[weight])


@differential(hits=8, graphs=1)
def test_grad_read_in_iterations():
    weight = torch.ones(4, requires_grad=True)

    def step(x, n):
        weight.grad = None
        (weight * x).sum().backward()
        total = x * 0
        for _ in range(n):
            total = total + weight.grad
        return total

    return Program(step, calls_between(lambda: None), watch=[weight])


@differential(reasons=["limit"])
def test_grad_changed_in_a_recursion():
    weight = torch.ones(4, requires_grad=True)

    def halve(n):
        if n > 0:
            weight.grad = weight.grad * 0.5
            halve(n - 1)

    def step(x, n):
        weight.grad = x.clone()
        halve(n)
        return weight.grad * 2

    return Program(step, calls_between(lambda: None), watch=[weight])


# --- lists that rounds read and make longer --------------------------------------------------------


@pytest.mark.parametrize("convert", [None, learned_at_once])
@pytest.mark.parametrize("position", [0, 1, -1])
@differential(hits=3)
def test_appended_in_iterations_that_read_an_element(position, convert):
    tensors = [torch.ones(4), torch.zeros(4)]

    def step(x, n):
        for _ in range(n):
            tensors.append(tensors[position] * x)
        return len(tensors), tensors[-1] * 2

    def reset():
        del tensors[2:]

    return Program(step, calls_between(reset), watch=[tensors], convert=convert)


@differential(hits=8, graphs=1)
def test_first_element_read_in_iterations_that_append():
    tensors = [torch.ones(4), torch.zeros(4)]

    def step(x, n):
        for _ in range(n):
            tensors.append(tensors[0] * x)
        return x * 2

    return Program(step, calls_between(lambda: tensors.__delitem__(slice(2, None))))


@pytest.mark.parametrize("change", ["append", "insert", "pop", "store", "reverse", "clear"])
@differential(hits=3)
def test_list_changed_in_iterations(change):
    tensors = [torch.ones(4), torch.zeros(4), torch.full((4,), 2.0), torch.full((4,), 3.0)]
    first = list(tensors)

    def step(x, n):
        for _ in range(n):
            y = tensors[1] * x
            if change == "append":
                tensors.append(tensors[0] + y)
            elif change == "insert":
                tensors.insert(0, y)
            elif change == "pop":
                tensors.pop()
            elif change == "store":
                tensors[1] = y + 1
            elif change == "reverse":
                tensors.reverse()
            else:
                tensors[:] = [x, y]
        return len(tensors), tensors[0] * 2

    def reset():
        tensors[:] = first

    return Program(step, calls_between(reset), watch=[tensors])


@pytest.mark.parametrize("appended", [False, True])
@differential(hits=3)
def test_list_opened_in_iterations_alone(appended):
    tensors = [torch.ones(4), torch.zeros(4)]

    def step(x, n):
        if appended:
            tensors.append(x)
        total = x * 0
        for _ in range(n):
            for tensor in tensors:
                total = total + tensor
        return total

    return Program(
        step, calls_between(lambda: tensors.__delitem__(slice(2, None))), watch=[tensors]
    )


@pytest.mark.parametrize("appended", [False, True])
@differential(hits=0, reasons=["limit"])
def test_list_changed_in_a_recursion_that_reads_it(appended):
    numbers = [1.0, 2.0]

    def grow(n, x):
        if n > 0:
            numbers.append(max(numbers) + 1)
            return grow(n - 1, x) + x
        return x

    def step(x, n):
        if appended:
            numbers.append(5.0)
        return grow(n, x)

    return Program(
        step, calls_between(lambda: numbers.__delitem__(slice(2, None))), watch=[numbers]
    )


# --- one object on one side ------------------------------------------------------------------------


@pytest.mark.parametrize("convert", [None, learned_at_once])
@differential(hits=4)
def test_tensor_and_list_that_holds_it_on_one_side(convert):
    def step(x, n):
        value, held = torch.ones(4), []
        if x.sum() > 0:
            value = value.clone()
            held.append(value)
            value.add_(1)
        return value, held

    return Program(step, calls_between(lambda: None), convert=convert)


@pytest.mark.parametrize("convert", [None, learned_at_once])
@differential(hits=4)
def test_new_gradient_returned_by_one_side(convert):
    weight = torch.ones(4, requires_grad=True)

    def step(x, n):
        weight.grad = None
        (weight * x).sum().backward()
        if x.sum() > 0:
            return weight.grad
        return x * 2

    return Program(step, calls_between(lambda: None), watch=[weight], convert=convert)


# --- dicts and sets that keep their order or count -------------------------------------------------


@pytest.mark.parametrize("convert", [None, learned_at_once])
@differential(hits=3)
def test_ordered_dict_whose_keys_were_moved(convert):
    items = collections.OrderedDict(one=1.0, two=2.0)

    def step(x):
        total = x * 0
        for index, value in enumerate(items.values()):
            total = total + x * value * (index + 1)
        return total, list(items)

    def move():
        items.move_to_end("one")

    calls = []
    for _ in range(4):
        calls += [*((torch.randn(3),) for _ in range(5)), move]
    return Program(step, calls, watch=[items], convert=convert)


@pytest.mark.parametrize("convert", [None, learned_at_once])
@differential(hits=3)
def test_set_elements_taken_and_put_again(convert):
    members = {1, 2}

    def step(x):
        members.discard(1)
        members.add(1)
        members.discard(2)
        members.discard(2)
        members.add(3)
        members.discard(3)
        return x * len(members), 1 in members, 2 in members, 3 in members

    def reset():
        members.clear()
        members.update((1, 2))

    calls = []
    for _ in range(8):
        calls += [reset, (torch.randn(3),)]
    return Program(step, calls, watch=[members], convert=convert)


@pytest.mark.parametrize("convert", [None, learned_at_once])
@differential(hits=3)
def test_set_discarded_from_in_iterations(convert):
    members = {1, 2}

    def step(x, n):
        members.remove(2)
        for index in range(n):
            if x[index] > 0:
                members.discard(1)
        members.discard(1)
        return x * 2, len(members)

    def reset():
        members.clear()
        members.update((1, 2))

    return Program(step, calls_between(reset), watch=[members], convert=convert)


# --- modes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("convert", [None, learned_at_once])
@differential(hits=4)
def test_no_grad_left_by_one_side(convert):
    weight = torch.ones(4, requires_grad=True)

    def step(x, n):
        with torch.no_grad():
            y = weight * x
            if x.sum() > 0:
                return y
            z = y * 2
        return z * weight

    return Program(step, calls_between(lambda: None), watch=[weight], convert=convert)


@pytest.mark.parametrize("convert", [None, learned_at_once])
@differential(hits=4, dtype=torch.float32, tolerance=1e-2)
def test_autocast_left_by_one_side(convert):
    weight = torch.randn(4, 4)

    def step(x, n):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = weight @ x
            if x.sum() > 0:
                return y
            z = y * 2
        return weight @ z.float()

    return Program(step, calls_between(lambda: None), watch=[weight], convert=convert)


@differential(hits=7)
def test_recursion_outside_and_inside_of_an_autocast():
    weight = torch.randn(4, 4)

    def power(n, x):
        return x if n <= 0 else weight @ power(n - 1, x)

    def step(x, n):
        y = power(n, x)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z = power(n, x)
        return y, z

    return Program(step, calls_between(lambda: None), watch=[weight])


# --- tensors on other memory -----------------------------------------------------------------------


@differential(hits=2)
def test_data_replaced_in_iterations():
    def step(x, n):
        weight = torch.ones(4, requires_grad=True)
        weight.data = x * 2
        given = x * 3
        for _ in range(n):
            weight.data = given
        given.add_(1)
        return weight.detach() * 2, given

    return Program(step, calls_between(lambda: None))


@differential(hits=1)
def test_view_turned_in_iterations():
    def step(x, n):
        matrix = x.clone().reshape(2, 2)
        turned = matrix[:, :]
        for _ in range(n):
            turned.t_()
        return turned * 2, turned.stride()

    return Program(step, calls_between(lambda: None))


# --- hooks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("convert", [None, learned_at_once])
@differential(hits=4)
def test_hook_removed_on_one_side(convert):
    weight = torch.ones(4, requires_grad=True)

    def step(x, n):
        weight.grad = None
        y = weight * 2
        handle = y.register_hook(lambda gradient: gradient * 0.5)
        if x.sum() > 0:
            handle.remove()
        (y * x).sum().backward()

    return Program(step, calls_between(lambda: None), watch=[weight], convert=convert)


@pytest.mark.parametrize("convert", [None, learned_at_once])
@pytest.mark.parametrize("place", ["branch", "loop"])
@differential(hits=3)
def test_hook_on_what_may_be_hooked_already(place, convert):
    weight = torch.ones(4, requires_grad=True)

    def step(x, n):
        weight.grad = None
        y = weight * 2
        y.register_hook(lambda gradient: gradient * 0.5)
        if place == "branch":
            if x.sum() > 0:
                y = y * x
        else:
            for _ in range(n):
                y = y * x
        y.register_hook(lambda gradient: gradient + 1)
        y.sum().backward()

    return Program(step, calls_between(lambda: None), watch=[weight], convert=convert)


# --- iterators -------------------------------------------------------------------------------------


@pytest.mark.parametrize("convert", [None, learned_at_once])
@pytest.mark.parametrize("kind", ["list", "range", "generator"])
@differential()
def test_iterator_that_the_test_of_a_loop_takes_from(kind, convert):
    def step(x, n):
        numbers = {
            "list": lambda: iter([3.0, 2.0, 1.0, 0.0, 5.0]),
            "generator": lambda: (3.0 - i for i in range(9)),
        }.get(kind, lambda: iter(range(3, -9, -1)))()
        y = x
        while next(numbers) > 0:
            y = y * 2
        return y, list(numbers)

    return Program(step, calls_between(lambda: None), convert=convert)


@pytest.mark.parametrize("convert", [None, learned_at_once])
@differential(hits=2)
def test_iterator_that_a_side_takes_from_as_it_leaves(convert):
    def step(x, n):
        numbers = iter([3.0, 2.0, 1.0])
        if x.sum() > 0:
            y = x * 2
        else:
            return x * next(numbers)
        return y * next(numbers)

    return Program(step, calls_between(lambda: None), convert=convert)


# --- values that come from both sides --------------------------------------------------------------


@pytest.mark.parametrize("convert", [None, learned_at_once])
@differential(hits=4)
def test_number_and_text_swapped_on_one_side(convert):
    def step(x, n):
        number, text = x.sum().item(), "text"
        if x[0] > 0:
            number, text = text, number
        return x * 2, number, text

    return Program(step, calls_between(lambda: None), convert=convert)


@pytest.mark.parametrize("convert", [None, learned_at_once])
@differential(hits=4)
def test_values_swapped_again_and_again(convert):
    def step(x, n):
        one, other = 1.0, x.sum()
        for index in range(2):
            if x[index] > 0:
                one, other = other, one
        return x * 2, one is other, one * 1, other * 1

    calls = [(torch.randn(4), 0) for _ in range(12)]
    return Program(step, calls, convert=convert)
