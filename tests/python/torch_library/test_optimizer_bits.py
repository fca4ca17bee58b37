"""The updates of torch's optimizers by a graph are eager's to the last bit, so that processes which share a training
stay equal whenever each of them begins to run graphs."""

import pytest
import torch.distributed

import torch
import torchjanus
from torch import nn

needs_groups = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="no torch.distributed"
)

O = torch.optim
OPTIMIZERS = {
    "SGD": lambda p: O.SGD(p, lr=0.1),
    "SGD momentum": lambda p: O.SGD(p, lr=0.1, momentum=0.9, dampening=0.1),
    "SGD nesterov decay": lambda p: O.SGD(
        p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01
    ),
    "SGD maximize": lambda p: O.SGD(p, lr=0.1, maximize=True, weight_decay=0.01),
    "Adam": lambda p: O.Adam(p, lr=0.01),
    "Adam amsgrad decay": lambda p: O.Adam(p, lr=0.01, weight_decay=0.01, amsgrad=True),
    "Adam from the other end": lambda p: O.Adam(p, lr=0.01, betas=(0.4, 0.9)),
    "AdamW": lambda p: O.AdamW(p, lr=0.01),
    "AdamW amsgrad maximize": lambda p: O.AdamW(p, lr=0.01, amsgrad=True, maximize=True),
    "RMSprop": lambda p: O.RMSprop(p, lr=0.01),
    "RMSprop centered": lambda p: O.RMSprop(
        p, lr=0.01, centered=True, momentum=0.5, weight_decay=0.001
    ),
    "Adagrad": lambda p: O.Adagrad(p, lr=0.05, lr_decay=0.1, weight_decay=0.001),
    "Adadelta": lambda p: O.Adadelta(p, lr=0.5, weight_decay=0.001),
    "Adamax": lambda p: O.Adamax(p, weight_decay=0.01),
    "NAdam": lambda p: O.NAdam(p, weight_decay=0.01, decoupled_weight_decay=True),
    "RAdam": lambda p: O.RAdam(p, weight_decay=0.01),
    "ASGD": lambda p: O.ASGD(p, weight_decay=0.01),
    "Rprop": O.Rprop,
    "Muon": lambda p: O.Muon([each for each in p if each.dim() == 2]),
    "SGD foreach": lambda p: O.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01, foreach=True),
    "Adam foreach": lambda p: O.Adam(p, lr=0.01, amsgrad=True, foreach=True),
    "AdamW foreach": lambda p: O.AdamW(p, lr=0.01, maximize=True, foreach=True),
    "RMSprop foreach": lambda p: O.RMSprop(p, lr=0.01, centered=True, momentum=0.5, foreach=True),
    "Adagrad foreach": lambda p: O.Adagrad(p, lr=0.05, weight_decay=0.001, foreach=True),
    "Adadelta foreach": lambda p: O.Adadelta(p, lr=0.5, weight_decay=0.001, foreach=True),
    "Adamax foreach": lambda p: O.Adamax(p, weight_decay=0.01, foreach=True),
    "NAdam foreach": lambda p: O.NAdam(p, weight_decay=0.01, foreach=True),
    "RAdam foreach": lambda p: O.RAdam(p, weight_decay=0.01, foreach=True),
    "ASGD foreach": lambda p: O.ASGD(p, weight_decay=0.01, foreach=True),
    "Rprop foreach": lambda p: O.Rprop(p, foreach=True),
}
FUSED = {
    "SGD fused": lambda p: O.SGD(p, lr=0.1, fused=True),
    "SGD fused momentum": lambda p: O.SGD(p, lr=0.1, momentum=0.9, dampening=0.1, fused=True),
    "SGD fused nesterov decay maximize": lambda p: O.SGD(
        p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01, maximize=True, fused=True
    ),
    "Adam fused": lambda p: O.Adam(p, lr=0.01, fused=True),
    "Adam fused amsgrad decay": lambda p: O.Adam(
        p, lr=0.01, weight_decay=0.01, amsgrad=True, fused=True
    ),
    "AdamW fused": lambda p: O.AdamW(p, lr=0.01, fused=True),
    "AdamW fused amsgrad maximize": lambda p: O.AdamW(
        p, lr=0.01, betas=(0.4, 0.9), amsgrad=True, maximize=True, fused=True
    ),
    "AdamW fused without decay": lambda p: O.AdamW(p, lr=0.01, weight_decay=0.0, fused=True),
    "Adagrad fused": lambda p: O.Adagrad(p, lr=0.05, lr_decay=0.1, weight_decay=0.001, fused=True),
}
# Whole vectors of every processor, and what is left over.
SIZES = [(1,), (7,), (64,), (16, 16), (5, 13), (3, 4, 5), (300, 130)]
WHOLE_VECTORS = [(64,), (16, 16), (128, 3), (2, 4, 16), (320, 128)]
LAYOUTS = ["in order", "turned", "strided"]
STEPS = 7


