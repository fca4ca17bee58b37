"""Differential programs: what the graph assumed no longer holds. PYTEST_DONT_REWRITE"""

import threading
import types

import pytest
from differential import Program, differential
from torch.nn import functional as F

import torch
import torchjanus
from torch import nn


def net(width=4):
    return nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Linear(width, 3))


def training(model, optimizer):
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def batch(size=5):
    return torch.randn(size, 6), torch.randint(0, 3, (size,))


@differential(hits=8, graphs=4)
def test_batch_size_changes():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sizes = [5, 5, 5, 5, 3, 3, 4, 7, 9, 2, 6, 1, 1, 5, 8]
    return Program(training(model, optimizer), [batch(n) for n in sizes], watch=[model, optimizer])


@differential(hits=5, graphs=4)
def test_empty_batch():
    model = net()

    def step(x):
        return model(x).sum()

    return Program(
        step, [(torch.randn(n, 6),) for n in [4, 4, 4, 4, 0, 0, 0, 3, 5, 0]], watch=[model]
    )


@differential(hits=4, graphs=3)
def test_dtype_changes():
    def step(x):
        return x * 2 + 1

    arguments = [(torch.randn(3),) for _ in range(5)]
    arguments += [(torch.randn(3, dtype=torch.float32),) for _ in range(3)]
    arguments += [(torch.arange(3),) for _ in range(3)]
    return Program(step, arguments)


@differential(hits=4)
def test_rank_changes():
    def step(x):
        return x.sum(-1) * 2

    return Program(step, [(torch.randn(*[2] * rank),) for rank in [2, 2, 2, 2, 3, 3, 1, 2, 3, 1]])


@differential(hits=4)
def test_strides_change():
    def step(x):
        return x.relu() + 1, x.t()

    plain = [(torch.randn(3, 4),) for _ in range(5)]
    transposed = [(torch.randn(4, 3).t(),) for _ in range(4)]
    return Program(step, [*plain, *transposed, *plain])


@differential(hits=4)
def test_requires_grad_of_an_argument_changes():
    def step(x):
        return (x * 2).sum()

    arguments = [(torch.randn(3, requires_grad=index > 4),) for index in range(10)]
    return Program(step, arguments)


@differential(hits=5, graphs=3)
def test_flag_flips():
    class Switch:
        on = True

    switch = Switch()

    def step(x):
        if switch.on:
            return x * 2
        return x - 1

    def flip():
        switch.on = not switch.on

    one = (torch.randn(3),)
    calls = [one] * 5 + [flip] + [one] * 4 + [flip] + [one] * 3 + [flip] + [one] * 2
    return Program(step, calls, watch=[switch])


@differential(hits=4)
def test_patched_method_and_function():
    class Model:
        def scale(self, x):
            return x * 2

    model = Model()

    def step(x):
        return helper(model.scale(x))

    def patch():
        Model.scale = lambda self, x: x * 5

    def patch_instance():
        model.scale = lambda x: x * 7

    def patch_helper():
        globals()["helper"] = lambda x: x - 100

    globals()["helper"] = lambda x: x + 1
    one = (torch.randn(3),)
    calls = (
        [one] * 5 + [patch] + [one] * 3 + [patch_instance] + [one] * 3 + [patch_helper] + [one] * 3
    )
    return Program(step, calls)


def helper(x):
    return x + 1


@differential(hits=4)
def test_torch_function_is_patched():
    def step(x):
        return F.relu(x) + 1

    original = F.relu

    def patch():
        F.relu = lambda x: x * 0

    def restore():
        F.relu = original

    one = (torch.randn(3),)
    return Program(step, [one] * 5 + [patch] + [one] * 3 + [restore] + [one] * 3)


@pytest.mark.parametrize(
    "kind", ["forward hook", "forward pre-hook", "full backward hook", "tensor hook", "global hook"]
)
@differential(hits=2)
def test_hook_added_after_conversion(kind):
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handles = []

    def add():
        handles.append(
            {
                "forward hook": lambda: model[0].register_forward_hook(lambda m, i, o: o * 2),
                "forward pre-hook": lambda: model[0].register_forward_pre_hook(
                    lambda m, i: (i[0] + 1,)
                ),
                "full backward hook": lambda: model[0].register_full_backward_hook(
                    lambda m, i, o: (None if i[0] is None else i[0] * 2,)
                ),
                "tensor hook": lambda: model[0].weight.register_hook(lambda g: g * 3),
                "global hook": lambda: nn.modules.module.register_module_forward_hook(
                    lambda m, i, o: o * 0.5 if isinstance(m, nn.Linear) else None
                ),
            }[kind]()
        )

    def remove():
        handles.pop().remove()

    calls = [*[batch() for _ in range(5)], add, *[batch() for _ in range(4)], remove]
    calls += [batch() for _ in range(3)]
    return Program(training(model, optimizer), calls, watch=[optimizer])


