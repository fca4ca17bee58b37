"""Writes to objects that outlive the call. PYTEST_DONT_REWRITE"""

import types
from dataclasses import dataclass, field

import pytest
import torch.nn.functional as F
from differential import Program, differential

import torch
from torch import nn

STEPS = 12


def calls(*shape, count=STEPS):
    return [(torch.randn(*shape),) for _ in range(count)]


class State:
    def __init__(self, **values):
        vars(self).update(values)


# --- numbers that change from call to call, in every form of storage ------------------------------


class WithSetattr:
    def __init__(self):
        self.rate = 1.0

    def __setattr__(self, name, value):
        object.__setattr__(self, "_" + name, value)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self, "_" + name)


class WithProperty:
    def __init__(self):
        self.value = 1.0

    @property
    def rate(self):
        return self.value * 2

    @rate.setter
    def rate(self, value):
        self.value = value / 2


class WithSlots:
    __slots__ = ("rate",)

    def __init__(self):
        self.rate = 1.0

    @property
    def __dict__(self):
        return {"rate": self.rate}


class OfClass:
    rate = 1.0


module_rate = 1.0


def storage_program(kind, update):
    """A step that updates one number, read and written wherever `kind` keeps it."""
    module = types.ModuleType("settings")
    module.rate = 1.0
    network = nn.Linear(3, 3)
    network.rate = 1.0
    state = State(rate=1.0)
    table, row = {"rate": 1.0}, [1.0, 5]
    with_setattr, with_property, with_slots = WithSetattr(), WithProperty(), WithSlots()
    OfClass.rate = 1.0
    globals()["module_rate"] = 1.0

    def attribute(x):
        state.rate = update(state.rate)
        return x * state.rate

    def augmented(x):
        state.rate *= 0.9
        return x * state.rate

    def module_attribute(x):
        module.rate = update(module.rate)
        return x * module.rate

    def network_attribute(x):
        network.rate = update(network.rate)
        return network(x) * network.rate

    def dict_item(x):
        table["rate"] = update(table["rate"])
        return x * table["rate"]

    def list_item(x):
        row[0] = update(row[0])
        return x * row[0]

    def global_(x):
        global module_rate
        module_rate = update(module_rate)
        return x * module_rate

    rate = 1.0

    def nonlocal_(x):
        nonlocal rate
        rate = update(rate)
        return x * rate

    def setattr_method(x):
        with_setattr.rate = update(with_setattr.rate)
        return x * with_setattr.rate

    def property_(x):
        with_property.rate = update(with_property.rate)
        return x * with_property.rate

    def slot(x):
        with_slots.rate = update(with_slots.rate)
        return x * with_slots.rate

    def class_attribute(x):
        OfClass.rate = update(OfClass.rate)
        return x * OfClass.rate

    def by_name(x):
        setattr(state, "rate", update(getattr(state, "rate")))
        return x * state.rate

    step = {
        "attribute": attribute,
        "augmented": augmented,
        "module attribute": module_attribute,
        "nn.Module attribute": network_attribute,
        "dict": dict_item,
        "list": list_item,
        "global": global_,
        "nonlocal": nonlocal_,
        "__setattr__": setattr_method,
        "property": property_,
        "__slots__": slot,
        "class attribute": class_attribute,
        "setattr": by_name,
    }[kind]
    watch = [state, vars(module), network, table, row, vars(with_setattr), with_property]
    watch += [with_slots, Rates(), lambda: rate]
    return Program(step, calls(3, count=20), watch=watch)


class Rates:
    """The rates that are no object's, as attributes that the harness can see."""

    @property
    def __dict__(self):
        return {"global": module_rate, "class": OfClass.rate}


STORAGES = [
    "attribute",
    "augmented",
    "module attribute",
    "nn.Module attribute",
    "dict",
    "list",
    "global",
    "nonlocal",
    "__setattr__",
    "property",
    "__slots__",
    "class attribute",
    "setattr",
]


@pytest.mark.parametrize("kind", STORAGES)
def test_float_that_decays(kind):
    differential(hits=16, graphs=2)(lambda: storage_program(kind, lambda v: 0.9 * v + 0.01))()


