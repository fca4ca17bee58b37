"""Attention with dropout as a program: what torch.nn.functional.scaled_dot_product_attention computes then.

ATen has one operator without dropout, which never writes the scores. With dropout it computes step by step, and so
does this program, which the front end inlines: scores, mask, softmax and dropout become kernels with their gradients.

Source: the documentation of torch.nn.functional.scaled_dot_product_attention.
"""

from __future__ import annotations

from torch.nn.functional import dropout

import torch
from torch import Tensor


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    drop: float,
    is_causal: bool,
    factor: float,
) -> Tensor:
    """The values, weighted by how well their keys fit each query.

    Args:
        query: (…, queries, features), float32 or float64, as `key` and `value`.
        key: (…, keys, features).
        value: (…, keys, features of values).
        mask: What is added to the scores, or where a key may be looked at; or None.
        drop: The share of the weights that is dropped, above 0.
        is_causal: Whether query i sees the keys up to i only. Then there is no mask.
        factor: Both queries and keys are multiplied by it, so that no product overflows.
    """
    scores = torch.matmul(query * factor, key.transpose(-2, -1) * factor)
    if is_causal:
        mask = torch.ones(query.size(-2), key.size(-2), dtype=torch.bool).tril()
    if mask is not None:
        if mask.dtype is torch.bool:
            mask = torch.where(mask, 0.0, float("-inf")).to(query.dtype)
        scores.add_(mask)  # as ATen does: a mask that would enlarge them is refused
    # A query that sees no key has weights and gradients of zero, not NaN.
    is_blind = (scores == float("-inf")).all(-1, keepdim=True)
    weights = torch.softmax(torch.where(is_blind, 0.0, scores), -1)
    # ATen's weights lie in order, which decides what is drawn for which. Of sizes that vary the front end can't tell.
    weights = torch.where(is_blind, 0.0, weights).contiguous()
    return torch.matmul(dropout(weights, drop, training=True), value)
