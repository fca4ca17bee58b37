"""What changes how later operators compute comes behind the pending ones: they were called before."""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import torch

from ._core import run_pending

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

#: Functions of torch._C that change settings of the process which operators read when they run.
SETTINGS = (
    "_set_cpu_allow_fp16_reduced_precision_reduction",
    "_set_default_dtype",
    "_set_default_tensor_type",
    "_set_deterministic_algorithms",
    "_set_float32_matmul_precision",
    "_set_fp32_precision_setter",
    "_set_mkldnn_deterministic",
    "_set_mkldnn_enabled",
    "_set_nnpack_enabled",
    "_set_onednn_allow_tf32",
    "_set_sdp_use_flash",
    "_set_sdp_use_math",
    "set_flush_denormal",
    "set_num_threads",
)


def behind_pending(change: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """`change`, behind all operators that were called before, of any thread: they run as things were."""

    @functools.wraps(change)
    def change_behind_pending(*arguments: Arguments.args, **keyed: Arguments.kwargs) -> Result:
        run_pending()
        return change(*arguments, **keyed)

    return change_behind_pending


for name in SETTINGS:
    for module in (torch._C, torch):
        if hasattr(module, name):
            setattr(module, name, behind_pending(getattr(module, name)))
