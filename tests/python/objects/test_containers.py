"""Differential programs: deques, Counter, defaultdict, sets, enumerations, what rearranges them.
PYTEST_DONT_REWRITE"""

import bisect
import copy
import dataclasses
import enum
import functools
import itertools
import operator
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from types import SimpleNamespace

import pytest
from differential import Program, differential

import torch
import torchjanus


class Mode(enum.Enum):
    TRAIN = "train"
    TEST = "test"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 5


@dataclasses.dataclass
class Config:
    rate: float = 0.5
    size: int = 3


Pair = namedtuple("Pair", "first second")


def batches(count=12):
    return [(torch.randn(5, 4), i) for i in range(count)]


def local_deque(x, i):
    queue = deque([1.0, 2.0], maxlen=3)
    queue.append(3.0)
    queue.append(i * 1.0)
    queue.appendleft(5.0)
    queue.extend([x.sum(), 2.0])
    queue.rotate(1)
    first, last = queue.popleft(), queue.pop()
    queue.extendleft([7.0, 8.0])
    return x * first + last + queue[0] + len(queue), queue, list(queue), 7.0 in queue


def local_counter(x, i):
    counts = Counter("abracadabra")
    counts.update(["a", "z"])
    counts.subtract({"b": 1})
    counts["q"] += i
    return x * counts["a"] + counts["never"] + counts["q"], counts, sum(counts.values())


def local_default_dict(x, i):
    groups = defaultdict(list)
    for k in range(5):
        groups[k % 2].append(x[k])
    totals = defaultdict(float)
    totals["a"] += x.sum()
    return torch.stack(groups[0]), groups, totals["a"], len(groups[9])


def local_ordered_dict(x, i):
    items = OrderedDict(a=1.0, b=2.0)
    items["c"] = i * 1.0
    items.move_to_end("a")
    items.popitem(last=False)
    return x * sum(items.values()), items, list(items)


def local_sets(x, i):
    a, b = {1, 2, 3}, {2, 3, 4}
    a |= {7}
    a.remove(7)
    a.discard(99)
    b.update([5, 6])
    total = sum({4, 1, 9})
    tests = (2 in a, a <= b, a & b == {2, 3}, a.isdisjoint([8]), {1} < a, a != b)
    return x * len(a & b) + len(a | b) + len(a - b) + len(a ^ b) + total, tests, set(["i"])


def local_dicts(x, i):
    options = {"a": 1, "b": 2} | {"b": 3}
    options |= {"c": i}
    value = options.pop("a") + options.setdefault("d", 5) + options.get("none", 7)
    key, last = options.popitem()
    return x * value + last, key, dict.fromkeys(["p", "q"], 1.0), options


def enumerations(x, i):
    mode = Mode("train") if i % 2 == 0 else Mode["TEST"]
    y = x * 2 if mode is Mode.TRAIN else x + len(mode.name)
    return y * Level.HIGH + (Level.LOW < Level.HIGH) + len(list(Mode)), mode, Level(5) + 1


def rearranged(x, i):
    rows = list(x)
    pairs = sum(a * b for a, b in itertools.product([1, 2], [3.0, i * 1.0]))
    near = [b - a for a, b in itertools.pairwise(rows)]
    sums = list(itertools.accumulate([1, 2, i]))
    some = list(itertools.islice(itertools.count(i), 1, 6, 2))
    chosen = sum(a * b for a, b in itertools.combinations([1.0, 2.0, 3.0], 2))
    flat = list(itertools.chain.from_iterable([[1, 2], [i]]))
    filled = list(itertools.zip_longest([1, 2, 3], [i], fillvalue=0))
    return x * pairs + near[0] + chosen, sums, some, flat, filled, list(itertools.repeat(2, 3))


def functional(x, i):
    double = functools.partial(torch.mul, 2.0)
    shifted = functools.partial(lambda a, b=1, c=0: a + b + c, c=i)
    total = functools.reduce(operator.add, list(x), 0.0)
    by_second = sorted([("a", 3), ("b", 1)], key=operator.itemgetter(1))
    size = operator.attrgetter("shape")(x)
    return shifted(double(x), b=2) + total, by_second, size, operator.mul(x, i)


def fields(x, i):
    config = dataclasses.replace(Config(), size=i)
    pair = Pair(x, 2.0)._replace(second=i * 0.5)
    space = SimpleNamespace(a=x, b=2)
    space.c = space.a * space.b
    return space.c * config.rate + pair.second + config.size, pair, space, config