@differential(hits=4, graphs=3)
def test_train_and_eval_switch():
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 3))

    def step(x):
        return model(x)

    one = [(torch.randn(5, 6),) for _ in range(4)]
    return Program(step, [*one, model.eval, *one, model.train, *one], watch=[model])


@differential(hits=4)
def test_parameter_is_replaced():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x, y):
        model.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss

    def replace():
        model[0].weight = nn.Parameter(torch.randn(4, 6))

    calls = [*[batch() for _ in range(5)], replace, *[batch() for _ in range(5)]]
    return Program(step, calls, watch=[model, optimizer])


@differential(hits=4)
def test_parameter_is_frozen_and_thawed():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def freeze():
        model[0].weight.requires_grad_(False)

    def thaw():
        model[0].weight.requires_grad_(True)

    calls = [*[batch() for _ in range(5)], freeze, *[batch() for _ in range(5)], thaw]
    calls += [batch() for _ in range(4)]
    return Program(training(model, optimizer), calls, watch=[model, optimizer])


@differential(hits=4)
def test_parameters_become_shared():
    model = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 6), nn.Linear(6, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def share():
        model[2].weight = model[0].weight

    calls = [*[batch() for _ in range(5)], share, *[batch() for _ in range(5)]]
    return Program(training(model, optimizer), calls, watch=[model, optimizer])


@differential(hits=3)
def test_layer_is_replaced_and_added():
    model = net()

    def step(x):
        return model(x)

    def replace():
        model[1] = nn.Tanh()

    def add():
        model.append(nn.Softmax(dim=1))

    one = [(torch.randn(5, 6),) for _ in range(5)]
    return Program(step, [*one, replace, *one, add, *one], watch=[model])


@differential(hits=3)
def test_aliasing_arguments():
    def step(x, y):
        x.add_(1)
        return x * y

    def pairs():
        return [(torch.randn(3), torch.randn(3)) for _ in range(5)]

    same = torch.randn(3)
    whole = torch.randn(6)
    calls = [*pairs(), (same, same), (same, same), (whole[:3], whole[2:5]), (whole[:3], whole[2:5])]
    return Program(step, [*calls, *pairs()])


@differential(hits=2, graphs=1)
def test_views_written_in_place():
    def step(x):
        x[0] = 5.0
        x[:, 1] *= 2
        row = x[1]
        row.add_(row)
        x.view(-1)[3] = -1.0
        x.t()[0].mul_(3)
        part = x[1:]
        part.zero_()
        return row, part, x.sum()

    return Program(step, [(torch.randn(3, 4),) for _ in range(6)])


@differential(hits=2)
def test_views_of_state_written_in_place():
    state = torch.zeros(4, 3)

    def step(x):
        state[1] = x
        state[2:].add_(x)
        state.mul_(0.5)
        return state.sum(), state[1]

    return Program(step, [(torch.randn(3),) for _ in range(7)], watch=[state])


@differential(hits=2)
def test_branch_on_data_that_changes_its_mind():
    def step(x):
        if x.sum() > 0:
            return x * 2
        return x - 1

    signs = [1, 1, 1, 1, 1, -1, 1, 1, -1, -1, 1]
    return Program(step, [(sign * torch.rand(3),) for sign in signs])


@differential(aborts=1, hits=6)
def test_abort_restores_random_state_and_parameters():
    model = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)

    def step(x, y, limit):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        if loss > limit:
            for p in model.parameters():
                p.grad.zero_()
        optimizer.step()
        return loss.item()

    limit = torch.tensor(100.0)
    calls = [(*batch(), limit) for _ in range(6)]
    calls += [(*batch(), torch.tensor(-1.0)), *[(*batch(), limit) for _ in range(3)]]
    return Program(step, calls, watch=[model, optimizer])


