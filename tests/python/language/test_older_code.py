"""Programs in older styles: legacy constructors, `Variable`, filters of warnings, scripted functions, locals()."""

import warnings

import pytest
from differential import Program, differential
from torch.autograd import Variable
from torch.nn import functional as F

import torch
from torch import nn


def batches(count=8):
    return [(torch.randn(4, 3),) for _ in range(count)]


MADE = {
    "new of sizes": lambda x: x.new(4, 3).fill_(2.0) * x,
    "new of a size": lambda x: x.new(x.size()).zero_() + x,
    "new of data": lambda x: x.new([1.0, 2.0, 3.0]) * x,
    "new of nothing": lambda x: x.new().sum() + x.sum(),
    "new_tensor": lambda x: x.new_tensor([1.0, 2.0, 3.0]) * x,
    "Tensor of data": lambda x: torch.Tensor([1.0, 2, 3]) * x,
    "Tensor of rows": lambda x: torch.Tensor([[1, 2, 3], [4, 5, 6]])[1] * x,
    "Tensor of sizes": lambda x: torch.Tensor(4, 3).fill_(2) * x,
    "FloatTensor": lambda x: torch.FloatTensor([1, 2, 3]) * x,
    "DoubleTensor": lambda x: torch.DoubleTensor([1, 2, 3]) * x,
    "LongTensor": lambda x: x[torch.LongTensor([1, 2, 3])],
    "ByteTensor": lambda x: torch.ByteTensor([1, 2, 3]) * x,
    "FloatTensor of sizes": lambda x: torch.FloatTensor(4, 3).zero_() + x,
    "DoubleTensor of a tensor": lambda x: torch.DoubleTensor(x) * 2,
    "new of a tensor": lambda x: x.new(x * 2),
    "Variable": lambda x: Variable(x) * 2,
    "Variable itself": lambda x: Variable(x),
    "Variable of what is made": lambda x: Variable(torch.ones(3)) * x,
    "type name": lambda x: x * (2 if x.type() == "torch.DoubleTensor" else 3),
    "type by name": lambda x: (x * 2).type("torch.FloatTensor"),
    "type by class": lambda x: (x > 0).type(torch.FloatTensor) * 3,
    "type by another's": lambda x: (x > 0).type(x.type()) * 3,
    "type that it is": lambda x: x.type("torch.DoubleTensor") * 2,
}


@pytest.mark.parametrize("name", sorted(MADE))
@differential(hits=5, graphs=1)
def test_legacy_call(name):
    return Program(MADE[name], batches())


@differential(hits=5, graphs=1)
def test_variable_that_requires_a_gradient():
    def step(x):
        v = Variable(x * 1, requires_grad=True)
        (v * v).sum().backward()
        return v.grad

    return Program(step, batches())


@differential(hits=5, graphs=1)
def test_variable_shares_memory():
    def step(x):
        y = x * 2
        v = Variable(y)
        v.add_(1)
        return y, v

    return Program(step, batches())


ALIASES = {
    "Tensor": torch.Tensor,
    "DoubleTensor": torch.DoubleTensor,
    "new": lambda t: torch.ones(1).new(t),
}


@pytest.mark.parametrize("name", sorted(ALIASES))
@differential(hits=5, graphs=1)
def test_gradient_through_an_alias(name):
    w = torch.randn(3, requires_grad=True)

    def step(x):
        y = w * x
        alias = ALIASES[name](y)
        (alias * alias).sum().backward()
        return alias, y

    return Program(step, batches(), watch=[w])


@pytest.mark.parametrize("name", sorted(ALIASES))
@differential(hits=5, graphs=1)
def test_write_to_an_alias(name):
    w = torch.randn(3, requires_grad=True)

    def step(x):
        y = w * x
        ALIASES[name](y).mul_(w)
        y.sum().backward()
        return y

    return Program(step, batches(), watch=[w])


