"""torch's own test databases as outside oracles: OpInfo (operators), module_db, optim_db.

They lie in the installed torch; only the package `expecttest` that they import is missing and is
not needed.
"""

import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch


def _call(operator: Any, *arguments: Any, **keywords: Any) -> Any:
    return operator(*arguments, **keywords)


def _import_databases() -> tuple[Any, Any, Any]:
    stand_in = types.ModuleType("expecttest")
    stand_in.TestCase = __import__("unittest").TestCase  # type: ignore[attr-defined]
    sys.modules.setdefault("expecttest", stand_in)
    from torch.testing._internal import (
        common_methods_invocations,
        common_modules,
        common_optimizers,
    )

    # It would put a fixed seed around each operator that draws; what that does to the random stream
    # is to be compared.
    common_methods_invocations.wrapper_set_seed = _call
    return common_methods_invocations, common_modules, common_optimizers


@dataclass
class Case:
    """One call to check: `call(*arguments)`; tensors that require grad are among the arguments."""

    name: str
    index: int
    form: str  # "function", "method" or "in place"
    call: Any
    arguments: tuple[Any, dict[str, Any]]


# A method takes its arguments as the function does, but for their order: a few samples tell.
METHOD_SAMPLES = 3

# What they give is whatever lay in memory.
UNDEFINED_CONTENTS = {
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
}


def operators(dtype: torch.dtype = torch.float32) -> list[Any]:
    """All OpInfos that support the dtype on the CPU, by name."""
    methods, _, _ = _import_databases()
    found = [op for op in methods.op_db if dtype in op.supported_dtypes("cpu")]
    return sorted((op for op in found if op.name not in UNDEFINED_CONTENTS), key=full_name)


def full_name(op: Any) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def operator_cases(
    op: Any, limit: int | None = None, dtype: torch.dtype = torch.float32
) -> Iterator[Case]:
    """The samples of an operator, as function and (where they exist) as in-place method and, some, as method."""
    gradient = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    samples = op.sample_inputs("cpu", dtype, requires_grad=gradient)
    for index, sample in enumerate(samples):
        if limit is not None and index >= limit:
            return
        arguments = ((sample.input, *sample.args), dict(sample.kwargs))
        yield Case(full_name(op), index, "function", op.op, arguments)
        if op.method_variant is not None and index < METHOD_SAMPLES:
            yield Case(full_name(op), index, "method", op.method_variant, arguments)
        if op.inplace_variant is not None and not sample.broadcasts_input:
            yield Case(full_name(op), index, "in place", op.inplace_variant, arguments)


def module_cases(
    limit: int | None = None, dtype: torch.dtype = torch.float32
) -> Iterator[tuple[str, int, Any, Any]]:
    """(name, sample number, function that makes the module, forward arguments)"""
    _, modules, _ = _import_databases()
    for info in modules.module_db:
        if dtype not in info.supported_dtypes("cpu"):
            continue
        inputs = info.module_inputs_func(
            info, device="cpu", dtype=dtype, requires_grad=True, training=True
        )
        for index, sample in enumerate(inputs):
            if limit is not None and index >= limit:
                break
            if sample.forward_input is None:
                continue

            def make(info: Any = info, sample: Any = sample) -> torch.nn.Module:
                constructor = sample.constructor_input
                module = info.module_cls(*constructor.args, **constructor.kwargs)
                return module.to("cpu", dtype)

            forward = sample.forward_input
            yield info.name, index, make, (forward.args, dict(forward.kwargs))


def optimizer_cases() -> Iterator[tuple[str, int, Any, dict[str, Any]]]:
    """(name, configuration number, optimizer class, keyword arguments)"""
    _, _, optimizers = _import_databases()
    for info in optimizers.optim_db:
        for index, sample in enumerate(info.optim_inputs_func(device="cpu")):
            yield info.name, index, info.optim_cls, dict(sample.kwargs)
