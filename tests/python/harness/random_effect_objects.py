"""The classes and functions that random programs about effects use, and what changes between calls."""

OBJECTS = '''
import contextlib
from dataclasses import dataclass

import torchjanus

LOG = []
WHERE = ("nowhere", "enter", "exit", "nowhere")


class Plain:
    pass


class World:
    """Holds the objects of a program."""


class Dying:
    def __init__(self, number):
        self.number = number

    def __del__(self):
        LOG.append(("freed", self.number))


class Deeper:
    def __init__(self):
        self._h = torch.zeros(4)

    @property
    def h(self):
        return self._h

    @h.setter
    def h(self, value):
        LOG.append("deeper")
        self._h = value


class Held:
    """A property with a setter, and one without."""

    def __init__(self):
        self._h = torch.ones(4)
        self.count = 0
        self.spare = 1.5
        self.inner = Deeper()

    @property
    def h(self):
        return self._h

    @h.setter
    def h(self, value):
        self.count += 1
        LOG.append("set h")
        self._h = value

    @property
    def fixed(self):
        return self._h


class Noted:
    """Every store runs code."""

    def __init__(self):
        object.__setattr__(self, "names", [])
        object.__setattr__(self, "state", torch.ones(4))

    def __setattr__(self, name, value):
        self.names.append(name)
        object.__setattr__(self, name, value)


class Slotted:
    __slots__ = ("spare", "state")

    def __init__(self):
        self.state = torch.ones(4)
        self.spare = 0.5


class Kept:
    """A descriptor that says when it is used."""

    def __get__(self, instance, owner):
        if instance is None:
            return self
        return instance.__dict__["_value"]

    def __set__(self, instance, value):
        LOG.append("kept")
        instance.__dict__["_value"] = value

    def __delete__(self, instance):
        LOG.append("dropped")
        instance.__dict__["_value"] = torch.zeros(4)


class Checked:
    value = Kept()

    def __init__(self):
        self.value = torch.ones(4)


class Shelf:
    """A class with items of its own."""

    def __init__(self):
        self.content = {"a": torch.ones(4)}
        self.stores = 0

    def __getitem__(self, key):
        return self.content[key]

    def __setitem__(self, key, value):
        self.stores += 1
        self.content[key] = value

    def __delitem__(self, key):
        LOG.append("deleted")
        del self.content[key]


class Ledger(dict):
    def __setitem__(self, key, value):
        LOG.append(key)
        super().__setitem__(key, value)


class Counted:
    buf = torch.zeros(4)
    shared = torch.ones(4)


@dataclass(frozen=True)
class Frozen:
    state: torch.Tensor


class Scope:
    """A context manager that says what it does, and raises where it is told to."""

    def __init__(self, where, swallows, gives):
        self.where, self.swallows, self.gives = where, swallows, gives

    def __enter__(self):
        LOG.append("enter")
        if self.where == "enter":
            raise KeyError("enter")
        return self.gives

    def __exit__(self, kind, error, trace):
        LOG.append(("exit", None if kind is None else kind.__name__))
        if self.where == "exit":
            raise RuntimeError("exit")
        return self.swallows


@contextlib.contextmanager
def generated_scope(where, swallows, gives):
    if where == "enter":
        raise KeyError("enter")
    try:
        LOG.append("in")
        yield gives
    except ValueError:
        if not swallows:
            raise
    finally:
        LOG.append("out")
        if where == "exit":
            raise RuntimeError("exit")


def again(held, value):
    """Rebinds a place while what is added to it is computed."""
    held.h = held.h * 0.5
    held._h = held._h + 1
    return value


def ratio(a, b):
    return a / b


def accumulator(leaf):
    return torch.autograd.graph.get_gradient_edge(leaf).node


def note(gradient):
    LOG.append(round(float(gradient.sum()), 6))


def halve(gradient):
    return gradient * 0.5


def note_leaf(leaf):
    LOG.append(("leaf", round(float(leaf.grad.sum()), 6)))


def note_node(*gradients):
    LOG.append("node")


def note_node_before(gradients):
    LOG.append("before node")


def halve_node_before(gradients):
    return tuple(None if each is None else each * 0.5 for each in gradients)


def note_forward(module, given, result):
    LOG.append("forward")
    return result * 0.5


def note_forward_before(module, given):
    LOG.append("before forward")


def note_backward(module, given, result):
    LOG.append("backward")
'''

CHANGES = {
    "objects": (
        "setattr({at}held, '_h', torch.full((4,), 2.0))", "setattr({at}held, 'count', 5)",
        "setattr({at}leaf, 'tag', 1)", "setattr({at}held, 'tag', 1)", "setattr({at}noted, 'later', 1)",
        "setattr({at}counted, 'later', 2)", "{at}ledger.update(b=1)", "{at}table.update(k=2.5)",
        "{at}items.append(torch.ones(4))", "{at}marks.add(1)", "setattr({at}slotted, 'spare', 3)",
        "setattr({at}leaf, 'grad', torch.ones(4))", "setattr({at}leaf, 'grad', None)", "LOG.clear()",
        "setattr({at}held, 'spare', 'text')", "setattr({at}slotted, 'state', torch.zeros(4))",
    ),
    "hooks": (
        "{at}leaf.register_hook(halve)", "{at}leaf.register_post_accumulate_grad_hook(note_leaf)",
        "accumulator({at}leaf).register_hook(note_node)",
        "accumulator({at}leaf).register_prehook(note_node_before)",
        "accumulator(cell.weight).register_prehook(halve_node_before)",
        "accumulator(net.weight).register_hook(note_node)", "cell.weight.register_hook(note)",
        "net.weight.register_post_accumulate_grad_hook(note_leaf)", "net.register_forward_hook(note_forward)",
        "net.first.register_full_backward_hook(note_backward)",
        "net.second.register_forward_pre_hook(note_forward_before)",
    ),
}  # fmt: skip
