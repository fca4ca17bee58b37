"""Random programs about effects: what they write, delete, raise and hook in, with guards between.

    python tests/python/harness/random_programs.py --kind effects --programs 10000

Each group of statements is about one class of state: tensors augmented in every kind of place, numbers
that raise in some calls, deletion on one side of a branch, lists and `.grad` in a loop of varying
length, context managers that raise at each point, hooks, the order of keys, finalizers. The statements
of `random_mixtures.py` stand between them. Groups are drawn from a Random of this file's own.
"""

import random

from random_effect_objects import CHANGES, OBJECTS
from random_mixtures import (
    CELL,
    HEAD,
    TWO,
    Writer,
    function,
    write_calls,
    write_helpers,
    write_mix,
    write_module,
    write_return,
)

EFFECTS = (
    "augmented", "raising_numbers", "one_sided_deletion", "list_loops", "grad_loops", "managers",
    "hooks", "key_order", "finalizers", "has_attribute", "key_views", "plain_stores",
)  # fmt: skip

# Where a tensor can be kept: what is read and stored runs code of the user, or is not allowed.
PLACES = (
    "held.h", "noted.state", "slotted.state", "checked.value", "shelf['a']", "ledger['a']", "counted.buf",
    "net.running", "net.kept", "items[0]", "items[-1]", "table['t']", "cell.state", "pair[0]", "held.fixed",
    "frozen.state", "Counted.shared", "held.inner.h",
)  # fmt: skip
RAISING_PLACES = {"pair[0]", "held.fixed", "frozen.state"}


