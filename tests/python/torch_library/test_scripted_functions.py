"""Functions of TorchScript: they are inlined, or called as they are where their text means something else."""

import pytest
from differential import Program, differential
from torch.nn import functional as F

import torch
from torch import nn


def batches(count=8):
    return [(torch.randn(4, 3),) for _ in range(count)]


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
    "choices and iterations": lambda x: with_choice(x, "tanh"),
    "choices and iterations, default given": lambda x: with_choice(x, "", 3.0),
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