def picked_by_number(x, i):
    weights = [0.5, 1.5, 2.5, 3.5]
    k = int(x.abs().sum().item()) % 4
    return x * weights[k] + weights[k - 4] + bisect.bisect_right([2, 4, 8], i)


def star_and_walrus(x, i):
    first, *middle, last = [*range(5), i]
    if (total := sum(middle) + last) > 0 and (scaled := x * total) is not None:
        return scaled + first
    return x + 0


LOCAL = [
    *(local_deque, local_counter, local_default_dict, local_ordered_dict, local_sets),
    *(local_dicts, enumerations, rearranged, functional, fields, picked_by_number),
    star_and_walrus,
]


@pytest.mark.parametrize("step", LOCAL, ids=lambda step: step.__name__)
def test_made_inside(step):
    @differential(hits=6)
    def program():
        return Program(step, batches(14))

    program()


@differential(hits=10)
def test_running_mean_in_a_deque():
    losses = deque([0.5, 1.5, 2.5], maxlen=3)
    kept = deque(maxlen=2)

    def step(x, i):
        losses.append(x.sum().item())
        kept.append(x.mean())
        return x * (sum(losses) / len(losses)), max(losses) - losses[-1]

    return Program(step, batches(20), watch=[losses, kept])


@differential(hits=8)
def test_queue_of_tensors():
    queue = deque()

    def step(x, i):
        queue.append(x * 2)
        if len(queue) > 3:
            queue.popleft()
        return queue[0] + queue[-1]

    return Program(step, batches(24), watch=[queue])


@differential(hits=4)
def test_deque_that_is_changed_between_calls():
    queue = deque([1.0, 2.0], maxlen=2)

    def step(x, i):
        queue.append(queue[0] * 0.5 + i)
        return x * sum(queue)

    def replace():
        queue.clear()
        queue.extend([3.0, 4.0])

    def shorten():
        queue.popleft()

    calls = batches(16)
    return Program(step, [*calls[:8], replace, *calls[8:10], shorten, *calls[10:]], watch=[queue])


@differential(hits=8)
def test_counters_of_the_program():
    state = SimpleNamespace(counts=Counter(), groups=defaultdict(list), sums=defaultdict(float))

    def step(x, i):
        state.counts["steps"] += 1
        state.counts.update(["seen", "seen"])
        state.groups["losses"].append(x.sum().item())
        state.sums["total"] += x.mean().item()
        return x * state.counts["steps"] + state.sums["total"] + state.counts["none"]

    return Program(step, batches(14), watch=[state])


@differential(hits=8)
def test_sets_of_the_program():
    seen, allowed = {9}, frozenset([1, 2, 9])

    def step(x, i):
        seen.update([1, 2])
        seen.discard(1)
        known = len(seen & allowed) + (3 in allowed) + len(seen)
        if 2 in seen:
            seen.remove(2)
        return x * known

    return Program(step, batches(14), watch=[seen])


@differential(reasons=["dynamic_value"])
def test_order_of_a_set_that_is_not_known():
    names = {"left", "right", "middle"}

    def step(x, i):
        return x * 2, [name for name in names]

    return Program(step, batches(8))


@differential(reasons=["heap_write"])
def test_a_set_changed_by_another():
    seen = {1}

    def step(x, i):
        nonlocal seen
        seen |= {2, 3, 4, 5, 6, 7}
        return x * len(seen)

    return Program(step, batches(8), watch=[seen])


@differential(hits=12)
def test_last_elements_of_a_list_that_grows():
    losses = [1.0, 2.0, 3.0]

    def step(x, i):
        losses.append(x.sum().item())
        recent = losses[-3:]
        return x * (sum(recent) / len(recent)), len(losses)

    return Program(step, batches(20), watch=[losses])


@differential(hits=8)
def test_list_extended_in_place():
    history = [0.0]

    def step(x, i):
        nonlocal history
        history += [x.sum().item(), i]
        return x * len(history)

    return Program(step, batches(14), watch=[history])


class Track:
    def __init__(self):
        self.values = []

    def __iadd__(self, value):
        self.values.append(value)
        return self


@differential(hits=8)
def test_in_place_operator_of_a_class():
    track = Track()

    def step(x, i):
        nonlocal track
        track += x.sum().item()
        return x * 2

    return Program(step, batches(14), watch=[track])


# --- an object and its own dictionary -----------------------------------------------------------