@pytest.mark.parametrize("name", sorted(ALIASES))
@differential(hits=5, graphs=1)
def test_alias_of_an_argument(name):
    def step(x):
        alias = ALIASES[name](x)
        alias.add_(1)
        return alias, alias.requires_grad

    return Program(step, batches())


@pytest.mark.parametrize("name", sorted(ALIASES))
@differential(hits=5, graphs=1)
def test_alias_of_a_parameter(name):
    weight = nn.Parameter(torch.randn(3))

    def step(x):
        alias = ALIASES[name](weight)
        (alias * x).sum().backward()
        return alias * 1

    return Program(step, batches(), watch=[weight])


@pytest.mark.parametrize("name", sorted(ALIASES))
@differential()
def test_alias_without_gradients(name):
    weight = nn.Parameter(torch.randn(3))

    def step(x):
        with torch.no_grad():
            of_leaf, of_result = ALIASES[name](weight), ALIASES[name](weight * x)
        return of_leaf.requires_grad, of_result.requires_grad, of_result * x

    return Program(step, batches(), watch=[weight])


# --- warnings ------------------------------------------------------------------------------------


def ignoring(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = x * 2 + 1
    return y.sum()


def ignoring_one_kind(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category=UserWarning)
        warnings.warn("not shown", stacklevel=1)
        y = x * 2 + 1
    return y.sum()


def by_action(x):
    with warnings.catch_warnings(action="ignore"):
        y = x * 2 + 1
    return y.sum()


def by_message(x):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning)
        y = x * 2 + 1
    return y.sum()


@pytest.mark.parametrize("step", [ignoring, ignoring_one_kind, by_action, by_message])
@differential(hits=5, graphs=1)
def test_filters_of_the_run(step):
    return Program(step, batches(), watch=[warnings.filters])


@differential(reasons=["unknown_callable"])
def test_warning_that_the_run_records():
    def step(x):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            y = x * 2 + 1
            warnings.warn("recorded", stacklevel=1)
        return y.sum(), len(caught)

    return Program(step, batches(), watch=[warnings.filters])


# --- functions of TorchScript --------------------------------------------------------------------


@torch.jit.script
def scaled_tanh(x, factor: float):
    return torch.tanh(x) * factor + 1


@torch.jit.script
def with_dropout(x):
    return F.dropout(x, 0.5, True)


@differential(hits=5, graphs=1)
def test_scripted_function():
    return Program(lambda x: scaled_tanh(x * 2, 2.0) + 1, batches())


@differential(hits=5, graphs=1)
def test_scripted_function_in_a_step():
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(x):
        optimizer.zero_grad()
        loss = scaled_tanh(model(x), 2.0).sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Program(step, batches(), watch=[model])


@torch.jit.script
def scripted_standardized(x, y):
    return (x - x.mean(0)) / (x.std(0) + 0.5), torch.clamp(2 * y, min=-1.0) ** 2


@torch.jit.script
def with_choice(x, kind: str, factor: float = 2.0):
    if kind == "tanh":
        x = torch.tanh(x)
    for i in range(2):  # noqa: B007
        x = 1 - x * factor
    return x


@torch.jit.script
def by_size(x):
    return x.view(x.size(0), -1).sum(-1)


INLINED = {
    "two results": lambda x: scripted_standardized(x, x * 2),
    "choices and rounds": lambda x: with_choice(x, "tanh"),
    "choices and rounds, default given": lambda x: with_choice(x, "", 3.0),
    "sizes": by_size,
}


@pytest.mark.parametrize("name", sorted(INLINED))
@differential(hits=5, graphs=1)
def test_scripted_functions_inlined(name):
    return Program(lambda x: INLINED[name](x * 2), batches())


def helper(x):
    return x + 1 if torch.jit.is_scripting() else x - 1


def raising_helper(x):
    if x.dim() > 1:
        raise ValueError("dimensions")
    return x


