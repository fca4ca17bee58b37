"""Lists, dicts, sets and deques that outlive the call and are written in it. PYTEST_DONT_REWRITE"""

from collections import OrderedDict, defaultdict, deque

import torch.nn.functional as F
from differential import Program, differential

import torch
import torchjanus
from torch import nn

STEPS = 12


def calls(*shape, count=STEPS):
    return [(torch.randn(*shape),) for _ in range(count)]


@differential(hits=8)
def test_new_keys_keep_their_order():
    table = {"b": 0}

    def step(x):
        table["a"] = x.sum().item()
        table["b"] += 1
        table["c"] = None
        del table["a"]
        table["a"] = 3
        return x + table["b"]

    return Program(step, calls(3), watch=[table])


@differential(hits=6)
def test_dict_methods():
    table = {"n": 1.0, "gone": 2.0}
    ordered = OrderedDict(first=1.0)

    def step(x):
        total = x.sum().item()
        table.setdefault("list", []).append(total)
        table.update({"n": table["n"] * 0.5, "m": total}, k=2)
        value = table.pop("gone", None)
        table["value"] = value
        ordered["second"] = total
        ordered["first"] = ordered.get("first", 0) + 1.0
        return x * table["n"] + ("gone" in table)

    return Program(step, calls(3), watch=[table, ordered])


@differential(hits=6)
def test_dict_that_is_cleared_and_filled():
    table = {"n": 1.0, "gone": 2.0}

    def step(x):
        before = len(table)
        table.clear()
        for name in ("u", "v"):
            table[name] = x.sum().item()
        return x * (before + len(table))

    return Program(step, calls(3), watch=[table])


@differential(hits=6)
def test_defaultdict_of_sums():
    sums = defaultdict(float)
    lists = defaultdict(list)

    def step(x):
        sums["total"] += x.sum().item()
        lists["all"].append(x.shape[0])
        return x * 2

    return Program(step, calls(3), watch=[sums, lists])


@differential(hits=6)
def test_lists_that_are_changed_in_the_middle():
    items = [1, 2, 3]

    def step(x):
        items.insert(0, items.pop())
        items[1] = items[1] + 0
        items.reverse()
        return x * items[0] + sum(items)

    return Program(step, calls(3, count=24), watch=[items])


@differential(hits=6)
def test_stack_that_grows_and_shrinks():
    stack = []

    def step(x):
        stack.append(x)
        stack.append(x * 2)
        top = stack.pop()
        kept = stack.pop()
        return top + kept

    return Program(step, calls(3), watch=[stack])


@differential(hits=10, graphs=3)
def test_length_of_a_list_that_grows():
    items = [1.0]

    def step(x):
        if items and items[-1] > 1e9:
            return x - 1
        items.append(x.sum().item() + items[-1])
        return x * items[-1] + len(items)

    return Program(step, calls(3, count=20), watch=[items])


@differential(hits=8)
def test_sets_and_deques():
    seen, recent = {"a"}, deque(maxlen=3)

    def step(x):
        seen.add(x.shape[0])
        seen.discard("b")
        recent.append(x.sum().item())
        return x * (2 if "a" in seen else 3) + (x.shape[0] in seen)

    arguments = calls(3, count=24)
    arguments[8:8] = [seen.clear]
    arguments[16:16] = [lambda: seen.add("a")]
    return Program(step, arguments, watch=[seen, recent])


@differential(hits=8)
def test_list_methods():
    items = [3, 1, 2]

    def step(x):
        items.sort(reverse=True)
        items.remove(1)
        items.append(1)
        items[1:2] = [5, 2]
        del items[1:2]
        return x * items[0] + items.index(2)

    return Program(step, calls(3), watch=[items])


@differential(hits=2)
def test_length_of_a_set_that_may_hold_the_element_already():
    seen: set[int] = set()

    def step(x, k):
        before = len(seen)
        seen.add(k)
        if len(seen) > before:
            x = x * 2
        seen.discard(k - 2)
        return x * len(seen), bool(seen)

    numbers = [1, 2, 1, 3, 3, 3, 3, 1, 2, 5, 5, 5]
    return Program(step, [(torch.ones(2), k) for k in numbers], watch=[seen])


@differential(hits=6)
def test_functional_call_with_the_module_s_own_parameters():
    """What is put back into the module changes nothing in one iteration, and something in the next."""
    model = nn.Sequential(nn.Linear(1, 4), nn.Tanh(), nn.Linear(4, 1))
    own = dict(model.named_parameters())

    def step(params, x, y):
        loss = F.mse_loss(torch.func.functional_call(model, params, (x,)), y)
        grads = torch.autograd.grad(loss, list(params.values()), create_graph=True)
        return {k: p - 0.1 * g for (k, p), g in zip(params.items(), grads, strict=True)}, loss

    def update(params, x, y):
        for _ in range(2):
            params, loss = inner(params, x, y)
        loss.backward()
        return loss.item()

    inner = step

    def convert(update):
        nonlocal inner
        inner = torchjanus.function(step)
        return update, inner

    calls = [(own, torch.rand(5, 1), torch.rand(5, 1)) for _ in range(8)]
    return Program(update, calls, watch=[model], convert=convert)
