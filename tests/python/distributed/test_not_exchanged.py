"""Steps with DistributedDataParallel whose all-reduce stays outside of graphs, and what the reports say of it. A group
of one process is enough."""

import contextlib

import pytest
import torch.distributed
import torch.nn.functional as F
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

import torch
import torchjanus
from torch import distributed, nn

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="no torch.distributed")


@pytest.fixture(autouse=True)
def group():
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


def model():
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def step_of(net, loss_of=lambda net, x: net(x).square().mean(), around=contextlib.nullcontext):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        with around():
            loss = loss_of(net, x)
            loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def trained(step, calls=6, **options):
    step = torchjanus.function(step, **options)
    for _ in range(calls):
        step(torch.randn(5, 3))
    return torchjanus.stats(step)


def reasons(step, calls=6, **options):
    told = trained(step, calls, **options)
    assert not any(each["exchanged_buckets"] for each in (told, *told.get("parts", ())))
    return [each["sentence"] for each in told["reasons"]]


def expect(why, step, **options):
    found = reasons(step, **options)
    assert f"DistributedDataParallel ({why}) communicates with other processes" in found, found


def test_it_is_in_the_graph_otherwise():
    step = torchjanus.function(step_of(DistributedDataParallel(model())))
    for _ in range(6):
        step(torch.randn(5, 3))
    told = torchjanus.stats(step)
    assert told["state"] == "graph" and told["exchanged_buckets"] == 1, told
    assert "shared within the graph: 1 bucket" in str(torchjanus.explain(step))


def test_loss_that_is_returned_with_its_gradient():
    """backward() has freed what it would need."""
    net = DistributedDataParallel(model())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    step = torchjanus.function(step)
    losses = [step(torch.ones(5, 3)) for _ in range(8)]
    told = torchjanus.stats(step)
    assert told["exchanged_buckets"] == 1 and told["hits"] > 0, told
    with pytest.raises(RuntimeError, match="second time"):
        losses[-1].backward()


@pytest.mark.parametrize(
    "option", ["find_unused_parameters", "static_graph", "gradient_as_bucket_view"]
)
def test_options_of_the_wrapper(option):
    expect(f"with {option}", step_of(DistributedDataParallel(model(), **{option: True})))


def test_communication_hooks():
    net = DistributedDataParallel(model())
    net.register_comm_hook(None, allreduce_hook)
    expect("with _comm_hooks", step_of(net))


def test_communication_hook_of_torch():
    net = DistributedDataParallel(model())
    net._register_builtin_comm_hook(distributed.BuiltinCommHookType.ALLREDUCE)
    expect("with a communication hook", step_of(net))


def test_hook_of_buffers():
    net = DistributedDataParallel(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)))
    net._register_buffer_comm_hook(None, lambda state, buffers: None)
    expect("with a hook of buffers", step_of(net))


def test_without_synchronisation():
    """Nothing is shared, so a gradient may be due outside as well."""
    net = DistributedDataParallel(model())
    for _ in range(2):
        net(torch.randn(5, 3)).sum().backward()
    told = trained(step_of(net, around=net.no_sync), calls=8)
    assert told["state"] == "graph" and told["hits"] > 0 and not told["exchanged_buckets"], told


def test_forward_pass_that_still_waits():
    """Gradients of the next backward() are shared, though it is within no_sync()."""
    net = DistributedDataParallel(model())
    for _ in range(2):
        net(torch.randn(5, 3)).sum().backward()
    step = torchjanus.function(step_of(net, around=net.no_sync))
    for _ in range(8):
        step(torch.randn(5, 3))
    hits = torchjanus.stats(step)["hits"]
    net(torch.randn(5, 3))
    with net.no_sync():
        net(torch.randn(5, 3))
    step(torch.randn(5, 3))
    told = torchjanus.stats(step)
    sentence = "an earlier forward pass has had no backward(), whose gradients are shared"
    assert told["hits"] == hits, told
    assert any(sentence in each["sentence"] for each in told["reasons"]), told["reasons"]
    step(torch.randn(5, 3))
    assert torchjanus.stats(step)["hits"] == hits + 1


