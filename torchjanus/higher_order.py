"""Operators of higher order, which torch dispatches in Python, pass by the keys of the interception.

They run what they are given, and the operators in that are intercepted. Other operators find the fallbacks of
these keys in C++; torch has none for operators of higher order, and raises NotImplementedError.
"""

import torch._ops

from ._core import interception_keys

for name in interception_keys():
    key = torch._C._dispatch_key_parse(name)
    torch._ops._HIGHER_ORDER_OP_DEFAULT_FALLTHROUGH_DISPATCH_KEYS.append(key)
    for operator in torch._ops._higher_order_ops.values():
        operator.fallthrough(key)  # type: ignore[no-untyped-call]