def replaced_helper(x):
    return x + 1


is_scripted = torch.jit.is_scripting


@torch.jit.script
def calls_helper(x):
    return helper(x)


@torch.jit.script
def calls_replaced_helper(x):
    return replaced_helper(x)


@torch.jit.script
def asks_by_another_name(x):
    if is_scripted():
        return x + 1
    else:
        return x - 1


@torch.jit.script
def calls_raising_helper(x):
    return raising_helper(x)


@torch.jit.script
def with_int_default(x, y: float = 1):
    return x * y


@torch.jit.script
def power_of_ints(x, n: int):
    return x * n**2


@torch.jit.script
def power_of_constants(x):
    return x * 2**3


@torch.jit.script
def quotient_of_ints(x, n: int):
    return x * (n // -2) + n % -3 + n / 2


@torch.jit.script
def gives_list(x):
    return x.chunk(2)


@torch.jit.script
def gives_size(x):
    return x.shape


@torch.jit.script
def gives_pair(x):
    return x.max(0)


def caught(x):
    try:
        return calls_raising_helper(x)
    except ValueError:
        return x * 2
    except Exception:
        return x * 3


LEFT = {
    "callee that asks who runs it": calls_helper,
    "asks by another name": asks_by_another_name,
    "callee that raises": caught,
    "default of another class": lambda x: with_int_default((x * 4).int()),
    "power of ints": lambda x: power_of_ints((x * 4).int(), 3),
    "power of constants": lambda x: power_of_constants((x * 4).int()),
    "quotient of ints": lambda x: quotient_of_ints(x, 7),
    "list": gives_list,
    "size": gives_size,
    "pair": gives_pair,
}


@pytest.mark.parametrize("name", sorted(LEFT))
@differential(reasons=["unknown_callable"])
def test_scripted_functions_left(name):
    return Program(lambda x: LEFT[name](x), batches())


@differential(reasons=["unknown_callable"])
def test_callee_of_a_scripted_function_replaced():
    def replace():
        global replaced_helper
        replaced_helper = torch.neg

    calls = batches()
    return Program(lambda x: calls_replaced_helper(x), [*calls[:4], replace, *calls[4:]])


@differential(hits=5)
def test_defaults_of_a_scripted_function_replaced():
    inlined = with_choice._torchdynamo_inline
    inlined.__defaults__ = (2.0,)

    def replace():
        inlined.__defaults__ = (3.0,)

    calls = batches(16)
    return Program(lambda x: with_choice(x, "tanh"), [*calls[:8], replace, *calls[8:]])


@differential(reasons=["unknown_callable"])
def test_scripted_function_that_draws():
    return Program(lambda x: with_dropout(x * 2) + 1, batches())


# --- locals() ------------------------------------------------------------------------------------


def sum_of_locals(x):
    a = x * 2
    b = a + 1
    there = locals()
    return there["a"] + there["b"]


def returned_locals(x):
    b = x * 2
    if b is None:
        never = 1  # noqa: F841
    a = b + 1  # noqa: F841
    return locals()


def callee_of_locals(x, a, b=3):
    return x + a * b


def passed_locals(x, a=2):
    return callee_of_locals(**locals())


def formatted_locals(x):
    count = 3  # noqa: F841
    return x * 2, "%(count)d" % locals()


@pytest.mark.parametrize("step", [sum_of_locals, returned_locals, passed_locals])
@differential(hits=5, graphs=1)
def test_locals(step):
    return Program(step, batches())


@differential(hits=5, graphs=1)
def test_locals_of_a_closure():
    factor = 3

    def step(x):
        y = x * factor
        return dict(locals())

    return Program(step, batches())


# --- gradients that are scaled -------------------------------------------------------------------


def scaled_step(unscales, kind, **settings):
    model = nn.Linear(3, 2)
    optimizer = kind(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", **settings)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        scaler.scale(loss).backward()
        if unscales:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    def state():
        return scaler.state_dict()

    return step, [model, optimizer, scaler._growth_tracker], state


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam])
@pytest.mark.parametrize("unscales", [True, False])
@differential(hits=10, graphs=4)
def test_gradient_scaler(unscales, kind):
    step, watch, _ = scaled_step(unscales, kind, init_scale=8.0, growth_interval=5)
    return Program(step, batches(20), watch=watch)


