"""Ranks that do not all do the same: one has fewer batches, or normalises over what all ranks have."""

from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from rank_programs import _brief, differs_between_ranks, plain_step
from torch.nn.parallel import DistributedDataParallel

import torch
import torchjanus
from torch import distributed, nn

STEPS, MORE = 8, 5  # a rank takes as many steps, and so many more than the rank before it


def net(norm: type[nn.Module]) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 7), norm(7), nn.Tanh(), nn.Linear(7, 3))


def step_of(module: nn.Module) -> Callable[..., torch.Tensor]:
    """Without momentum, which join() leaves different."""
    return plain_step(module, torch.optim.SGD(module.parameters(), lr=0.1), F.mse_loss)


def batches(count: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    torch.manual_seed(1 + distributed.get_rank())
    return [(torch.randn(4, 5), torch.randn(4, 3)) for _ in range(count)]


def expect_same(found: list[torch.Tensor], expected: list[torch.Tensor]) -> None:
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


def told(asked: Any, wrapper: nn.Module) -> dict[str, Any]:
    """What became of what was converted and of the module within, and whether parameters differ between ranks."""
    parameters = nn.utils.parameters_to_vector(wrapper.parameters()).detach()
    return {
        "asked": _brief(torchjanus.stats(asked)),
        "module": _brief(torchjanus.stats(wrapper.module)),
        "differs": differs_between_ranks(parameters),
    }


def joined(norm: str) -> dict[str, Any]:
    """Within join() the ranks take other numbers of steps, behind it the same one."""

    def trained(convert: Callable) -> tuple[list[torch.Tensor], nn.Module, Any]:
        module = DistributedDataParallel(net(getattr(nn, norm)))
        step = convert(step_of(module))
        states = []
        with module.join():
            for batch in batches(STEPS + MORE * distributed.get_rank()):
                states.append(step(*batch))
        states += [each.detach().clone() for each in module.parameters()]
        for batch in batches(STEPS):
            states.append(step(*batch))
        states += [each.detach() for each in (*module.parameters(), *module.buffers())]
        return states, module, step

    expected, _, _ = trained(lambda step: step)
    found, module, step = trained(torchjanus.function)
    expect_same(found, expected)
    return told(step, module)


def normalised(train: bool) -> dict[str, Any]:
    """`train`: statistics are to be those of all ranks, which torch does on accelerators only. Else they are kept.
    DistributedDataParallel takes no such module on the CPU."""
    taken = []
    for convert in (lambda step: step, torchjanus.function):
        plain = net(nn.BatchNorm1d)
        module = nn.SyncBatchNorm.convert_sync_batchnorm(plain).train(train)
        step = convert(step_of(module))
        seen: list[Any] = []
        for batch in batches(STEPS):
            try:
                seen.append(step(*batch))
            except ValueError as error:
                seen.append(f"{type(error).__name__}: {error}")
        taken.append(seen + [each.detach() for each in (*module.parameters(), *module.buffers())])
    for one, other in zip(*taken, strict=True):
        if isinstance(one, str):
            assert one == other, (one, other)
        else:
            expect_same([other], [one])
    errors = [each for each in taken[1] if isinstance(each, str)]
    return _brief(torchjanus.stats(step)) | {"errors": errors}


def backward_outside(norm: str) -> dict[str, Any]:
    """`torchjanus.function` is given the wrapper: what it gives is differentiated by the program."""
    taken = []
    for convert in (lambda module: module, torchjanus.function):
        module = DistributedDataParallel(net(getattr(nn, norm)))
        called = convert(module)
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
        states = []
        for number, (x, y) in enumerate(batches(2 * STEPS)):
            x.requires_grad_(number % 3 == 0)
            optimizer.zero_grad()
            loss = F.mse_loss(called(x), y)
            loss.backward()
            optimizer.step()
            states += [loss.detach()] + ([x.grad] if x.requires_grad else [])
        with torch.no_grad():
            states += [called(x).detach() for x, _ in batches(STEPS)]
        states += [each.detach() for each in (*module.parameters(), *module.buffers())]
        taken.append(states)
    expect_same(taken[1], taken[0])
    return told(called, module)