class EffectWriter(Writer):
    """Writes programs about effects; `at` is where their objects are found."""

    def __init__(self, seed: int):
        super().__init__(seed)
        self.random = random.Random(f"effects: {seed}")
        share = self.random.choice((0.1, 0.2, 0.4))
        self.features = {name for name in sorted(self.features) if self.chance(share * 2)}
        if self.chance(0.7):
            self.features |= {"tensor_branches", "branches"}
        if self.chance(0.7):
            self.features |= {"number_changes"}
        self.features -= {"growing_lists", "python_random", "recursion"}
        share = self.random.choice((0.15, 0.3, 0.6))
        self.effects = [name for name in EFFECTS if self.chance(share)]
        if not self.effects:
            self.effects = [self.random.choice(EFFECTS)]
        self.home = self.pick("globals", "closure", "attributes")
        self.profile_runs = self.pick(0, 0, 3)
        self.at = "world." if self.home == "attributes" else ""

    def statement(self) -> None:
        reached = self.in_step or (self.home != "closure" and self.may_reach)
        if reached and self.chance(0.6):
            getattr(self, self.random.choice(self.effects))()
            if self.chance(0.4):
                self.guard()
        else:
            super().statement()

    may_reach = False

    # --- parts
    def objects(self, text: str) -> str:
        """The text with each object's name led by where it is."""
        first = text.split(".")[0].split("[")[0]
        shared = first in ("net", "cell", "COUNT", "LOG", "Counted")
        return text if shared else self.at + text

    def kept(self) -> str:
        """A vector that may outlive the call."""
        return f"({self.make_vector(1)}).detach().tanh()"

    def number(self) -> str:
        """A small int that differs between calls, often 0."""
        return self.pick(
            "(n % 3)", "(n - 2)", self.objects("held.count") + " % 3", f"({self.make_int(0)}) % 3",
            f"(n - {self.make_int(0)})",
        ) if self.known("int") else self.objects("held.count") + " % 3"  # fmt: skip

    def test(self) -> str:
        return self.make_bool(self.pick(0, 1))

    def guard(self) -> None:
        """Something that may be assumed, and fail later, between two effects."""
        result = self.name("matrix")
        text = self.make_matrix(1)
        self.line(f"{result} = {text}")
        if self.chance(0.5):
            with self.block(f"if {self.test()}:"):
                self.line(f"{result} = {result} * {self.make_float(0)} + 1")
        else:
            self.line(f"{result} = {result} + float({self.objects('held.count')} > 2)")
        self.declare("matrix", result)

    def shielded(self, text: str, errors: str = "Exception", often: float = 0.85) -> None:
        """A statement that may raise, mostly inside a try."""
        if not self.chance(often):
            return self.line(text)
        if self.chance(0.2):
            with self.block(f"with contextlib.suppress({errors}):"):
                self.line(text)
            return None
        with self.block("try:"):
            self.line(text)
        with self.block(f"except {errors} as error:"):
            self.line("LOG.append(type(error).__name__)")
        if self.chance(0.2):
            with self.block("else:"):
                self.line("LOG.append('no error')")
        return None

    # --- effects
    def place(self) -> str:
        return self.random.choice(PLACES)

    def augmented(self) -> None:
        """`place += tensor` for every kind of place, also by an operand that rebinds the place."""
        place = self.place()
        if self.home == "globals" and self.chance(0.15):
            place = "STATE"
        if self.home == "closure" and self.in_step and self.has("closures") and self.chance(0.3):
            place = "carried"
        target = self.objects(place) if place != "carried" else place
        operation = self.pick("+=", "+=", "-=", "*=")
        operand = self.kept()
        if operation != "*=" and self.chance(0.15):
            operand = f"again({self.objects('held')}, {operand})"
        elif self.chance(0.2):
            operand = self.pick("0.5", "0.25", self.make_float(0))
        text = f"{target} {operation} {operand}"
        if place in RAISING_PLACES or self.chance(0.05):
            self.shielded(text)
        elif self.chance(0.2):
            with self.block(f"for _ in range({self.number()}):"):
                self.line(text)
        elif self.chance(0.25):
            with self.block(f"if {self.test()}:"):
                self.line(text)
        else:
            self.line(text)
        if self.chance(0.3):
            self.total(f"{target} * 1", "vector")

    def plain_stores(self) -> None:
        place = self.pick(
            *(each for each in PLACES if each not in RAISING_PLACES and each != "net.running")
        )
        text = f"{self.objects(place)} = {self.kept()}"
        if self.chance(0.3):
            with self.block(f"if {self.test()}:"):
                self.line(text)
        else:
            self.line(text)
        if self.chance(0.5):
            self.line(f"{self.objects('held.count')} += 1")

    def raising_numbers(self) -> None:
        """Number operations that raise for some of the values that calls bring."""
        a, b, result = self.pick("6", "6.0", self.make_int(0)), self.number(), self.name("float")
        text = self.pick(
            f"{a} / ({b})", f"{a} // ({b})", f"{a} % ({b})", f"0 ** ({b})", f"0.0 ** ({b})",
            f"1 << ({b})", f"64 >> ({b})", f"ratio({a}, {b})", f"math.sqrt({b})", f"math.log({b})",
            f"(1.0, 2.0)[{b}]", f"{{0: 1.5, 1: 2.5}}[{b}]", f"divmod({a}, {b})[0]", f"int('{{}}'.format({b}))",
            f"math.exp(400.0 * ({b}))", f"2.0 ** (900 * ({b}))", f"pow({a}, {b}, 5)",
        )  # fmt: skip
        self.line(f"{result} = 77.0")
        if self.chance(0.25):
            index = self.name("int")
            with self.block(f"for {index} in range({self.number()}):"):
                self.shielded(f"{result} = {result} * 0.5 + {text.replace(b, f'({index} - 1)')}")
        else:
            self.shielded(
                f"{result} = {text}", self.pick("Exception", "ArithmeticError", "ZeroDivisionError")
            )
        self.declare("float", result)
        self.line(f"LOG.append({result})")

    def one_sided_deletion(self) -> None:
        marks, table, items = (self.objects(each) for each in ("marks", "table", "items"))
        held, slotted, checked = (self.objects(each) for each in ("held", "slotted", "checked"))
        key = self.pick("1", "2", "'k'")
        away, back = self.random.choice((
            (f"{marks}.discard({key})", f"{marks}.add({key})"),
            (f"{marks}.remove({key})", f"{marks}.add({key})"),
            (f"{marks}.clear()", f"{marks}.update([1, 2, 'k'])"),
            (f"{marks}.difference_update([{key}])", f"{marks}.add({key})"),
            (f"del {held}.spare", f"{held}.spare = {self.make_float(0)}"),
            (f"del {slotted}.spare", f"{slotted}.spare = {self.make_float(0)}"),
            (f"del {checked}.value", f"{checked}.value = {self.kept()}"),
            (f"del {table}[{key}]", f"{table}[{key}] = {self.make_float(0)}"),
            (f"{table}.pop({key})", f"{table}[{key}] = {self.kept()}"),
            (f"{table}.popitem()", f"{table}[{key}] = 1"),
            (f"del {items}[-1]", f"{items}.append({self.kept()})"),
            (f"{items}.pop(0)", f"{items}.insert(0, {self.kept()})"),
            (f"del {self.objects('shelf')}[{key}]", f"{self.objects('shelf')}[{key}] = 2.5"),
            (f"delattr({held}, 'spare')", f"setattr({held}, 'spare', 4)"),
        ))  # fmt: skip
        with self.block(f"if {self.test()}:"):
            self.shielded(away)
        if self.chance(0.6):
            with self.block("else:"):
                self.line(back)
        elif self.chance(0.3):
            self.line(back)
        if self.chance(0.4):
            self.line(
                "LOG.append("
                + self.pick(
                    f"len({marks})",
                    f"{key} in {marks}",
                    f"hasattr({held}, 'spare')",
                    f"{key} in {table}",
                    f"len({items})",
                    f"getattr({slotted}, 'spare', None)",
                )
                + ")"  # fmt: skip
            )

    def list_loops(self) -> None:
        """A list that is read and written in one loop whose number of iterations varies."""
        items, index = self.objects("items"), self.name("int")
        if self.chance(0.3):
            items = self.name("grown")
            self.line(f"{items} = [{self.kept()}, {self.kept()}]")
        with self.block(f"for {index} in range(abs({self.number()}) % 4):"):
            self.declare("int", index)
            for _ in range(self.pick(1, 2, 2)):
                self.line(
                    self.pick(
                        f"{items}.append({items}[0] * {self.make_float(0)})",
                        f"{items}.append({items}[-1] + {self.kept()})",
                        f"{items}[0] = {items}[0] * 0.5 + {self.kept()}",
                        f"{items}[-1] += {items}[0].tanh()",
                        f"{items}.insert(0, {items}[{index} % len({items})] * 0.5)",
                        f"{items}.append({self.kept()}) if {self.test()} else None",
                        f"{items}.extend({items}[:1])",
                        f"LOG.append(len({items}))",
                        f"LOG.append(float({items}[0].sum()))",
                        f"{items}.pop() if len({items}) > 3 else None",
                    )
                )
        if self.chance(0.5):
            self.total(f"{items}[{self.pick(0, -1)}] * 1.0", "vector")
        self.line(f"del {items}[4:]")

    def grad_loops(self) -> None:
        """`.grad` read, set, cleared and added to in one varying loop."""
        weight = self.random.choice(("cell.weight", "net.weight", self.objects("leaf")))
        if not self.in_step and not weight.endswith("leaf"):
            weight = self.objects("leaf")
        loss = f"({weight} * {weight}.detach().cos()).sum().backward()"
        if self.chance(0.6):
            self.line(
                self.pick(
                    loss,
                    f"{weight}.grad = torch.ones_like({weight})",
                    f"{weight}.grad = None",
                    f"{weight}.grad = {weight}.detach() * 0.5",
                )
            )
        set_some = f"{weight}.grad = {weight}.detach() * 0.3 if {weight}.grad is None else {weight}.grad * 0.5"
        writes = [
            set_some,
            loss,
            f"{weight}.grad = None",
            f"if {weight}.grad is not None: {weight}.grad.mul_(0.5)",
            f"if {weight}.grad is not None: {weight}.grad.zero_()",
            f"if {weight}.grad is not None: {weight}.grad = {weight}.grad.clone()",
            f"if {weight}.grad is not None: LOG.append(float({weight}.grad.norm()))",
            f"LOG.append({weight}.grad is None)",
        ]
        if self.in_step:
            writes += [
                "net.zero_grad()",
                "optimizer.zero_grad(set_to_none=False)",
                "optimizer.step()",
            ]
        if self.chance(0.25):
            self.line(loss)
            with self.block(f"while {weight}.grad.norm() > 0.3:"):
                self.line(
                    self.pick(
                        f"{weight}.grad = {weight}.grad * 0.5",
                        f"{weight}.grad.mul_(0.5)",
                        f"{weight}.grad *= 0.5",
                    )
                )
        elif self.chance(0.7):
            with self.block(f"for _ in range({self.number()}):"):
                for _ in range(self.pick(1, 2, 3)):
                    self.line(self.random.choice(writes))
        else:
            with self.block(f"if {self.test()}:"):
                self.line(self.random.choice(writes))
        if self.chance(0.5):
            self.line(f"LOG.append(None if {weight}.grad is None else float({weight}.grad.sum()))")

    def managers(self) -> None:
        """A context manager that raises at a point that the call's numbers choose."""
        where = self.pick(
            "'nowhere'", "WHERE[n % 4]" if self.known("int") else "'nowhere'",
            f"WHERE[abs({self.number()}) % 4]", "'enter'", "'exit'", f"'exit' if {self.test()} else 'nowhere'",
        )  # fmt: skip
        swallows = self.pick("True", "False", self.test())
        gives = self.pick("1.5", "(1.5, 2.5)", "(1.5, 2.5)", "(1.5, 2.5, 3.5)", "None")
        target = self.pick("", " as p", " as (p, q)", " as (p, q)", " as held_here.p")
        if target.endswith("held_here.p"):
            target = f" as {self.objects('held')}.given"
        kind = self.pick("Scope", "Scope", "generated_scope")
        head = f"with {kind}({where}, {swallows}, {gives}){target}:"
        if self.chance(0.2):
            head = (
                f"with Scope('nowhere', True, None), {kind}({where}, {swallows}, {gives}){target}:"
            )
        outer = self.chance(0.85)
        if outer:
            self.line("try:")
            self.depth += 1
        with self.block(head):
            for _ in range(self.pick(1, 2)):
                self.augmented() if self.chance(0.4) else self.raising_body()
        if outer:
            self.depth -= 1
            with self.block("except Exception as error:"):
                self.line("LOG.append(type(error).__name__)")
            if self.chance(0.3):
                with self.block("finally:"):
                    self.line("LOG.append('finally')")

    def raising_body(self) -> None:
        with self.block(f"if {self.test()}:"):
            self.line(self.pick("raise ValueError('body')", "1 / 0", "LOG.append('body')"))

    def hooks(self) -> None:
        """Hooks of tensors, leaves, accumulators, nodes and modules, then something that calls them."""
        if not self.in_step:
            return self.augmented()
        leaf = self.random.choice(("cell.weight", "net.weight", self.objects("leaf")))
        handle = self.name("handle")
        hook = self.pick("note", "halve", "note")
        made = self.name("made")
        self.line(f"{made} = {leaf} * 2")
        self.line(
            f"{handle} = "
            + self.pick(
                f"{made}.register_hook({hook})",
                f"{leaf}.register_hook({hook})",
                f"{leaf}.register_post_accumulate_grad_hook(note_leaf)",
                f"accumulator({leaf}).register_hook(note_node)",
                f"accumulator({leaf}).register_prehook({hook}_node_before)",
                f"{made}.grad_fn.register_hook(note_node)",
                "net.first.register_forward_hook(note_forward)",
                "net.second.register_forward_pre_hook(note_forward_before)",
                "net.first.register_full_backward_hook(note_backward)",
            )
        )
        self.line(
            self.pick(
                f"(({made} * {made}.detach().cos()).sum() * 0.1).backward()",
                "(net(x).mean() + " + made + ".sum() * 0.1).backward()",
            )
        )
        if self.chance(0.8):
            self.line(f"{handle}.remove()")
        return None

    def key_order(self) -> None:
        """Two sides of a branch add the same keys in different order; then the order is shown."""
        table, fresh = self.objects("table"), self.name("d")
        if self.chance(0.5):
            self.line(f"{fresh} = {self.pick('{}', 'dict(a=1.0)', 'Plain()')}")
            table = f"{fresh}" if "Plain" not in self.lines[-1] else f"vars({fresh})"
        else:
            self.line(f"{table}.pop('p', None)")
        keys = ["p", "q", self.pick("a", "k")]
        sides = []
        for _ in range(2):
            self.random.shuffle(keys)
            sides.append([f"{table}[{key!r}] = {self.pick(self.make_float(0), self.kept())}"
                          for key in keys[: self.pick(2, 3)]])  # fmt: skip
        if table.startswith("vars"):
            sides = [[re_attribute(each) for each in side] for side in sides]
        with self.block(f"if {self.test()}:"):
            for each in sides[0]:
                self.line(each)
        with self.block("else:"):
            for each in sides[1]:
                self.line(each)
        self.line(f"LOG.append({self.pick('list', 'tuple')}({table}))")
        if self.chance(0.4):
            self.line(f"print(*{table})")

    def finalizers(self) -> None:
        held, name = self.objects("held"), self.name("dying")
        self.line(
            self.pick(
                f"{held}.thing = Dying({self.number()})",
                f"{held}.thing = None",
                f"{self.objects('table')}['dying'] = Dying(1)",
                f"{self.objects('table')}.pop('dying', None)",
                f"{name} = Dying({self.number()})",
                f"{name} = Dying(1); del {name}",
                f"Dying({self.number()})",
                f"if {self.test()}: {held}.thing = Dying(3)",
            )
        )
        if self.chance(0.5):
            self.line("LOG.append(len(LOG))")

    def has_attribute(self) -> None:
        leaf = self.objects(self.pick("leaf", "held", "slotted", "noted", "counted"))
        name = self.pick("spare", "tag", "later")
        if self.chance(0.3):
            self.line(f"LOG.append(getattr({leaf}, '{name}', None) is None)")
            return
        with self.block(f"if hasattr({leaf}, '{name}'):"):
            self.line("LOG.append('has it')")
        if self.chance(0.4):
            with self.block("else:"):
                self.line(
                    self.pick("LOG.append('has it not')", f"LOG.append({self.make_float(0)})")
                )

    def key_views(self) -> None:
        table, name = self.objects("table"), self.name("keys")
        self.line(f"{name} = {table}.{self.pick('keys()', 'values()', 'items()')}")
        self.line(
            self.pick(
                f"{table}['view'] = {self.make_float(0)}",
                f"{table}.pop('view', None)",
                f"{table}[{self.number()}] = 0.5",
            )
        )
        self.line(f"LOG.append(len({name}))")