@pytest.mark.parametrize("unscales", [True, False])
@differential(hits=10, graphs=5)
def test_gradient_scaler_that_skips_steps(unscales):
    step, watch, _ = scaled_step(unscales, torch.optim.SGD, init_scale=8.0, growth_interval=3)
    calls = [(torch.randn(4, 3) * (float("inf") if i in (9, 17) else 1),) for i in range(30)]
    return Program(step, calls, watch=watch)


# --- dropout of images in channels last ----------------------------------------------------------


def images(count=8):
    return [(torch.randn(2, 3, 8, 6).to(memory_format=torch.channels_last),) for _ in range(count)]


LAYERS = {
    "convolution": lambda: nn.Conv2d(3, 4, 3),
    "convolution of filters that lie so": lambda: nn.Conv2d(3, 4, 3).to(
        memory_format=torch.channels_last
    ),
    "batch norm": lambda: nn.BatchNorm2d(3),
    "batch norm in evaluation": lambda: nn.BatchNorm2d(3).eval(),
    "maxima": lambda: nn.MaxPool2d(2),
    "averages": lambda: nn.AvgPool2d(2),
    "adaptive averages": lambda: nn.AdaptiveAvgPool2d((2, 3)),
}


@pytest.mark.parametrize("name", sorted(LAYERS))
@differential(hits=5, graphs=1)
def test_dropout_of_channels_last(name):
    layer = LAYERS[name]()

    def step(x):
        return F.dropout(layer(x), 0.5, True).detach()

    return Program(step, images())


@differential(hits=5, graphs=1)
def test_training_with_dropout_of_channels_last():
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5), nn.Flatten(),
        nn.Linear(96, 2),
    ).to(memory_format=torch.channels_last)  # fmt: skip

    def step(x):
        model.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        return loss.detach()

    return Program(step, images(), watch=[model])


# --- membership ----------------------------------------------------------------------------------


@differential(hits=8)
def test_element_in_a_tensor():
    pad = 0

    def step(x):
        return x * 2 if pad in x else x * 3

    return Program(step, [(torch.arange(6) + i % 2,) for i in range(20)])


@differential(hits=8)
def test_element_not_in_a_tensor():
    def step(x, pad):
        return x * 2 if pad not in x else x * 3

    return Program(step, [(torch.arange(6), 3 + i % 5) for i in range(24)])


# --- numbers and sizes that change now and then --------------------------------------------------


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW])
@differential(hits=30, graphs=2)
def test_learning_rate_of_epochs(kind):
    model = nn.Linear(3, 2)
    optimizer = kind(model.parameters(), 0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.7)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    calls = []
    for _ in range(8):
        calls += [*batches(5), schedule.step]
    return Program(step, calls, watch=[model])


class Holder:
    mask = None


@pytest.mark.parametrize("lengths", [[5, 8, 3, 9, 12, 7], [4, 4, 4, 4, 6, 9]])
@differential(hits=24, graphs=3)
def test_mask_in_an_attribute_as_long_as_the_input(lengths):
    model = nn.Linear(3, 3)
    holder = Holder()

    def step(x):
        return (model(x).transpose(0, 1) @ (holder.mask @ x)).sum().detach()

    calls = []
    for i in range(36):
        n = lengths[i % len(lengths)]
        calls.append(lambda n=n: setattr(holder, "mask", torch.ones(n, n).triu(1)))
        calls.append((torch.randn(n, 3),))
    return Program(step, calls)