class Plain:
    def __init__(self):
        self.rate = 1.0
        self.count = 0


@differential(hits=6)
def test_attributes_written_through_the_dictionary():
    held = Plain()

    def step(x, i):
        rate = held.rate
        held.__dict__["rate"] = rate * 0.5
        vars(held)["count"] += 1
        return x * held.rate + held.count

    return Program(step, batches(), watch=[held])


@differential(hits=4)
def test_dictionary_held_by_another_name():
    held = Plain()
    attributes = held.__dict__

    def step(x, i):
        before = held.rate
        attributes["rate"] = before + 1.0
        return x * held.rate

    return Program(step, batches(16), watch=[held])


@differential(hits=2)
def test_dictionary_that_becomes_an_objects_own():
    held = Plain()
    other = {"rate": 5.0, "count": 0}

    def step(x, table):
        before = held.rate
        table["rate"] = before + 1.0
        return x * held.rate

    calls = [(torch.randn(3), other) for _ in range(8)]
    calls += [(torch.randn(3), held.__dict__) for _ in range(4)]
    calls += [(torch.randn(3), other) for _ in range(2)]
    return Program(step, calls, watch=[held, other])


@differential(hits=2)
def test_attributes_written_beside_a_dictionary():
    held = Plain()
    other = {"rate": 5.0, "count": 0}

    def step(x, table):
        before = table["rate"]
        held.rate = before + 1.0
        return x * table["rate"]

    calls = [(torch.randn(3), other) for _ in range(8)]
    calls += [(torch.randn(3), held.__dict__) for _ in range(4)]
    return Program(step, calls, watch=[held, other])


@pytest.mark.parametrize(
    ("make", "hits"),
    [
        (lambda i: frozenset([64, 1, 8]), 3),
        (lambda i: frozenset(), 3),
        (lambda i: frozenset([64, 1, 8]) | {3}, None),
        (lambda i: {33, 1, 65, 2}.union([97]), None),
        (lambda i: [frozenset({i})], 3),
    ],
)
def test_texts_of_sets(make, hits):
    @differential(hits=hits, reasons=[] if hits else ["dynamic_value"])
    def texts():
        def step(x, i):
            made = make(i)
            return x + i, repr(made), f"{made}", str([made]), "%s" % (made,)

        return Program(step, [(torch.ones(2), i % 2) for i in range(8)])

    texts()


def itself():
    made = []
    made.append(made)
    return made


def in_a_dict():
    made = {}
    made["self"] = made
    return made


def nested(depth):
    made = [1]
    for _ in range(depth):
        made = [made]
    return made


DEEP = [
    lambda x: (x + 1, str(itself()), repr(in_a_dict())),
    lambda x: (x + 1, f"{itself()}", "%s" % (itself(),), "{}".format(in_a_dict())),
    lambda x: (x + 1, itself() == itself()),
    lambda x: (x + 1, in_a_dict() == in_a_dict()),
    lambda x: (x + 1, print(itself(), in_a_dict())),
    lambda x: (x + 1, copy.deepcopy(nested(3000))),
    lambda x: (x + 1, nested(3000) == nested(3000)),
    lambda x: (x + 1, str(nested(400))),
    lambda x: (x + 1, isinstance(x, (((((int,),),),), torch.Tensor))),
]


@pytest.mark.parametrize("step", DEEP)
def test_containers_that_hold_themselves_or_are_very_deep(step):
    converted = torchjanus.function(step)

    def outcome(run, x):
        try:
            result = run(x)
        except RecursionError:
            return "RecursionError"
        return repr(result[0]), repr(result[1:]) if "3000" not in str(
            step.__code__.co_consts
        ) else ""

    for call in range(6):
        assert outcome(converted, torch.ones(2) * call) == outcome(step, torch.ones(2) * call)
    assert "internal_error" not in {each["code"] for each in converted.stats()["reasons"]}


@differential(hits=5)
def test_defaultdicts_from_before_the_call_as_they_are():
    counts = defaultdict(int, n=1)
    ordered = OrderedDict(n=1)

    def step(x):
        counts["n"] += 1
        ordered["n"] += 1
        print(counts, {"counts": counts}, ordered)
        other = counts.copy()
        other["new"] += 2
        counts["n"] += 1
        return x * 2, other, "{} {}".format(counts, x[0].item())

    return Program(step, [(torch.randn(3),) for _ in range(8)], watch=[counts, ordered])
