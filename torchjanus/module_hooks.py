"""Full backward hooks of modules as programs, where torch's own code hooks a node of autograd's graph.

The front end inlines `watch_inputs` and `watch_outputs` in the place of the two methods of
torch.utils.hooks.BackwardHook. The identities through which inputs and outputs go are Functions here as there. What
torch's hook of the node does, the backward pass of these does itself: its frame is that hook's.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from torch.autograd import Function
from torch.utils.hooks import RemovableHandle

import torch


def _spread(places: Sequence[int], values: Sequence[Any], count: int) -> tuple[Any, ...]:
    """The values at their places among `count`, and None elsewhere."""
    spread = [None] * count
    for place, value in zip(places, values, strict=True):
        spread[place] = value
    return tuple(spread)


def _chosen(places: Sequence[int], values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple([values[place] for place in places])


class InputIdentity(Function):
    """In front of a module: calls its hooks as soon as the gradients of its inputs are there."""

    @staticmethod
    def forward(ctx: Any, hook: Any, *tensors: torch.Tensor) -> Any:
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*[tensor for tensor in tensors if not tensor.requires_grad])
        ctx.hook, ctx.tensors = hook, tensors
        return tensors

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> Any:
        hook = ctx.hook
        given = tuple(
            [
                torch.zeros_like(tensor) if gradient is None else gradient
                for tensor, gradient in zip(ctx.tensors, gradients, strict=True)
            ]
        )
        if hook.grad_outputs is None:  # the gradient did not come through the module's output
            return None, *given
        shown = _spread(hook.input_tensors_index, given, hook.n_inputs)
        for each in hook.user_hooks:
            replaced = each(hook.module, shown, hook.grad_outputs)
            if replaced is None:
                continue
            if len(replaced) != len(shown):
                raise RuntimeError(
                    "Backward hook returned an invalid number of grad_input, "
                    f"got {len(replaced)}, but expected {len(shown)}"
                )
            shown = replaced
        hook.grad_outputs = None
        return None, *_chosen(hook.input_tensors_index, shown)


class OutputIdentity(Function):
    """Behind a module: keeps the gradients of its outputs, and calls the hooks that come before its backward pass."""

    @staticmethod
    def forward(ctx: Any, hook: Any, *tensors: torch.Tensor) -> Any:
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*[tensor for tensor in tensors if not tensor.requires_grad])
        ctx.hook = hook
        return tensors

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> Any:
        hook = ctx.hook
        hook.grad_outputs = _spread(hook.output_tensors_index, gradients, hook.n_outputs)
        if hook.user_pre_hooks:
            count = len(hook.grad_outputs)
            for each in hook.user_pre_hooks:
                replaced = each(hook.module, hook.grad_outputs)
                if replaced is None:
                    continue
                if len(replaced) != count:
                    raise RuntimeError(
                        "Backward pre hook returned an invalid number of grad_output, "
                        f"got {len(replaced)}, but expected {count}"
                    )
                hook.grad_outputs = replaced
        passed_on = hook.grad_outputs
        if hook.input_tensors_index is None:  # nothing will ask for the gradients of inputs
            warnings.warn(
                "Full backward hook is firing when gradients are computed "
                "with respect to module outputs since no inputs require gradients. See "
                "https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
                "#torch.nn.Module.register_full_backward_hook "
                "for more details.",
                stacklevel=5,
            )
            of_inputs = _spread([], [], hook.n_inputs)
            for each in hook.user_hooks:
                replaced = each(hook.module, of_inputs, hook.grad_outputs)
                if replaced is not None and not (
                    isinstance(replaced, tuple) and all([one is None for one in replaced])
                ):
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires "
                        "gradient should always return None or None for all gradients."
                    )
            hook.grad_outputs = None
        return None, *_chosen(hook.output_tensors_index, passed_on)


# As autograd shows the nodes.
InputIdentity.__name__ = OutputIdentity.__name__ = "BackwardHookFunction"


def _through(identity: Any, hook: Any, values: Any) -> tuple[Any, list[int] | None]:
    """The values, tensors among them behind the identity, and the places of these; None: they need no gradient."""
    places = [place for place, value in enumerate(values) if isinstance(value, torch.Tensor)]
    requires_grad = False
    for place in places:
        requires_grad |= values[place].requires_grad
    if not (requires_grad and torch.is_grad_enabled()):
        return values, None
    RemovableHandle.next_id += 1  # torch's hook of the node has one
    tensors = identity.apply(hook, *_chosen(places, values))
    result = list(values)
    for place, tensor in zip(places, tensors, strict=True):
        result[place] = tensor
    return (tuple(result) if type(values) is tuple else type(values)(*result)), places


def watch_inputs(hook: Any, values: Any) -> Any:
    """BackwardHook.setup_input_hook"""
    result, places = _through(InputIdentity, hook, values)
    hook.n_inputs, hook.input_tensors_index = len(values), places
    return result


def watch_outputs(hook: Any, value: Any) -> Any:
    """BackwardHook.setup_output_hook"""
    values = value if isinstance(value, tuple) else (value,)
    result, places = _through(OutputIdentity, hook, values)
    hook.n_outputs, hook.output_tensors_index = len(values), places
    return result if isinstance(value, tuple) else result[0]
