"""Gradients that all ranks share, for programs that know nothing of processes.

Parameters are known once an optimizer has them. At the end of each `backward()` the gradients that it has reached are
averaged, so that the program sees means: it may clip them, or look at them. Before each step it is checked that they
are still what was averaged. What the program has changed since then is compared between the ranks, and averaged
if it differs. So the parameters of all ranks stay equal, whatever becomes of gradients in between.
"""

import functools
import weakref
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from torch.nn.modules.module import register_module_buffer_registration_hook
from torch.nn.parameter import is_lazy
from torch.optim.optimizer import Optimizer, register_optimizer_step_pre_hook
from torch.utils.weak import WeakIdKeyDictionary

import torch

from .agreed_collectives import (
    Place,
    agree,
    all_have,
    average,
    averaged_sparse,
    broadcast,
    fingerprint,
)

# What a rank says of a parameter's gradient; and of a buffer, CHANGED or ABSENT.
_ABSENT, _KNOWN, _CHANGED, _SPARSE = 1, 2, 4, 8


class _Version:
    """A tensor and the number of its writes, to tell later whether it is the same."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = weakref.ref(tensor)
        self.writes = tensor._version

    def is_of(self, tensor: torch.Tensor) -> bool:
        return self.tensor() is tensor and self.writes == tensor._version


class _Buffers:
    """Buffers of modules. All ranks get those of rank 0, at first and when one of the module's was written.

    Batch norm writes to its running statistics without counting it, but it counts its batches.
    """

    def __init__(self) -> None:
        # Numbers are the same on all ranks: nothing is taken out when a module is gone.
        self._places: list[tuple[weakref.ref[torch.nn.Module], str]] = []
        self._seen: dict[int, _Version] = {}
        register_module_buffer_registration_hook(self._registered)

    def _registered(self, module: torch.nn.Module, name: str, _: Any) -> None:
        self._places.append((weakref.ref(module), name))

    def _at(self, number: int) -> torch.Tensor | None:
        module, name = self._places[number]
        buffer: torch.Tensor | None = getattr(module(), "_buffers", {}).get(name)
        if buffer is None or is_lazy(buffer) or buffer.is_inference():
            return None
        return buffer if buffer.layout == torch.strided else None

    def flags(self) -> list[int]:
        found = [self._at(number) for number in range(len(self._places))]
        written = {
            self._places[number][0]
            for number, buffer in enumerate(found)
            if buffer is not None and not self._is_seen(number, buffer)
        }
        return [
            _ABSENT if buffer is None else _CHANGED if module in written else _KNOWN
            for buffer, (module, _) in zip(found, self._places, strict=True)
        ]

    def _is_seen(self, number: int, buffer: torch.Tensor) -> bool:
        return number in self._seen and self._seen[number].is_of(buffer)

    def share(self, flags: Sequence[int]) -> None:
        """`flags`: what any rank says."""
        changed = [n for n, flag in enumerate(flags) if flag & _CHANGED and not flag & _ABSENT]
        found = [buffer for n in changed if (buffer := self._at(n)) is not None]
        broadcast(found)
        self._seen |= {n: _Version(each) for n, each in zip(changed, found, strict=True)}

    def __len__(self) -> int:
        return len(self._places)


class SharedGradients:
    """Hooks into optimizers and parameters, from its construction to the end of the process."""

    def __init__(self, after_first_backward: Callable[[], None]) -> None:
        self.backwards = self.steps = self.averaged_bytes = self.averaged_again = 0
        self._after_first_backward = after_first_backward
        self._parameters: list[weakref.ref[torch.Tensor]] = []  # in the order of all ranks
        self._numbers = WeakIdKeyDictionary()  # of parameters, in this list
        self._averaged: dict[int, _Version] = {}
        self._reached: set[int] = set()  # by the backward() that runs
        self._task = -1  # the autograd engine's number of it
        self._buffers = _Buffers()
        self._begun: weakref.WeakSet[Optimizer] = weakref.WeakSet()
        self._watch_optimizers()
        register_optimizer_step_pre_hook(self.before_step)

    def parameters(self) -> list[torch.Tensor | None]:
        """In the order of all ranks; None for one that is gone."""
        return [each() for each in self._parameters]

    @property
    def buffer_count(self) -> int:
        return len(self._buffers)

    # --- parameters ---------------------------------------------------------------------------------------

    def _watch_optimizers(self) -> None:
        """Constructors of optimizers add all their parameters by this method."""
        add = Optimizer.add_param_group

        @functools.wraps(add)
        def add_and_share(optimizer: Optimizer, param_group: dict[str, Any]) -> None:
            add(optimizer, param_group)
            self._share_parameters(optimizer.param_groups[-1]["params"])

        Optimizer.add_param_group = add_and_share  # type: ignore[method-assign, assignment]

    def _share_parameters(self, parameters: Iterable[torch.Tensor]) -> None:
        """Gives all ranks the values of rank 0, and the buffers that are new."""
        parameters = [*parameters]
        for each in parameters:
            if each not in self._numbers:
                self._know(each)
        if not all_have(Place.parameters, zlib.crc32(_kinds(parameters).encode())):
            raise RuntimeError(
                "torchjanus run --data-parallel: an optimizer has other parameters than on another rank"
            )
        flags = [_ABSENT if is_lazy(each) else _KNOWN for each in parameters]
        found = agree(Place.parameters, [*flags, *self._buffers.flags()])
        with torch.no_grad():
            broadcast(
                each for each, flag in zip(parameters, found, strict=False) if not flag & _ABSENT
            )
            self._buffers.share(found[len(parameters) :])

    def _know(self, parameter: torch.Tensor) -> None:
        number = len(self._parameters)
        self._parameters.append(weakref.ref(parameter))
        self._numbers[parameter] = number
        hook = functools.partial(self.after_accumulation, number)
        required = parameter.requires_grad
        with (
            torch._C.DisableTorchFunctionSubclass()
        ):  # one without a shape yet refuses all functions
            parameter.requires_grad_(
                True
            )  # torch asks for it; the hook of a frozen one is not called
            parameter.register_post_accumulate_grad_hook(hook)  # type: ignore[no-untyped-call]
            parameter.requires_grad_(required)

    def _parameter(self, number: int) -> torch.Tensor:
        parameter = self._parameters[number]()
        if parameter is None:
            raise RuntimeError(
                "torchjanus run --data-parallel: a parameter that another rank trains is gone here"
            )
        return parameter

    # --- backward() ---------------------------------------------------------------------------------------

    def after_accumulation(self, number: int, _: torch.Tensor) -> None:
        """Hook: backward() has added to a parameter's gradient. No graph has it (collectives.cpp)."""
        self._reached.add(number)
        task = torch._C._current_graph_task_id()
        if task != self._task:
            self._task = task
            torch.autograd.Variable._execution_engine.queue_callback(self._backward_ended)

    def _backward_ended(self) -> None:
        flags = [
            self._flag_of_reached(n) if n in self._reached else 0
            for n in range(len(self._parameters))
        ]
        self._reached.clear()
        self._task = -1
        found = agree(Place.backward, flags)
        self._average({n: flag for n, flag in enumerate(found) if flag})
        self.backwards += 1
        if self.backwards == 1:
            self._after_first_backward()

    def _flag_of_reached(self, number: int) -> int:
        gradient = self._parameter(number).grad
        if gradient is None:  # a hook has used it, and taken it away
            return 0
        return _CHANGED | (_SPARSE if gradient.is_sparse else 0)

    def _average(self, flags: dict[int, int]) -> None:
        """Averages the gradients of the parameters with these numbers. One that is not there is zero."""
        with torch.no_grad():
            dense = []
            for number, flag in flags.items():
                parameter = self._parameter(number)
                if flag & _SPARSE:
                    parameter.grad = averaged_sparse(_sparse_gradient(parameter))
                    continue
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                dense.append(parameter.grad)
            self.averaged_bytes += average(dense)
            self._note_averaged(flags)

    def _note_averaged(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            gradient = self._parameter(number).grad
            if gradient is not None:
                self._averaged[number] = _Version(gradient)

    # --- step() -------------------------------------------------------------------------------------------

    def before_step(
        self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Hook of all optimizers. No graph has it."""
        parameters = [each for group in optimizer.param_groups for each in group["params"]]
        if optimizer not in self._begun:  # the program may have written to them since it was made
            self._begun.add(optimizer)
            self._share_parameters(parameters)
        numbers = [self._numbers[each] for each in parameters]
        flags = [self._flag_at_step(n) for n in numbers]
        found = agree(Place.step, [*flags, *self._buffers.flags()])
        self._average_if_changed(dict(zip(numbers, found, strict=False)))
        with torch.no_grad():
            self._buffers.share(found[len(numbers) :])
        self.steps += 1
        return _with_shared_loss(args, kwargs)

    def _flag_at_step(self, number: int) -> int:
        gradient, averaged = self._parameter(number).grad, self._averaged.get(number)
        if gradient is None:
            return _ABSENT
        sparse = _SPARSE if gradient.is_sparse else 0
        is_known = averaged is not None and averaged.is_of(gradient)
        return sparse | (_KNOWN if is_known else _CHANGED)

    def _average_if_changed(self, flags: dict[int, int]) -> None:
        """Some gradients were written since they were averaged: clipped, or given by the program itself."""
        changed = {
            n: flag
            for n, flag in flags.items()
            if flag & _CHANGED or (flag & _ABSENT and flag & _KNOWN)
        }
        if not changed:
            return
        anyhow = any(flag & (_ABSENT | _SPARSE) for flag in changed.values())
        if not anyhow:
            gradients = [self._parameter(n).grad for n in changed]
            if all_have(Place.step, fingerprint(each for each in gradients if each is not None)):
                return self._note_averaged(changed)
        self.averaged_again += 1
        self._average(changed)


def _kinds(parameters: Iterable[torch.Tensor]) -> str:
    return repr([(each.dtype, None if is_lazy(each) else each.shape) for each in parameters])


def _sparse_gradient(parameter: torch.Tensor) -> torch.Tensor:
    gradient = parameter.grad
    if gradient is None:
        return torch.zeros_like(parameter).to_sparse()
    return gradient if gradient.is_sparse else gradient.to_sparse()


def _with_shared_loss(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Arguments of step() whose closure gives the mean loss: optimizers decide by it (LBFGS)."""
    closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
    if not callable(closure):
        return None

    def mean_loss() -> Any:
        loss = closure()
        if not isinstance(loss, (float, torch.Tensor)):
            return loss
        agree(Place.loss)
        mean = torch.as_tensor(loss).detach().clone()
        with torch.no_grad():
            average([mean])
        return mean if isinstance(loss, torch.Tensor) else mean.item()

    if "closure" in kwargs:
        return args, kwargs | {"closure": mean_loss}
    return (args[0], mean_loss, *args[2:]), kwargs
