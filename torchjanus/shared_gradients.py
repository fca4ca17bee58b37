"""Gradients that all ranks share, for programs that know nothing of processes.

Parameters are known once an optimizer has them. At the end of each `backward()` the gradients that it has reached are
averaged, so that the program sees means: it may clip them, or look at them. Before each step the ranks compare what
they have by then, and average what differs. So the parameters of all ranks stay equal, whatever becomes of gradients in
between.
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
    average,
    averaged_sparse,
    broadcast,
    fingerprint,
    fingerprints_differ,
    with_fingerprint,
)

# What a rank says of a gradient; and of a buffer, CHANGED or ABSENT. SPARSE is shifted by the number of dimensions that
# are sparse.
_ABSENT, _CHANGED, _DENSE, _SPARSE = 1, 2, 4, 8
_MOST_SPARSE = 4  # dimensions
_BITS = (_SPARSE << _MOST_SPARSE + 1) - 1


class _Version:
    """A tensor and the number of its writes, to tell later whether it is the same.

    Writes through `.data` or NumPy are not counted.
    """

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
        # Numbers are the same on all ranks: nothing is taken out when a module is gone. So a program that makes
        # modules with buffers in each step exchanges more and more numbers.
        self._places: list[tuple[weakref.ref[torch.nn.Module], str]] = []
        self._seen: dict[int, _Version] = {}
        self.of_other_kinds: set[str] = set()  # than on another rank
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
            _flag_of_buffer(buffer, is_written=module in written)
            for buffer, (module, _) in zip(found, self._places, strict=True)
        ]

    def _is_seen(self, number: int, buffer: torch.Tensor) -> bool:
        return number in self._seen and self._seen[number].is_of(buffer)

    def share(self, flags: Sequence[int]) -> None:
        """`flags`: what any rank says."""
        changed = [n for n, flag in enumerate(flags) if flag & _CHANGED and not flag & _ABSENT]
        found = {n: buffer for n in changed if (buffer := self._at(n)) is not None}
        others = {n for n in found if fingerprints_differ(flags[n])}
        broadcast(buffer for n, buffer in found.items() if n not in others)
        self.of_other_kinds |= {self._name(n) for n in others}
        self._seen |= {n: _Version(buffer) for n, buffer in found.items()}

    def _name(self, number: int) -> str:
        module, name = self._places[number]
        return f"{type(module()).__name__}.{name}"

    def __len__(self) -> int:
        return len(self._places)


class SharedGradients:
    """Hooks into optimizers and parameters, from its construction to the end of the process."""

    def __init__(self, after_first_backward: Callable[[], None]) -> None:
        self.backwards = self.steps = self.averaged_bytes = self.averaged_again = 0
        self._after_first_backward = after_first_backward
        self._parameters: list[weakref.ref[torch.Tensor]] = []  # in the order of all ranks
        self._numbers = WeakIdKeyDictionary()  # of parameters, in this list
        self._reached: dict[int, set[int]] = {}  # by the engine's number of each running backward()
        self._buffers = _Buffers()
        self._begun: weakref.WeakSet[Optimizer] = weakref.WeakSet()
        self._watch_optimizers()
        register_optimizer_step_pre_hook(self.before_step)

    def parameters(self) -> list[torch.Tensor | None]:
        """In the order of all ranks; None for one that is gone."""
        return [each() for each in self._parameters]

    @property
    def buffers_of_other_kinds(self) -> list[str]:
        """Names of those that have another shape or dtype than on another rank."""
        return sorted(self._buffers.of_other_kinds)

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
        flags = [_ABSENT if is_lazy(each) else 0 for each in parameters]
        kinds = [(self._numbers[each], _kind(each)) for each in parameters]
        found = agree(
            Place.parameters, [*flags, *self._buffers.flags()], zlib.crc32(repr(kinds).encode())
        )
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
        task = torch._C._current_graph_task_id()
        if task not in self._reached:  # one that a checkpoint starts within another has its own
            self._reached[task] = set()
            ended = functools.partial(self._backward_ended, task)
            torch.autograd.Variable._execution_engine.queue_callback(ended)
        self._reached[task].add(number)

    def _backward_ended(self, task: int) -> None:
        reached = self._reached.pop(task)
        gradients = [None if each is None else each.grad for each in self.parameters()]
        flags = [_layout(each) for each in gradients]
        for number in reached:
            if gradients[number] is not None:  # else a hook has used it, and taken it away
                flags[number] |= _CHANGED
        found = agree(Place.backward, flags)
        self._average({n: flag for n, flag in enumerate(found) if flag & _CHANGED})
        self.backwards += 1
        if self.backwards == 1:
            self._after_first_backward()

    def _average(self, flags: dict[int, int]) -> None:
        """Averages the gradients of the parameters with these numbers. One that is not there is zero."""
        with torch.no_grad():
            dense = []
            for number, flag in flags.items():
                parameter, dimensions = self._parameter(number), _sparse_dimensions(flag)
                if dimensions is None:
                    dense.append(_make_dense(parameter))
                else:
                    parameter.grad = averaged_sparse(_sparse_gradient(parameter, dimensions))
            self.averaged_bytes += average(dense)

    # --- step() -------------------------------------------------------------------------------------------

    def before_step(
        self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Hook of all optimizers. No graph has it."""
        parameters = [each for group in optimizer.param_groups for each in group["params"]]
        # The program may have written to them since it was made, or replaced them.
        if optimizer not in self._begun or any(each not in self._numbers for each in parameters):
            self._begun.add(optimizer)
            self._share_parameters(parameters)
        numbers = [self._numbers[each] for each in parameters]
        flags = [_flag_at_step(each.grad) for each in parameters]
        found = agree(
            Place.step, [*flags, *self._buffers.flags()], zlib.crc32(repr(numbers).encode())
        )
        self._average_what_differs(dict(zip(numbers, found, strict=False)))
        with torch.no_grad():
            self._buffers.share(found[len(numbers) :])
        self.steps += 1
        return _with_shared_loss(args, kwargs)

    def _average_what_differs(self, flags: dict[int, int]) -> None:
        """Some gradients were written since they were averaged: noise was added, or the program itself gave them."""
        changed = {n: flag for n, flag in flags.items() if _differs(flag)}
        if changed:
            self.averaged_again += 1
            self._average(changed)