def parameters(dtype, layout, sizes=SIZES):
    generator = torch.Generator().manual_seed(3)
    made = []
    for size in sizes:
        values = torch.randn(size, generator=generator, dtype=torch.float64).to(dtype)
        if layout == "turned" and values.dim() == 2:
            values = values.t().contiguous().t()
        if layout == "strided":
            values = torch.stack([values, values], -1)[..., 0]
        made.append(nn.Parameter(values))
        made[-1].grad = torch.zeros_like(values)
    return made


def trained(optimizer, dtype, layout, *, eager_steps, before=None, sizes=SIZES):
    """The parameters and the optimizer's state after some steps, of which the first ones are eager."""
    mine = parameters(dtype, layout, sizes)
    optimizer = (OPTIMIZERS | FUSED)[optimizer](mine)
    generator = torch.Generator().manual_seed(5)

    def step():
        if before is not None:
            before(mine)
        optimizer.step()

    graph = torchjanus.function(step, profile_runs=0)
    for index in range(STEPS):
        for each in mine:
            drawn = torch.randn(each.shape, generator=generator, dtype=torch.float64)
            each.grad.copy_(drawn * 0.1)
        (step if index < eager_steps else graph)()
    state = [
        value
        for each in mine
        for value in optimizer.state.get(each, {}).values()
        if isinstance(value, torch.Tensor)
    ]
    return [each.detach() for each in mine] + state, graph.stats()


def expect_same_bits(one, other):
    assert len(one) == len(other)
    for index, (mine, its) in enumerate(zip(one, other, strict=True)):
        assert torch.equal(mine, its), (index, mine.shape, (mine != its).sum())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_updates_have_eagers_bits(optimizer, layout, dtype):
    expected, _ = trained(optimizer, dtype, layout, eager_steps=STEPS)
    found, stats = trained(optimizer, dtype, layout, eager_steps=0)
    assert stats["hits"] >= STEPS - 4, stats["reasons"]
    expect_same_bits(found, expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("layout", ["in order", "turned"])
@pytest.mark.parametrize("optimizer", FUSED)
def test_fused_updates_have_eagers_bits_in_whole_vectors(optimizer, layout, dtype):
    """Eager's kernel has other code for what is left over: there the last bit may differ."""
    for sizes in (WHOLE_VECTORS, SIZES):
        expected, _ = trained(optimizer, dtype, layout, eager_steps=STEPS, sizes=sizes)
        found, stats = trained(optimizer, dtype, layout, eager_steps=0, sizes=sizes)
        assert stats["hits"] >= STEPS - 4, stats["reasons"]
        if sizes is WHOLE_VECTORS:
            expect_same_bits(found, expected)
        for mine, its in zip(found, expected, strict=True):
            torch.testing.assert_close(mine, its, rtol=4 * torch.finfo(dtype).eps, atol=1e-7)


@pytest.mark.parametrize("optimizer", FUSED)
def test_fused_updates_of_elements_in_no_order_are_left_to_torch(optimizer):
    """Eager's kernel goes through memory in order, whatever the strides."""
    expected, _ = trained(optimizer, torch.float32, "strided", eager_steps=STEPS)
    found, stats = trained(optimizer, torch.float32, "strided", eager_steps=0)
    assert stats["hits"] == 0
    assert "unknown_callable" in {each["code"] for each in stats["reasons"]}
    expect_same_bits(found, expected)


@needs_groups
def test_fused_updates_are_left_to_torch_in_a_group(process_group):
    expected, _ = trained("AdamW fused", torch.float32, "in order", eager_steps=STEPS)
    found, stats = trained("AdamW fused", torch.float32, "in order", eager_steps=0)
    assert stats["hits"] == 0
    expect_same_bits(found, expected)


@pytest.mark.parametrize("optimizer", ["SGD momentum", "AdamW", "RMSprop centered"])
def test_processes_stay_equal_whenever_each_begins_with_graphs(optimizer):
    expected, _ = trained(optimizer, torch.float32, "in order", eager_steps=STEPS)
    for first in range(STEPS):
        found, _ = trained(optimizer, torch.float32, "in order", eager_steps=first)
        expect_same_bits(found, expected)


def test_values_that_are_clipped_have_eagers_bits():
    def clips(mine):
        nn.utils.clip_grad_value_(mine, 0.05)

    runs = [
        trained("Adam", torch.float32, "in order", eager_steps=eager, before=clips)[0]
        for eager in (STEPS, 0)
    ]
    expect_same_bits(*runs)


def adafactor(p):
    return O.Adafactor(p, lr=0.01, weight_decay=0.01)


def test_adafactors_sums_are_near_eagers(monkeypatch):
    """Norms and means are added up in another order."""
    monkeypatch.setitem(OPTIMIZERS, "Adafactor", adafactor)
    expected, _ = trained("Adafactor", torch.float64, "in order", eager_steps=STEPS)
    found, stats = trained("Adafactor", torch.float64, "in order", eager_steps=0)
    assert stats["hits"] > 0
    for mine, its in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, its, rtol=1e-10, atol=1e-12)