def re_attribute(text: str) -> str:
    """`vars(d)['p'] = v` as `d.p = v`."""
    owner, rest = text.removeprefix("vars(").split(")['", 1)
    key, value = rest.split("'] = ", 1)
    return f"{owner}.{key} = {value}"


NAMES = (
    "held", "noted", "slotted", "checked", "shelf", "ledger", "counted", "items", "table", "pair", "frozen",
    "marks", "leaf",
)  # fmt: skip
MADE = (
    "Held()", "Noted()", "Slotted()", "Checked()", "Shelf()", "Ledger(a=torch.ones(4))", "Counted()",
    "[torch.ones(4), torch.zeros(4)]", "{'t': torch.ones(4), 'k': 0.5}", "(torch.ones(4), 2)",
    "Frozen(torch.ones(4))", "{1, 2, 'k'}", "torch.linspace(-1, 1, 4).requires_grad_()",
)  # fmt: skip


def write_program(seed: int) -> str:
    """The text of the program about effects of this seed."""
    writer = EffectWriter(seed)
    writer.lines = [*HEAD.splitlines(), *OBJECTS.splitlines(), *CELL.splitlines()]
    if writer.has_two_arguments:
        writer.lines += TWO.splitlines()
    write_mix(writer)
    write_module(writer)
    writer.may_reach = True
    write_helpers(writer)
    writer.may_reach = False
    write_build(writer)
    return "\n".join(writer.lines) + "\n"