def test_join():
    net = DistributedDataParallel(model())
    step = torchjanus.function(step_of(net))
    with net.join():
        for _ in range(6):
            step(torch.randn(5, 3))
    told = torchjanus.stats(step)
    sentence = "DistributedDataParallel (within join()) communicates with other processes"
    assert sentence in [each["sentence"] for each in told["reasons"]], told


def test_class_of_its_own():
    class Wrapper(DistributedDataParallel):
        pass

    expect("of a class of its own", step_of(Wrapper(model())))


def test_before_the_buckets_are_rebuilt():
    """They are in the second step, and the all-reduce is in the graph from the third one on."""
    told = trained(step_of(DistributedDataParallel(model())), profile_runs=1)
    assert told["exchanged_buckets"] == 1 and told["hits"] > 0, told
    sentence = "DistributedDataParallel (before its buckets have their order) communicates with other processes"
    assert sentence in [each["sentence"] for each in told["reasons"]], told


def test_without_gradients():
    """The first call behind a step broadcasts buffers."""
    net = DistributedDataParallel(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)))

    def evaluate(x):
        with torch.no_grad():
            return net(x) * 2

    net(torch.randn(5, 3)).sum().backward()
    net(torch.randn(5, 3)).sum().backward()
    net.eval()
    told = trained(evaluate, calls=8)
    assert told["state"] == "graph" and told["hits"] > 0 and not told["reasons"], told
    assert not net.require_forward_param_sync


def test_in_a_branch():
    """There is a graph for each side of it."""
    net = DistributedDataParallel(model())

    def loss_of(net, x):
        if x.sum() > 0:
            return net(x).square().mean()
        return net(2 * x).square().mean()

    told = trained(step_of(net, loss_of), calls=14)
    assert told["exchanged_buckets"] == 1 and told["hits"] > 0, told


def test_buffer_that_lies_otherwise():
    inner = model()
    inner.register_buffer("table", torch.randn(4, 3).t())
    expect("with a buffer that doesn't lie in order", step_of(DistributedDataParallel(inner)))


def test_size_of_broadcasts_that_varies():
    net = DistributedDataParallel(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)))
    plain = step_of(net)
    step = torchjanus.function(plain)
    for number in range(8):
        net.broadcast_bucket_size = 1000 + number
        step(torch.randn(5, 3))
    reasons = [each["sentence"] for each in torchjanus.stats(step)["reasons"]]
    assert any("whose size of broadcasts varies" in each for each in reasons), reasons


def test_backward_outside_of_the_graph():
    net = DistributedDataParallel(model())

    def forward(x):
        return net(x).square().mean()

    found = torchjanus.function(forward)
    for _ in range(6):
        found(torch.randn(5, 3)).backward()
    sentence = "DistributedDataParallel (its backward() is not in the graph) communicates with other processes"
    assert sentence in [each["sentence"] for each in torchjanus.stats(found)["reasons"]]


class Factor(nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(torch.randn(3))

    def forward(self):
        return self.factor


def test_two_models_in_one_operator():
    """Whose bucket goes first is the engine's affair."""
    one, other = DistributedDataParallel(Factor()), DistributedDataParallel(Factor())
    optimizer = torch.optim.SGD([*one.parameters(), *other.parameters()], lr=0.1)

    def step(x):
        optimizer.zero_grad()
        (one() * other() * x).square().mean().backward()
        optimizer.step()

    expect("whose parameters are used in one place with those of another one", step)


def test_assertion_behind_the_exchange():
    """Whether the index fits is known only when gradients are shared already."""
    net = DistributedDataParallel(model())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    table = torch.randn(7, 3)

    def step(x):
        optimizer.zero_grad()
        net(x).square().mean().backward()
        place = (net.module[0].bias.grad.abs() * 0).long()
        optimizer.step()
        return F.embedding(place, table)

    found = reasons(step)
    assert any("may end the run" in each for each in found), found


def test_hook_that_is_added_later():
    """The accumulator has another hook than the reducer's: the graph is not entered."""
    net = DistributedDataParallel(model())
    step = torchjanus.function(step_of(net))
    for _ in range(6):
        step(torch.randn(5, 3))
    hits, called = torchjanus.stats(step)["hits"], []
    parameter = next(net.parameters())
    accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
    accumulator.register_hook(lambda *_: called.append(1))
    step(torch.randn(5, 3))
    assert called and torchjanus.stats(step)["hits"] == hits