@pytest.fixture
def process_group():
    torch.distributed.init_process_group(
        "gloo", store=torch.distributed.HashStore(), rank=0, world_size=1
    )
    yield
    torch.distributed.destroy_process_group()


def by_norm(mine):
    nn.utils.clip_grad_norm_(mine, 0.05)


def by_largest(mine):
    nn.utils.clip_grad_norm_(mine, 0.05, norm_type=float("inf"))


def by_total_norm(mine):
    total = nn.utils.get_total_norm([each.grad for each in mine], norm_type=1.0)
    nn.utils.clip_grads_with_norm_(mine, 0.5, total)


def by_trust(mine):
    for each in mine:
        ratio = each.detach().norm() / (each.grad.pow(2).sum().sqrt() + 1e-6)
        each.grad.mul_(ratio.clamp(max=10))


def by_statistics(mine):
    for each in mine:
        each.grad.sub_(each.grad.mean(0, keepdim=True))
        each.grad.div_(each.grad.std(correction=0) + 0.1)


WAYS_TO_CLIP = [by_norm, by_largest, by_total_norm, by_trust, by_statistics]


@needs_groups
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("before", WAYS_TO_CLIP)
def test_sums_of_updates_have_eagers_bits_in_a_group(process_group, before, layout, dtype):
    runs = [
        trained("SGD momentum", dtype, layout, eager_steps=eager, before=before)
        for eager in (STEPS, 0)
    ]
    assert runs[1][1]["hits"] >= STEPS - 4, runs[1][1]["reasons"]
    expect_same_bits(runs[0][0], runs[1][0])


@needs_groups
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_adafactor_has_eagers_bits_in_a_group(process_group, monkeypatch, layout, dtype):
    monkeypatch.setitem(OPTIMIZERS, "Adafactor", adafactor)
    expected, _ = trained("Adafactor", dtype, layout, eager_steps=STEPS)
    found, stats = trained("Adafactor", dtype, layout, eager_steps=0)
    assert stats["hits"] >= STEPS - 4, stats["reasons"]
    expect_same_bits(found, expected)


@needs_groups
def test_a_graph_of_before_the_group_is_left():
    mine = parameters(torch.float32, "in order")
    generator = torch.Generator().manual_seed(5)

    def clip():
        return nn.utils.clip_grad_norm_(mine, 1e9)

    def expect_eagers_bits():
        for each in mine:
            each.grad.copy_(torch.randn(each.shape, generator=generator))
        assert torch.equal(graph(), clip())

    graph = torchjanus.function(clip, profile_runs=0)
    for _ in range(3):
        graph()
    assert graph.stats()["generated"] == 1
    torch.distributed.init_process_group(
        "gloo", store=torch.distributed.HashStore(), rank=0, world_size=1
    )
    try:
        for _ in range(10):
            expect_eagers_bits()
    finally:
        torch.distributed.destroy_process_group()
    stats = graph.stats()
    assert stats["hits"] >= 10 and stats["generated"] == 2
    assert "group.WORLD is None" in stats["reasons"][0]["sentence"]
    graph()
    assert graph.stats()["hits"] == stats["hits"] + 1