def write_build(writer: EffectWriter) -> None:
    writer.lines += ["", "", "def build():"]
    writer.depth = 1
    if writer.home == "globals":
        writer.line("global " + ", ".join(NAMES) + ", STATE")
    if writer.home == "attributes":
        writer.line("global world")
        writer.line("world = World()")
    for name, made in zip(NAMES, MADE, strict=True):
        writer.line(f"{writer.at}{name} = {made}")
    writer.line(
        "torch.utils.hooks.RemovableHandle.next_id = 0  # hooks are kept under their numbers"
    )
    writer.line("Counted.shared = torch.ones(4)")
    writer.line("Counted.buf = torch.zeros(4)")
    if writer.home == "globals":
        writer.line("STATE = torch.zeros(4)")
    for text in (
        "net, cell, total, rounds, carried = Net(), Cell(), 0.0, 0, torch.zeros(4)",
        "net.kept = torch.ones(4)",
        f"optimizer = torch.optim.{writer.pick('SGD', 'Adam')}(net.parameters(), 0.01)",
    ):
        writer.line(text)
    if "hooks" in writer.effects and writer.chance(0.6):
        writer.line(writer.random.choice(CHANGES["hooks"]).format(at=writer.at))
    write_step(writer)
    write_calls(writer)
    write_changes(writer)
    objects = ", ".join(writer.at + name for name in NAMES)
    state = "STATE" if writer.home == "globals" else "0"
    for text in (
        f"shown = Shown(lambda: {{'log': LOG, 'count': COUNT, 'gain': GAIN, 'state': {state}, 'total': total,",
        "    'rounds': rounds, 'carried': carried, 'shared': Counted.shared, 'buf': Counted.buf})",
        f"profile_runs = {writer.profile_runs}",
        "convert = lambda f: (torchjanus.function(f, profile_runs=profile_runs),) * 2",
        f"watch = [net, cell, optimizer, shown, {objects}]",
        f"return Program(step, calls, watch=watch, convert=convert, looks={writer.looks!r})",
    ):
        writer.line(text)
    writer.depth = 0