@pytest.mark.parametrize("kind", [s for s in STORAGES if s not in ("augmented", "__setattr__")])
def test_number_that_becomes_an_int(kind):
    differential(hits=14, graphs=3)(
        lambda: storage_program(kind, lambda v: 1 if isinstance(v, float) and v > 3 else v + 0.5)
    )()


@differential(hits=16, graphs=1)
def test_counter_in_the_arithmetic():
    state = State(step=0)

    def step(x):
        state.step += 1
        correction = 1 - 0.9**state.step
        return x / correction

    return Program(step, calls(3, count=20), watch=[state])


@differential(hits=8)
def test_counter_decides_a_branch():
    state = State(step=0, flushed=0)

    def step(x):
        state.step += 1
        if state.step % 5 == 0:
            state.flushed += 1
            return x * 2
        return x + 1

    return Program(step, calls(3, count=40), watch=[state])


# --- training loops that keep records -------------------------------------------------------------


class Trainer:
    def __init__(self):
        self.model = nn.Linear(4, 3)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.1)
        self.steps = 0
        self.average = None
        self.history = []
        self.running = {"loss": 0.0}
        self.best = 100.0
        self.last = torch.zeros(())

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = F.mse_loss(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        self.steps += 1
        value = loss.item()
        self.average = value if self.average is None else 0.9 * self.average + 0.1 * value
        self.history.append(value)
        self.running["loss"] += value
        self.running["last"] = value
        self.last = loss.detach()
        return loss


def batches(count=STEPS):
    return [(torch.randn(5, 4), torch.randn(5, 3)) for _ in range(count)]


@differential(hits=8, graphs=2)
def test_training_step_with_records():
    trainer = Trainer()
    return Program(trainer.step, batches(), watch=[trainer])


@differential(hits=10, graphs=1)
def test_history_that_others_append_to():
    history = []

    def step(x):
        history.append(x.sum().item())
        history.extend([1.5, x.shape[0]])
        return x * 2

    arguments = calls(3, count=16)
    arguments[8:8] = [lambda: history.append("others"), lambda: history.insert(0, "first")]
    arguments[12:12] = [history.clear]
    return Program(step, arguments, watch=[history])


@differential(hits=10, graphs=2)
def test_state_carried_between_calls():
    cell = nn.GRUCell(3, 4)
    state = State(hidden=torch.zeros(2, 4), previous=None)

    def step(x):
        hidden = cell(x, state.hidden)
        hidden.sum().backward()
        state.previous = state.hidden
        state.hidden = hidden.detach()
        return hidden

    return Program(step, calls(2, 3, count=16), watch=[cell, state])


@differential(hits=8)
def test_results_that_require_grad_are_kept():
    model = nn.Linear(3, 2)
    outputs = {}

    def step(x):
        y = model(x)
        outputs["y"] = y
        outputs["sum"] = y.sum()
        return outputs["sum"]

    def convert(f):
        converted = __import__("torchjanus").function(f)

        def both(x):
            model.zero_grad()
            result = converted(x)
            (result + outputs["y"].pow(2).sum()).backward()
            return result

        return both, converted

    program = Program(step, calls(5, 3), watch=[model, outputs], convert=convert)
    plain = program.step

    def eager(x):
        model.zero_grad()
        result = plain(x)
        (result + outputs["y"].pow(2).sum()).backward()
        return result

    program.step = eager
    program.convert = lambda _: convert(plain)
    return program


@differential(hits=8)
def test_one_tensor_in_two_places():
    state = State(a=None, b=None, items=[])

    def step(x):
        y = x * 2
        state.a = y
        state.b = y
        state.items.append(y)
        state.pair = (y, x)
        return y

    return Program(step, calls(3), watch=[state])


# --- branches -------------------------------------------------------------------------------------


@differential(hits=12, graphs=1, aborts=0)
def test_writes_on_one_side_of_a_branch():
    state = State(best=100.0, improved=0, seen=0)

    def step(x):
        value = x.abs().sum().item()
        if value < state.best:
            state.best = value
            state.improved += 1
        state.seen += 1
        return x * state.best

    return Program(step, calls(3, count=24), watch=[state])


@differential(hits=12, graphs=1)
def test_writes_on_both_sides_of_a_branch():
    state = State(last=None, positive=0, sums=[], table={"n": 0.0})

    def step(x):
        total = x.sum()
        if total > 0:
            state.positive += 1
            state.sums.append(total.item())
            state.table["n"] += 1.0
        else:
            state.sums.append(-1.0)
            state.table["n"] *= 0.5
        state.last = x * state.positive
        return state.last

    return Program(step, calls(3, count=24), watch=[state])


@differential(hits=6)
def test_append_on_one_side_of_a_branch():
    items = []

    def step(x):
        if x.sum() > 0:
            items.append(x.sum().item())
        return x * 2

    return Program(step, calls(3, count=40), watch=[items])


@differential(hits=16)
def test_writes_in_a_loop_whose_iterations_vary():
    state = State(iterations=0, sums=[])

    def step(x):
        while x.norm() > 1:
            x = x / 2
            state.iterations += 1
        state.sums.append(x.sum().item())
        return x * state.iterations

    return Program(step, [(x * 4,) for (x,) in calls(3, count=24)], watch=[state])


# --- objects made in the run ----------------------------------------------------------------------


class Node:
    made = 0

    def __init__(self, value, left=None):
        self.value = value
        self.left = left

    @property
    def doubled(self):
        return self.value * 2

    def total(self):
        return self.value if self.left is None else self.value + self.left.total()

    def __add__(self, other):
        return Node(self.value + other.value, self)

    def __len__(self):
        return 1 if self.left is None else 1 + len(self.left)

    def __getitem__(self, index):
        return self if index == 0 else self.left[index - 1]


@dataclass
class Output:
    loss: torch.Tensor
    parts: list = field(default_factory=list)
    name: str = "none"


@differential(hits=8)
def test_objects_that_do_not_outlive_the_run():
    def step(x):
        node = Node(x, Node(x * 2))
        node.value = node.value + 1
        both = node + node.left
        node.extra = 1
        del node.extra
        output = Output(both.total(), name="sum")
        output.parts.append(both[1].doubled)
        return output.loss + output.parts[0] + len(both) + (1 if both else 0)

    return Program(step, calls(3))


@differential(hits=8)
def test_objects_that_escape():
    state = State(last=None, nodes=[])

    def step(x):
        node = Node(x * 2)
        other = Node(node.value, node)
        node.left = other  # a cycle
        state.last = node
        state.nodes.append(other)
        return Output(x.sum(), [node, x], name=f"{len(state.nodes)}")

    return Program(step, calls(3), watch=[state])


@differential(hits=4)
def test_class_of_a_made_object_changes():
    class Local:
        scale = 2

        def __init__(self, value):
            self.value = value

        def apply(self, x):
            return x * self.value * self.scale

    def step(x):
        return Local(3).apply(x)

    arguments = calls(3, count=24)
    arguments[8:8] = [lambda: setattr(Local, "scale", 5)]
    arguments[16:16] = [lambda: setattr(Local, "apply", lambda self, x: x - self.value)]
    return Program(step, arguments)


# --- more containers and modules ------------------------------------------------------------------


@differential(hits=8, graphs=2)
def test_module_that_keeps_state():
    class Average(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("average", torch.zeros(3))
            self.linear = nn.Linear(3, 3)
            self.calls = 0
            self.cache = {}

        def forward(self, x):
            self.average = 0.9 * self.average + 0.1 * x.detach()
            self.calls += 1
            self.cache["x"] = x
            return self.linear(x) + self.average

    module = Average()
    return Program(module.forward, calls(3), watch=[module])


@differential(hits=8, graphs=2)
def test_scheduler_inside_the_step():
    model = nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).pow(2).sum()
        loss.backward()
        optimizer.step()
        scheduler.step()
        return loss.detach(), optimizer.param_groups[0]["lr"]

    return Program(step, calls(3, count=20), watch=[model, optimizer])


@differential(hits=8, graphs=2)
def test_training_and_evaluation_in_one_step():
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))

    def step(x):
        model.train()
        y = model(x)
        model.eval()
        return y + model(x)

    arguments = calls(5, 3)
    arguments[6:6] = [model.train]
    return Program(step, arguments, watch=[model])
