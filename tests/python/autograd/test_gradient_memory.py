"""New gradients may be computed right into the tensors that hold the old ones, where nobody can tell.

Each case trains and looks at the gradients after some calls, in its own way: what it sees, and what
it still holds at the end, must be what eager gives. After the other calls nobody looks.
"""

import gc
import weakref
from collections.abc import Callable

import pytest
import torch.nn.functional as F
from differential import Program, differential, rise_mib

import torch
import torchjanus
from torch import nn

CALLS, LOOKS = 12, (5, 6, 9)


def hold(model, held):
    held.append([parameter.grad for parameter in model.parameters()])


def hold_views(model, held):
    held.append([parameter.grad.view(-1) for parameter in model.parameters()])


def hold_detached(model, held):
    held.append([parameter.grad.detach() for parameter in model.parameters()])


def hold_data(model, held):
    held.append([parameter.grad.data for parameter in model.parameters()])


def hold_arrays(model, held):
    held.append([parameter.grad.numpy() for parameter in model.parameters()])


def hold_storages(model, held):
    held.append([parameter.grad.untyped_storage() for parameter in model.parameters()])


def hold_nothing(model, held):
    held.append([parameter.grad.clone() for parameter in model.parameters()])


def give_arrays(model, held):
    for parameter in model.parameters():
        held.append(torch.full(parameter.shape, 2.0).numpy())
        parameter.grad = torch.from_numpy(held[-1])


def share_one(model, held):
    first, *_, last = model.parameters()
    shared = torch.ones(40)
    first.grad, last.grad = shared[:32].view(8, 4), shared[32:35]
    held.append(shared)


def share_one_without_name(model, held):
    first, *_, last = model.parameters()
    shared = torch.ones(40)
    first.grad, last.grad = shared[:32].view(8, 4), shared[32:35]


def give_larger_memory(model, held):
    model[0].weight.grad = torch.ones(40)[:32].view(8, 4)
    model[0].bias.grad = torch.ones(16)[8:]


def give_transposed(model, held):
    model[0].weight.grad = torch.zeros(4, 8).t()


def write_in_place(model, held):
    for parameter in model.parameters():
        parameter.grad.mul_(2)
    held.append([parameter.grad._version for parameter in model.parameters()])


def see_versions(model, held):
    held.append([parameter.grad._version for parameter in model.parameters()])


def drop_some(model, held):
    model[0].weight.grad = None
    model[2].bias.grad = torch.zeros(3)


def put_attributes(model, held):
    grad = model[0].weight.grad
    held.append(getattr(grad, "mark", None))
    grad.mark = len(held)


def refer_weakly(model, held):
    gc.collect()
    held.append([each() is None for each in held if isinstance(each, weakref.ref)])
    held.append(weakref.ref(model[0].weight.grad))


def want_gradients(model, held):
    model[0].weight.grad.requires_grad_()
    held.append(model[0].weight.grad)


def give_of_another_type(model, held):
    model[2].weight.grad = torch.ones(3, 8).to_sparse()
    held.append(model[2].weight.grad.to_dense())


WAYS = [
    hold, hold_views, hold_detached, hold_data, hold_arrays, hold_storages, hold_nothing, give_arrays,
    share_one, share_one_without_name, give_larger_memory, give_transposed, write_in_place, see_versions,
    drop_some, put_attributes, refer_weakly, want_gradients, give_of_another_type,
]  # fmt: skip


