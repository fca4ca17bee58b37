"""The compiler's meta-operators, for operators that torch lacks: `reindex` and `reindex_reduce`.

Both are written with a function from the indices of a place to the indices of another:

    transposed = meta.reindex(x, (m, n), lambda i, j: (j, i))              # y[i, j] = x[j, i]
    windows = meta.reindex(x, (n - 2, 3), lambda i, k: (i + k,))           # y[i, k] = x[i + k]
    own = meta.reindex(x, (n,), lambda i: (i, meta.at(classes, i)))        # y[i] = x[i, classes[i]]
    totals = meta.reindex_reduce(x, (n,), lambda i, j: (i,))               # y[i] += x[i, j]

Together with arithmetic they say what most operators compute, a convolution for instance:

    def convolution(x, w, border=1):
        (n, c, h, v), (o, _, p, q) = x.shape, w.shape
        space = (n, o, h + 2 * border - p + 1, v + 2 * border - q + 1, c, p, q)
        image = meta.reindex(
            x, space, lambda n, o, i, j, c, p, q: (n, c, i + p - border, j + q - border)
        )
        weight = meta.reindex(w, space, lambda n, o, i, j, c, p, q: (o, c, p, q))
        return (image * weight).sum((4, 5, 6))

Outside of graphs that computes what it says. In the graph of a converted function, indices that each
follow one other are views, a convolution is run by the convolution library, and `reindex_reduce` over
whole dimensions is torch's reduction, computed with what is around it. Both have gradients of any order.

Source: the reindex and reindex-reduce operators of Hu et al., "Jittor: a novel deep learning framework with
meta-operators and unified graph execution", Science China Information Sciences 63, 2020."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

__all__ = ["at", "reindex", "reindex_reduce", "stop_fuse", "stop_grad"]

Sizes = Sequence[int]
Number = int | float | bool


def no_integer(what: Any) -> TypeError:
    return TypeError(
        f"torchjanus.meta: an index is made of indices and ints, not of a {type(what).__name__}"
    )


class Index:
    """An index of a place, or a value computed from indices. Sums, and products with numbers, are kept
    as factors of the place's indices and an offset; any other value as a number for each place.

    It stands for all places at once. A condition on it would be one answer for all of them, so it
    raises."""

    def __init__(
        self, shape: Sizes, factors: list[int], offset: int, values: torch.Tensor | None = None
    ) -> None:
        self.shape = shape
        self.factors = factors
        self.offset = offset
        self.values = values

    def tensor(self) -> torch.Tensor:
        """A number for each place, with size 1 along dimensions that it does not depend on."""
        if self.values is not None:
            return self.values
        result = torch.full([1] * len(self.shape), self.offset, dtype=torch.int64)
        for dim, factor in enumerate(self.factors):
            if factor != 0:
                sizes = [1] * len(self.shape)
                sizes[dim] = self.shape[dim]
                result = result + factor * torch.arange(self.shape[dim]).view(sizes)
        return result

    def only_dim(self) -> int | None:
        """The only dimension that the index depends on, linearly; None if there is none."""
        dims = [dim for dim, factor in enumerate(self.factors) if factor != 0]
        return dims[0] if len(dims) == 1 else None

    def computed(self, values: torch.Tensor) -> Index:
        return Index(self.shape, [], 0, values)

    def __add__(self, other: Index | int) -> Index:
        if isinstance(other, int):
            if self.values is not None:
                return self.computed(self.values + other)
            return Index(self.shape, self.factors, self.offset + other)
        if not isinstance(other, Index):
            raise no_integer(other)
        if self.values is not None or other.values is not None:
            return self.computed(self.tensor() + other.tensor())
        factors = [a + b for a, b in zip(self.factors, other.factors, strict=True)]
        return Index(self.shape, factors, self.offset + other.offset)

    def __radd__(self, other: int) -> Index:
        return self + other

    def __mul__(self, other: Index | int) -> Index:
        if isinstance(other, Index):
            return self.computed(self.tensor() * other.tensor())
        if not isinstance(other, int):
            raise no_integer(other)
        if self.values is not None:
            return self.computed(self.values * other)
        return Index(self.shape, [a * other for a in self.factors], self.offset * other)

    def __rmul__(self, other: int) -> Index:
        return self * other

    def __neg__(self) -> Index:
        return self * -1

    def __sub__(self, other: Index | int) -> Index:
        return self + -as_operand(other)

    def __rsub__(self, other: int) -> Index:
        return self * -1 + other

    def __floordiv__(self, other: Index | int) -> Index:
        return self.computed(self.tensor() // values_of(other))

    def __rfloordiv__(self, other: int) -> Index:
        return self.computed(values_of(other) // self.tensor())

    def __mod__(self, other: Index | int) -> Index:
        return self.computed(self.tensor() % values_of(other))

    def __rmod__(self, other: int) -> Index:
        return self.computed(values_of(other) % self.tensor())

    def __abs__(self) -> Index:
        return self.computed(self.tensor().abs())

    def __bool__(self) -> bool:
        raise TypeError(
            "torchjanus.meta: an index stands for all places at once and can decide nothing: take "
            "what differs from place to place from a tensor of integers (torchjanus.meta.at), or "
            "choose among results (torch.where)"
        )

    def __eq__(self, other: object) -> bool:
        return bool(self)

    def __lt__(self, other: Index | int) -> bool:
        return bool(self)

    __ne__ = __eq__
    __le__ = __gt__ = __ge__ = __lt__
    __hash__ = object.__hash__


def as_operand(operand: Index | int) -> Index | int:
    if not isinstance(operand, (Index, int)):
        raise no_integer(operand)
    return operand


def values_of(operand: Index | int) -> torch.Tensor | int:
    operand = as_operand(operand)
    return operand.tensor() if isinstance(operand, Index) else operand


Indices = Callable[..., Sequence[Index | int]]


def at(tensor: torch.Tensor, *indices: Index | int) -> Index:
    """The element of a tensor of integers at indices of a place, as an index.

    Args:
        tensor: Of integers or booleans, of any shape.
        indices: As many as the tensor has dimensions; at least one depends on the place. They must lie within it.

    Returns:
        An index, to be given back by the function of `reindex` or `reindex_reduce`, or computed with.

    Raises:
        TypeError: The tensor is not of integers, or an index is neither an int nor an index.
        ValueError: Another number of indices, or none of them depends on the place.
        IndexError: An element outside of the tensor.
    """
    if tensor.is_floating_point() or tensor.is_complex():
        raise TypeError(
            f"torchjanus.meta.at: a tensor of {tensor.dtype} has no indices; convert it to integers"
        )
    if len(indices) != tensor.dim():
        raise ValueError(
            f"torchjanus.meta.at: {len(indices)} indices of a tensor that has {tensor.dim()}"
        )
    known = [index for index in indices if isinstance(index, Index)]
    if not known:
        raise ValueError("torchjanus.meta.at: none of the indices depends on the place")
    place = tuple(values_of(index) for index in indices)
    return known[0].computed(tensor[place].to(torch.int64))


def reindex(x: torch.Tensor, shape: Sizes, indices: Indices, fill: Number = 0) -> torch.Tensor:
    """y of that shape with `y[i, j, ...] = x[indices(i, j, ...)]`, and `fill` where that is outside of x.

    Args:
        x: A tensor of any shape and dtype.
        shape: The result's shape.
        indices: A function that gets the indices of a place of y and gives a tuple of those of x: ints, the indices
            it got, their sums, differences, products, `//`, `%`, `abs`, and elements of tensors of integers (`at`).
        fill: What stands where the indices are outside of x.

    Returns:
        A tensor of that shape and of x's dtype, with gradients of any order.

    Raises:
        TypeError: The function gives no tuple, or other things than indices, or decides something by one.
        ValueError: It gives another number of indices than x has dimensions.
    """
    shape = list(shape)
    mapped = indices_at(shape, indices, x.dim())
    factors, offset = linear(mapped)
    if factors is None:
        return gathered(x, shape, [index.tensor() for index in mapped], fill)
    result: torch.Tensor = torch.ops.torchjanus_meta.reindex(x, shape, factors, offset, fill)
    return result


def reindex_reduce(
    x: torch.Tensor, shape: Sizes, indices: Indices, reduce: str = "sum"
) -> torch.Tensor:
    """y of that shape with `y[indices(i, j, ...)] = reduce of all such x[i, j, ...]`.

    Args:
        x: A tensor of any shape, and of any dtype that has the reduction.
        shape: The result's shape.
        indices: A function that gets the indices of a place of x and gives a tuple of those of y, made as for
            `reindex`. What is put outside of y is left out.
        reduce: One of

            - `sum`, `mean`, `prod`, `amax`, `amin`: of x's dtype, but for the mean of integers. Half precision is
              added up and multiplied in float32.
            - `any`, `all`: booleans, whether some element or each is not 0.
            - `argmax`, `argmin`: integers, where in x the extremum stands, the first of equal ones; NaN is one
              wherever it is. Positions count along those dimensions of x that no index of y follows alone, as in a
              tensor that has only these, laid flat: j for `lambda i, j: (i,)`, as `x.argmax(1)` gives it, and
              i * n + k for `lambda i, k: (i + k,)` with k below n.

    Returns:
        A tensor of that shape. Where nothing is put, y is what changes nothing: 0, 1, an infinity, False, True; of a
        mean it is not a number, and a position is -1. Sums, means, products, amax and amin have gradients.

    Raises:
        TypeError: As for `reindex`; or an extremum of complex numbers.
        ValueError: Another number of indices than y has dimensions, or an unknown reduction.
    """
    if reduce not in REDUCTIONS:
        raise ValueError(
            f"torchjanus.meta.reindex_reduce: no reduction {reduce!r}, but {', '.join(REDUCTIONS)}"
        )
    if reduce == "mean":
        total = reindex_reduce(x, shape, indices)
        return total / reindex_reduce(torch.ones_like(x), shape, indices)
    shape = list(shape)
    mapped = indices_at(list(x.shape), indices, len(shape))
    factors, offset = linear(mapped)
    if factors is None:
        return reduced(x, shape, mapped, reduce)
    result: torch.Tensor = torch.ops.torchjanus_meta.reindex_reduce(
        x, shape, factors, offset, reduce
    )
    return result


REDUCTIONS = ("sum", "mean", "prod", "amax", "amin", "any", "all", "argmax", "argmin")


def indices_at(shape: list[int], indices: Indices, count: int) -> list[Index]:
    """The indices that the function returns at a place of a tensor of this shape."""
    rank = len(shape)
    place = [Index(shape, [int(i == j) for j in range(rank)], 0) for i in range(rank)]
    given = indices(*place)
    if isinstance(given, (Index, int)):
        raise TypeError("torchjanus.meta: the function gives a tuple of indices: (i,), not i")
    if len(given) != count:
        raise ValueError(f"torchjanus.meta: {len(given)} indices of a tensor that has {count}")
    given = [as_operand(i) for i in given]
    return [i if isinstance(i, Index) else Index(shape, [0] * rank, i) for i in given]


def linear(indices: list[Index]) -> tuple[list[int] | None, list[int]]:
    """The factors of all indices in a row, and their offsets; None if an index is not affine."""
    factors: list[int] = []
    for index in indices:
        if index.values is not None:
            return None, []
        factors += index.factors
    return factors, [index.offset for index in indices]


# ---- Execution in torch -------------------------------------------------------------------------


def placed(
    sizes: Sizes, indices: list[torch.Tensor], space: Sizes, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """For each place of the space: the element that the indices name in a dense tensor of these sizes,
    and whether it is inside."""
    place = torch.zeros([1] * len(space), dtype=torch.int64, device=device)
    inside = torch.ones([1] * len(space), dtype=torch.bool, device=device)
    for size, given in zip(sizes, indices, strict=True):
        index = given.to(device)
        inside = inside & (index >= 0) & (index < size)
        place = place * size + index.clamp(0, max(size - 1, 0))
    return place.expand(space), inside.expand(space)


def gathered(
    x: torch.Tensor, shape: Sizes, indices: list[torch.Tensor], fill: Number
) -> torch.Tensor:
    if x.numel() == 0:
        return torch.full(shape, fill, dtype=x.dtype, device=x.device)
    place, inside = placed(x.shape, indices, shape, x.device)
    outside = torch.full((), fill, dtype=x.dtype, device=x.device)
    # By a list of places: torch takes a single one for a number, which meta tensors do not have.
    found = x.reshape(-1)[place.reshape(-1)].reshape(list(shape))
    return torch.where(inside, found, outside)


def reduced(x: torch.Tensor, shape: Sizes, indices: list[Index], reduce: str) -> torch.Tensor:
    given = [index.tensor() for index in indices]
    if reduce in ("any", "all"):
        return scattered(x != 0, shape, given, "amax" if reduce == "any" else "amin")
    if reduce in ("argmax", "argmin"):
        return found(x.detach(), shape, given, indices, f"a{reduce[3:]}")
    if x.dtype in (torch.float16, torch.bfloat16) and reduce in ("sum", "prod"):
        return scattered(x.float(), shape, given, reduce).to(x.dtype)
    return scattered(x, shape, given, reduce)


def found(
    x: torch.Tensor, shape: Sizes, given: list[torch.Tensor], indices: list[Index], reduce: str
) -> torch.Tensor:
    """The place of the first element that is the extremum among those with the same target."""
    extremum = gathered(scattered(x, shape, given, reduce), x.shape, given, 0)
    followed = {dim for index in indices if (dim := index.only_dim()) is not None}
    free = [size if dim not in followed else 1 for dim, size in enumerate(x.shape)]
    count = math.prod(free)
    place = torch.arange(count, device=x.device).view(free)
    place = torch.where((x == extremum) | (x != x), place, count)
    first = scattered(place, shape, given, "amin")
    return torch.where(first < count, first, -1)


def scattered(
    x: torch.Tensor, shape: Sizes, indices: list[torch.Tensor], reduce: str
) -> torch.Tensor:
    place, inside = placed(shape, indices, x.shape, x.device)
    count = math.prod(shape)
    place = torch.where(inside, place, count).reshape(-1)  # outside: at the end
    nothing = identity(reduce, x.dtype)
    result = torch.full((count + 1,), nothing, dtype=x.dtype, device=x.device)
    if reduce == "sum":
        result = result.index_add(0, place, x.reshape(-1))
    else:
        result = result.scatter_reduce(0, place, x.reshape(-1), reduce)
    return result[:count].reshape(shape)


def identity(reduce: str, dtype: torch.dtype) -> Number:
    if reduce == "sum":
        return 0
    if reduce == "prod":
        return 1
    if dtype.is_complex:
        raise TypeError(f"torchjanus.meta.reindex_reduce: {dtype} has no order")
    if dtype.is_floating_point:
        return -math.inf if reduce == "amax" else math.inf
    if dtype == torch.bool:
        return reduce == "amin"
    limits = torch.iinfo(dtype)
    return limits.min if reduce == "amax" else limits.max


# ---- Registration as torch operators ------------------------------------------------------------


def from_factors(space: Sizes, factors: Sizes, offset: Sizes) -> list[Index]:
    rank = len(space)
    return [
        Index(space, list(factors[k * rank : (k + 1) * rank]), offset[k])
        for k in range(len(offset))
    ]


def reindex_by_factors(
    x: torch.Tensor, size: Sizes, matrix: Sizes, offset: Sizes, fill: Number = 0.0
) -> torch.Tensor:
    indices = from_factors(size, matrix, offset)
    return gathered(x, size, [index.tensor() for index in indices], fill)


def reindex_reduce_by_factors(
    x: torch.Tensor, size: Sizes, matrix: Sizes, offset: Sizes, reduce: str = "sum"
) -> torch.Tensor:
    return reduced(x, size, from_factors(x.shape, matrix, offset), reduce)


def stop_fuse(x: torch.Tensor) -> torch.Tensor:
    """x, as a view of it: a hint that it should be in memory, and not be recomputed where it is used.

    Args:
        x: A tensor of any shape and dtype.

    Returns:
        A view of all of x, with its gradient.
    """
    same: torch.Tensor = torch.ops.torchjanus_meta.stop_fuse(x)
    return same


def stop_grad(x: torch.Tensor) -> torch.Tensor:
    """x as a number that nothing is differentiated through: `x.detach()`.

    Args:
        x: A tensor of any shape and dtype.

    Returns:
        A view of all of x that requires no gradient.
    """
    return x.detach()


LIBRARY: Any = torch.library.Library("torchjanus_meta", "DEF")  # type: ignore[no-untyped-call]
LIBRARY.define(
    "reindex(Tensor self, int[] size, int[] matrix, int[] offset, Scalar fill=0.0) -> Tensor"
)
LIBRARY.define(
    'reindex_reduce(Tensor self, int[] size, int[] matrix, int[] offset, str reduce="sum") -> Tensor'
)
LIBRARY.define("stop_fuse(Tensor(a) self) -> Tensor(a)")
LIBRARY.impl("reindex", reindex_by_factors, "CompositeImplicitAutograd")
LIBRARY.impl("reindex_reduce", reindex_reduce_by_factors, "CompositeImplicitAutograd")
LIBRARY.impl("stop_fuse", lambda x: x.view_as(x), "CompositeImplicitAutograd")