def _kind(tensor: torch.Tensor) -> tuple[torch.dtype, torch.Size | None]:
    return tensor.dtype, None if is_lazy(tensor) else tensor.shape


def _flag_of_buffer(buffer: torch.Tensor | None, *, is_written: bool) -> int:
    """Other bytes than a rank has would end its process: so ranks tell which dtype and shape they have."""
    if buffer is None:
        return _ABSENT
    kind = zlib.crc32(repr(_kind(buffer)).encode())
    return with_fingerprint(_CHANGED if is_written else 0, kind)


def _layout(gradient: torch.Tensor | None) -> int:
    if gradient is None:
        return _ABSENT
    if gradient.is_sparse and gradient.sparse_dim() <= _MOST_SPARSE:
        return _SPARSE << gradient.sparse_dim()
    return _DENSE


def _flag_at_step(gradient: torch.Tensor | None) -> int:
    """With all its bits, as not all writes are counted: those through `.data` are not."""
    return with_fingerprint(_layout(gradient), fingerprint([] if gradient is None else [gradient]))


def _differs(flag: int) -> bool:
    """Whether ranks have said different things of a gradient."""
    return (flag & _BITS).bit_count() > 1 or fingerprints_differ(flag)


def _sparse_dimensions(flag: int) -> int | None:
    """In how many dimensions all gradients that are there are sparse; None: they have to be dense."""
    sparse = (flag & _BITS) // _SPARSE
    return None if flag & _DENSE or sparse.bit_count() != 1 else sparse.bit_length() - 1


def _make_dense(parameter: torch.Tensor) -> torch.Tensor:
    gradient = parameter.grad
    if gradient is None:
        parameter.grad = gradient = torch.zeros_like(parameter)
    elif gradient.layout != torch.strided:
        parameter.grad = gradient = gradient.to_dense()
    return gradient


def _sparse_gradient(parameter: torch.Tensor, dimensions: int) -> torch.Tensor:
    if parameter.grad is not None:
        return parameter.grad
    return torch.zeros_like(parameter).to_sparse(dimensions)


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