@needs_groups
def test_gradients_of_the_same_run_are_added_up_in_any_order(process_group):
    """They are those of one process, so its graph is as fast as ever."""
    layer = nn.Linear(40, 3)

    def step(x):
        loss = (layer(x) ** 2).mean()
        layer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(layer.parameters(), 0.1)
        return loss

    graph = torchjanus.function(step, profile_runs=0)
    for _ in range(4):
        graph(torch.randn(5, 40))
    assert graph.stats()["hits"] >= 2
    optimised = torchjanus.explain(graph)
    assert "WORLD" not in optimised


WRITTEN_BY_HAND = {
    "add": lambda x, y, z: torch.add(x, y, alpha=0.3),
    "sub": lambda x, y, z: torch.sub(x, y, alpha=0.3),
    "rsub": lambda x, y, z: torch.rsub(x, y, alpha=0.3),
    "lerp": lambda x, y, z: torch.lerp(x, y, 0.3),
    "lerp from the other end": lambda x, y, z: torch.lerp(x, y, 0.9),
    "addcmul": lambda x, y, z: torch.addcmul(x, y, z, value=0.3),
    "addcmul without a factor": torch.addcmul,
    "addcdiv": lambda x, y, z: torch.addcdiv(x, y, z, value=0.3),
    "sqrt": lambda x, y, z: x.abs().sqrt(),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", WRITTEN_BY_HAND)
def test_operators_of_updates_have_eagers_bits(name, dtype):
    """Behind a negation, which is exact, so that there is something to fuse."""

    def function(x, y, z):
        return WRITTEN_BY_HAND[name](-x, y, z)

    converted = torchjanus.function(function, profile_runs=0)
    generator = torch.Generator().manual_seed(1)
    for size in (1, 7, 64, 4097, 70_001):
        drawn = torch.randn(3, size, generator=generator, dtype=torch.float64)
        operands = list((drawn * torch.tensor([[1.0], [3.0], [0.1]])).to(dtype))
        assert torch.equal(converted(*operands), function(*operands)), size
    assert converted.stats()["hits"] > 0


def assert_roots_are_eagers(x):
    """Behind a negation, so that a kernel computes them."""
    function = torchjanus.function(lambda x: (-x).sqrt(), profile_runs=0)
    function(-x)
    expected, found = x.sqrt(), function(-x)
    assert function.stats()["hits"] > 0
    same = (expected == found) & (expected.signbit() == found.signbit()) | (
        expected.isnan() & found.isnan()
    )
    assert same.all(), x[~same]


def test_roots_of_all_sizes_have_eagers_bits():
    """Subnormal numbers, the largest ones, zeros, and what has no root."""
    generator = torch.Generator().manual_seed(2)
    bits = torch.randint(-(2**31), 2**31, (400_000,), generator=generator)
    edges = [0x00000000, 0x00000001, 0x007FFFFF, 0x00800000, 0x7F7FF000, 0x7F7FF001, 0x7F7FFFFF]
    special = torch.tensor([*edges, 0x7F800000, 0x7FC00000, -0x80000000]).repeat_interleave(64)
    large = torch.arange(0x7F7FE000, 0x7F800000)
    assert_roots_are_eagers(torch.cat([bits, special, large]).to(torch.int32).view(torch.float32))


def test_roots_of_doubles_of_all_sizes_have_eagers_bits():
    """And many of the same size, as few roots are not rounded correctly and those depend on all digits."""
    generator = torch.Generator().manual_seed(3)
    bits = torch.randint(-(2**63), 2**63 - 1, (400_000,), generator=generator)
    edges = [number << 52 for number in (0, 1, 2, 0x3FF, 0x7FC, 0x7FD, 0x7FE, 0x7FF)]
    near = torch.tensor(edges)[:, None] + torch.arange(-64, 65)
    special = torch.tensor([0, -(2**63), 0x7FF << 52, 0xFFF8 << 47, 1]).repeat_interleave(64)
    assert_roots_are_eagers(torch.cat([bits, near.flatten(), special]).view(torch.float64))
    for _ in range(4):
        assert_roots_are_eagers(
            1 + 3 * torch.rand(1_000_000, generator=generator, dtype=torch.float64)
        )