def write_step(writer: EffectWriter) -> None:
    parameters = {"x": "matrix", "n": "int", "scale": "float", "flag": "bool"}
    head = "def step(x, n, scale=0.5, flag=True):"
    if writer.has_two_arguments:
        parameters["y"] = "matrix"
        head = "def step(x, y, n, scale=0.5, flag=True):"
    with function(writer, head, writer.random.randint(4, 14), **parameters):
        names = ["GAIN", "COUNT"] if writer.has("globals") else []
        names += ["STATE"] if writer.home == "globals" else []
        if names:
            writer.line("global " + ", ".join(names))
        if writer.has("closures"):
            writer.line("nonlocal total, rounds, carried")
            writer.declare("float", "total")
            writer.declare("int", "rounds")
            writer.declare("vector", "carried")
        writer.in_step = writer.may_call_helpers = True
        writer.statements(writer.random.randint(3, 9))
        write_return(writer)
        writer.in_step = writer.may_call_helpers = False


def write_changes(writer: EffectWriter) -> None:
    """Changes between the last calls: what was assumed of objects does not hold any more."""
    kinds = ["objects", *(["hooks"] if "hooks" in writer.effects else [])]
    for _ in range(writer.pick(0, 1, 2)):
        change = writer.random.choice(CHANGES[writer.random.choice(kinds)]).format(at=writer.at)
        writer.line(f"calls.insert({writer.pick(4, 5, 6, 7)}, lambda: {change})")
