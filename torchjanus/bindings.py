"""What torch's bindings, the callables written in C, take."""

from collections.abc import Callable
from typing import Any

import torch


class StandIn(torch.Tensor):
    """A tensor for which a binding reads its arguments, and then computes nothing."""

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, arguments: Any = (), keywords: Any = None
    ) -> None:
        """Comes in place of the operator once the arguments are accepted."""


def is_watched() -> bool:
    """Whether a mode would see what is done here, or bindings would not heed `__torch_function__`."""
    modes = torch._C._len_torch_function_stack() + torch._C._len_torch_dispatch_stack()
    return modes > 0 or not torch._C._is_torch_function_enabled()


def stand_in(dtype: torch.dtype, rank: int, requires_grad: bool) -> torch.Tensor:
    """One of such a tensor. Of a tensor without dimensions bindings may take the element."""
    if is_watched():
        raise RuntimeError("bindings: a mode would see the tensor")
    with torch.inference_mode(False):
        data = torch.empty([1] * rank, dtype=dtype, device="meta")
        return torch.Tensor._make_subclass(StandIn, data, requires_grad)


def refuses(
    binding: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> bool:
    """Whether it raises TypeError for the arguments, among which is a stand-in."""
    if is_watched():
        return False
    try:
        binding(*arguments, **keywords)
    except TypeError:
        return True
    except Exception:
        return False
    return False


def misnames(operator: Any, keywords: tuple[str, ...]) -> bool:
    """Whether no overload of an operator of `torch.ops` has parameters of all these names."""
    packet = isinstance(operator, torch._ops.OpOverloadPacket)
    overloads = [getattr(operator, name) for name in operator.overloads()] if packet else [operator]
    known = [{argument.name for argument in each._schema.arguments} for each in overloads]
    return not any(names.issuperset(keywords) for names in known)