@differential(hits=3)
def test_exception_in_the_middle():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        if x.shape[0] == 2:
            raise ValueError(f"two is not enough: {x.shape}")
        return loss.item()

    sizes = [5, 5, 5, 5, 5, 2, 5, 5]
    return Program(step, [batch(n) for n in sizes], watch=[model, optimizer])


@differential(hits=2)
def test_wrong_shapes_and_types_raise_what_eager_raises():
    model = net()

    def step(x, y):
        return F.cross_entropy(model(x), y)

    good = [batch() for _ in range(5)]
    x, y = batch()
    bad = [
        (torch.randn(5, 7), y),
        (x, torch.randint(0, 3, (4,))),
        (x, y.double() + 0.5),
        (x.float(), y),
        (x, y + 100),
        (None, y),
        ("text", y),
        ([1.0, 2.0], y),
    ]
    return Program(step, [*good, *bad, *good], watch=[model])


@differential(hits=2)
def test_wrong_number_of_arguments():
    def step(x, y=1.0, *, z):
        return x * y + z

    from differential import Call

    good = [Call((torch.randn(3),), {"z": torch.randn(3)}) for _ in range(5)]
    bad = [(torch.randn(3),), Call((), {}), Call((1, 2, 3), {"z": 1}), Call((1,), {"z": 1, "w": 2})]
    return Program(step, [*good, *bad, *good])


@differential(hits=2)
def test_grad_mode_and_autocast_around_the_call():
    model = net()

    def step(x):
        return model(x)

    def toggle(value):
        return lambda: torch.set_grad_enabled(value)

    one = [(torch.randn(5, 6),) for _ in range(4)]
    return Program(step, [*one, toggle(False), *one, toggle(True), *one], watch=[model])


@differential(hits=2)
def test_default_dtype_changes():
    def step(x):
        return torch.ones(3) + torch.zeros(3) * 2, x + 1

    one = [(torch.randn(3, dtype=torch.float32),) for _ in range(4)]

    def single():
        torch.set_default_dtype(torch.float32)

    def double():
        torch.set_default_dtype(torch.float64)

    return Program(step, [*one, single, *one, double, *one])


@differential(hits=2)
def test_closure_and_global_values_change():
    settings = {"scale": 2.0}
    factor = 1.0

    def step(x):
        return x * factor * settings["scale"]

    def change():
        nonlocal factor
        factor += 1.0
        settings["scale"] *= 0.5

    calls = []
    for _ in range(9):
        calls += [(torch.randn(3),), change]
    return Program(step, calls, watch=[settings])


@differential(hits=2)
def test_argument_structure_changes():
    def step(items, options):
        total = items[0] * options["scale"]
        for item in items[1:]:
            total = total + item
        return total

    def call(count, scale):
        return [torch.randn(3) for _ in range(count)], {"scale": scale}

    shapes = [(2, 1.0)] * 4 + [(3, 1.0)] * 4 + [(2, 2.0)] * 3 + [(1, 0.5)] * 3
    return Program(step, [call(*shape) for shape in shapes])


class Marked(torch.Tensor):
    pass


@differential(hits=2)
def test_subclass_and_wrong_layout_arguments():
    def step(x):
        return x * 2

    good = [(torch.randn(3),) for _ in range(4)]
    odd = [(torch.randn(3).as_subclass(Marked),), (torch.randn(3, 3).to_sparse(),), (3.0,), (4,)]
    return Program(step, [*good, *odd, *good])


def test_two_threads_call_one_function():
    torch.manual_seed(0)
    model = net()

    @torchjanus.function
    def step(x):
        return model(x).relu().sum(1)

    inputs = [torch.randn(n, 6) for n in (5, 8, 3, 5)]
    expected = [step.__wrapped__(x) for x in inputs]
    failures = []

    def work():
        for _ in range(50):
            for x, y in zip(inputs, expected, strict=True):
                if not torch.allclose(step(x), y, atol=1e-6):
                    failures.append(x.shape)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert step.stats()["hits"] > 0


def test_reentrant_calls():
    @torchjanus.function
    def inner(x):
        return x * 2 + 1

    @torchjanus.function
    def outer(x):
        return inner(inner(x)) - 1

    x = torch.randn(4)
    for _ in range(8):
        assert torch.equal(outer(x), ((x * 2 + 1) * 2 + 1) - 1)
        assert torch.equal(inner(x), x * 2 + 1)
    assert outer.stats()["hits"] > 0 and inner.stats()["hits"] > 0