def plain(value):
    """What a thing that was held is now, as numbers."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, weakref.ref):
        return value() is None
    if isinstance(value, torch.UntypedStorage):
        return torch.empty(0).set_(value).tolist()
    if isinstance(value, torch.Tensor):
        return value.shape, value.stride(), value.requires_grad, value.flatten().tolist()
    return value.tolist() if hasattr(value, "tolist") else value


def trained(look: Callable, convert: Callable) -> list:
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    converted, held, losses = convert(step), [], []
    for call in range(CALLS):
        losses.append(converted(torch.randn(5, 4), torch.randint(0, 3, (5,))))
        if call in LOOKS:
            look(model, held)
    ends = [parameter.detach() for parameter in model.parameters()]
    ends += [parameter.grad for parameter in model.parameters()]
    return plain([losses, held, ends])


def close(one, other) -> bool:
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(close, one, other))
    return one is other or one == pytest.approx(other, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("look", WAYS)
def test_nobody_can_tell(look):
    functions = []

    def convert(step):
        functions.append(torchjanus.function(step))
        return functions[-1]

    assert close(trained(look, convert), trained(look, lambda step: step))
    if look is not give_of_another_type:
        assert functions[0].stats()["hits"] >= 6
        assert functions[0].stats()["aborts"] == 0


def converted_step(model: nn.Module) -> torchjanus.Function:
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    @torchjanus.function
    def step(x):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

    return step


def warmed_up_step():
    """A model, its converted step, which follows its plan by now, and what that is called with."""
    model = nn.Linear(64, 64)
    step = converted_step(model)
    x = torch.randn(8, 64)
    for _ in range(8):
        step(x)
    return model, step, x


def test_gradients_stay_where_they_are():
    """What this is for."""
    model, step, x = warmed_up_step()
    assert "in place of the old one" in step.snapshot()["cache"][0]["program"]
    held = model.weight.grad
    before = held.clone()
    step(x)
    assert model.weight.grad is not held
    assert torch.equal(held, before)
    assert step.stats()["aborts"] == 0


def test_gradients_that_python_saw_leave_their_memory():
    model, step, x = warmed_up_step()
    seen = weakref.ref(model.weight.grad)
    place = model.weight.grad.data_ptr()
    assert seen() is not None
    step(x)
    assert seen() is None
    assert model.weight.grad.data_ptr() == place
    assert step.stats()["aborts"] == 0


def test_gradients_are_not_held_twice():
    step = converted_step(nn.Linear(4096, 1024, bias=False))  # 16 MiB
    x = torch.randn(8, 4096)
    for _ in range(8):
        step(x)
    assert rise_mib(lambda: [step(x) for _ in range(4)]) < 8
    assert step.stats()["aborts"] == 0


def two_updates(convert: Callable) -> tuple:
    """The second part reads what the first part's update has written."""
    torch.manual_seed(5)
    critic, generator = nn.Linear(4, 3), nn.Linear(4, 4)
    of_critic = torch.optim.Adam(critic.parameters(), 0.01)
    of_generator = torch.optim.Adam(generator.parameters(), 0.01)

    def step(x):
        of_critic.zero_grad()
        fake, old = generator(x), critic.weight.detach().clone()
        (critic(x).mean() - critic(fake.detach()).mean()).backward()
        of_critic.step()
        of_generator.zero_grad()
        loss = critic(fake).tanh().mean()
        loss.backward()
        of_generator.step()
        return loss, old, critic.weight.detach().clone()

    converted = convert(step)
    seen = [converted(torch.randn(5, 4)) for _ in range(10)]
    return seen, list(critic.parameters()), list(generator.parameters())


def test_a_later_part_reads_what_an_update_wrote():
    expected = two_updates(lambda step: step)
    actual = two_updates(torchjanus.function)
    torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("bad_call", [7, 8])
def test_a_failing_call_leaves_all_as_eager_does(bad_call):
    def run(convert):
        torch.manual_seed(1)
        model = nn.Linear(4, 3)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)

        def step(x, y):
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        converted, ends = convert(step), []
        for call in range(10):
            y = torch.full((5,), 7) if call == bad_call else torch.randint(0, 3, (5,))
            try:
                converted(torch.randn(5, 4), y)
            except IndexError:
                ends = [parameter.grad.clone() for parameter in model.parameters()]
        return ends, list(model.parameters())

    torch.testing.assert_close(run(torchjanus.function), run(lambda step: step))


def test_losses_have_nodes_of_their_own():
    """Nodes of losses that are gone are taken again, as long as nothing was left on them."""
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    @torchjanus.function
    def step(x):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss

    kept = []
    for call in range(24):
        loss = step(torch.randn(5, 4))
        assert loss.grad_fn.name() == "MeanBackward0"
        assert "mark" not in loss.grad_fn.metadata
        if call % 3 == 0:
            kept.append(loss)
        if call % 4 == 1:
            loss.register_hook(lambda gradient: pytest.fail("a hook of another loss"))
            loss.grad_fn.metadata["mark"] = call
        if call % 8 == 2:
            with pytest.raises(RuntimeError, match="second time"):
                loss.backward()
    assert len({id(each.grad_fn) for each in kept}) == len(kept)
    assert step.stats()["hits"] > 15


def test_state_of_optimizers_dies_with_them():
    """Its tensors are not counted in runs: nothing keeps them, nor misses them."""
    model = nn.Linear(4, 3)
    optimizer = torch.optim.Adam(model.parameters(), 0.1)

    def make(optimizer):
        @torchjanus.function
        def step(x):
            optimizer.zero_grad()
            loss = model(x).pow(2).mean()
            loss.backward()
            optimizer.step()
            return loss

        return step

    step = make(optimizer)
    for _ in range(8):
        step(torch.randn(5, 4))
    state = optimizer.state[model.weight]
    average, before = state["exp_avg"], state["exp_avg"].clone()
    state["exp_avg"] = torch.zeros_like(average)
    step(torch.randn(5, 4))
    assert torch.equal(average, before)
    assert not torch.equal(state["exp_avg"], torch.zeros_like(average))
    reference = weakref.ref(state["exp_avg"])
    assert step.stats()["hits"] > 4
    del optimizer, step, state
    gc.collect()
    assert reference() is None


@differential(hits=3)
def test_results_of_one_size_where_only_some_have_a_place():
    """The gradients of one row and of the norm's parameters are of one size; the first is handed out."""
    norm = torch.nn.LayerNorm(4)

    def step(x):
        m = x.reshape(-1).view(-1, 4)
        loss = (norm(m) * x.detach()).pow(2).mean()
        loss.backward()
        return x.grad

    return Program(step, [(torch.randn(1, 4).requires_grad_(),) for _ in range(7)], watch=[norm])