def test_graphs_do_not_keep_modules_alive():
    import gc
    import weakref

    model = net()

    @torchjanus.function
    def step(module, x):
        return module(x)

    for _ in range(6):
        step(model, torch.randn(5, 6))
    assert step.stats()["hits"] > 0
    alive = weakref.ref(model)
    weight = weakref.ref(model[0].weight)
    del model
    gc.collect()
    assert alive() is None and weight() is None


@differential(hits=8, reasons=["unknown_callable"])
def test_calls_that_are_refused_by_turns_with_others_leave_those_their_graphs():
    def step(x, turn):
        if turn % 3 == 0:
            return x.sum() + len(open(__file__).readline())
        return x.sin().sum() if turn % 3 == 1 else x.cos().sum()

    return Program(step, [(torch.randn(4, 3), turn) for turn in range(24)])


@differential(hits=0, graphs=9, reasons=["guard_failed"])
def test_numbers_that_never_come_again_have_few_graphs():
    numbers = {i: float(i) for i in range(200)}

    def step(x, start):
        return x * sum(numbers[start + i] for i in range(3))

    return Program(step, [(torch.randn(3), 3 * turn) for turn in range(40)])


@differential(hits=11)
def test_of_many_objects_that_are_written_two_become_one():
    states = [{"mean": torch.randn(3)} for _ in range(6)]

    def step(x):
        for state in states:
            state["mean"] = state["mean"] * 0.5 + x
        return [state["mean"] for state in states]

    def make_one():
        states[4] = states[1]

    def make_two():
        states[4] = dict(states[1])

    calls = [(torch.randn(3),) for _ in range(15)]
    calls[10:10] = [make_two]
    calls[6:6] = [make_one]
    return Program(step, calls, watch=[states])


@differential(hits=10, graphs=2)
def test_number_in_a_tuple_at_the_end_of_a_list():
    found = [(3, 0.5)]

    def step(x):
        print("found", found[-1])
        return x * 2, found[-1][0]

    calls = []
    for i in range(16):
        calls += [(torch.randn(3),), lambda i=i: found.append((i * 7 % 5 + 2, i * 0.5))]
    return Program(step, calls, watch=[found])


class WithSlot:
    __slots__ = ("found",)


class WithSlotAndAttributes:
    __slots__ = ("__dict__", "found")


class Derived(WithSlot):
    pass


WITHOUT_ATTRIBUTE = {
    "slot": WithSlot,
    "slot beside attributes": WithSlotAndAttributes,
    "inherited slot": Derived,
    "module": lambda: types.ModuleType("holder"),
    "class": lambda: type("Holder", (), {}),
    "namespace": types.SimpleNamespace,
}


@differential(hits=5, graphs=2)
@pytest.mark.parametrize("kind", WITHOUT_ATTRIBUTE)
@pytest.mark.parametrize("way", ["hasattr", "getattr", "try"])
def test_an_attribute_that_is_missing_is_set_later(kind, way):
    holder = WITHOUT_ATTRIBUTE[kind]()

    def found():
        if way == "hasattr":
            return 2 if hasattr(holder, "found") else 3
        if way == "getattr":
            return getattr(holder, "found", 7)
        try:
            return holder.found
        except AttributeError:
            return 11

    def step(x):
        return x * found()

    def at_once(step):
        return (torchjanus.function(step, profile_runs=0),) * 2

    calls = [(torch.randn(3),) for _ in range(6)]
    calls[4:4] = [lambda: delattr(holder, "found")]
    calls[2:2] = [lambda: setattr(holder, "found", 5)]
    return Program(step, calls, convert=at_once)


@differential(hits=6, graphs=2)
def test_a_slot_that_the_run_empties_and_fills():
    holder = WithSlot()

    def step(x):
        if hasattr(holder, "found"):
            del holder.found
            return x * 2
        holder.found = 5
        return x * holder.found

    return Program(step, [(torch.randn(3),) for _ in range(12)])


@differential(reasons=["guard_failed"])
def test_list_that_holds_itself_where_a_number_was_assumed():
    endless: list = []
    endless.append(endless)
    x = torch.ones(2)
    arguments = [(x, 1), (x, 2), (x, 3), (x, 4), (x, 5), (x, endless)]
    return Program(lambda x, k: x * (2 if isinstance(k, int) else 3), arguments)
