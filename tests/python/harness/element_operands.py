"""Operands of element-wise operators for property tests: of any dtype, shape, layout and kind of values."""

import math
from dataclasses import dataclass

from hypothesis import strategies as st

import torch

FLOATING = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
INTEGERS = [torch.int32, torch.int64, torch.int16, torch.int8, torch.uint8]
DTYPES = [*FLOATING, *INTEGERS, torch.bool]

# More than a vector, and more than what one thread is given.
SIZES = st.sampled_from([1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33, 0])
MANY = 70001

SPECIAL = [
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 3.0, -3.0, 6.0, 7.0, 20.5, -20.5, 100.0, -100.0),
    *(math.inf, -math.inf, math.nan),
]


@dataclass(frozen=True)
class Operand:
    """What a tensor is made of. Its dimensions lie in memory by `order`, of which only every `steps` element is
    taken, from `offset` on; along those in `expanded` there is one element for all places."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    order: tuple[int, ...]
    steps: tuple[int, ...]
    expanded: frozenset[int]
    offset: int
    values: str
    seed: int

    def make(self):
        shape = [1 if i in self.expanded else size for i, size in enumerate(self.shape)]
        sizes = [shape[i] * self.steps[i] for i in self.order]
        memory = torch.zeros(self.offset + math.prod(sizes), dtype=self.dtype)
        by_dimension = memory[self.offset :].view(sizes).permute(self.places())
        x = by_dimension[tuple(slice(None, None, step) for step in self.steps)]
        x.copy_(elements(self.dtype, shape, self.values, self.seed))
        return x.expand(self.shape)

    def places(self):
        """Where in the order each dimension stands."""
        return [self.order.index(dim) for dim in range(len(self.shape))]

    def overlaps(self):
        """Whether several of its elements are one."""
        return any(self.shape[dim] > 1 for dim in self.expanded)


def elements(dtype, shape, values, seed):
    """Drawn from a few small numbers, from special ones, or from `any` that are usual."""
    generator = torch.Generator().manual_seed(seed)

    def integers(low, high):
        return torch.randint(low, high, shape, generator=generator)

    if dtype == torch.bool:
        return integers(0, 2).bool()
    if values == "few":
        return integers(0 if dtype == torch.uint8 else -3, 4).to(dtype)
    if dtype.is_floating_point:
        special = torch.tensor(SPECIAL, dtype=dtype)
        if values == "special":
            return special[integers(0, len(special))]
        return (torch.randn(shape, generator=generator, dtype=torch.float64) * 3).to(dtype)
    info = torch.iinfo(dtype)
    if values == "special":
        near_zero = [0, 1, 2, 7, 8] if info.min == 0 else [0, 1, -1, 2, -2, 7, -8]
        edges = [info.min, info.min + 1, info.max - 1, info.max]
        special = torch.tensor([*edges, *near_zero], dtype=dtype)
        return special[integers(0, len(special))]
    return integers(info.min, info.max).to(dtype)


@st.composite
def shapes(draw):
    """Of rank 0 to 4 and a few thousand elements, or of many."""
    shape = [draw(SIZES) for _ in range(draw(st.integers(0, 4)))]
    while math.prod(shape) > 4000:
        shape[shape.index(max(shape))] = 3
    if 0 not in shape and shape and draw(st.integers(0, 9)) == 9:
        dim = draw(st.integers(0, len(shape) - 1))
        shape[dim] = MANY // (math.prod(shape) // shape[dim])
    return tuple(shape)


@st.composite
def operands(draw, shape, dtype):
    rank = len(shape)
    order, steps, expanded = tuple(range(rank)), (1,) * rank, frozenset()
    layouts = ["contiguous", "turned", "stepped", "expanded", "channels last", "all of it"]
    layout = draw(st.sampled_from(layouts))
    if layout in ("turned", "all of it"):
        order = tuple(draw(st.permutations(order)))
    if layout == "channels last" and rank == 4:
        order = (0, 2, 3, 1)
    if layout in ("stepped", "all of it"):
        steps = tuple(draw(st.sampled_from([1, 2, 3])) for _ in shape)
    if layout in ("expanded", "all of it") and rank > 0:
        expanded = frozenset(draw(st.sets(st.integers(0, rank - 1))))
    offset = draw(st.integers(0, 3))
    values = draw(st.sampled_from(["any", "few", "special"]))
    return Operand(dtype, shape, order, steps, expanded, offset, values, draw(st.integers(0, 99)))


@st.composite
def broadcast_pairs(draw):
    """Two shapes, one of which broadcasts to the other."""
    shape = draw(shapes())
    sizes = [1 if draw(st.integers(0, 3)) == 3 else size for size in shape]
    first = draw(st.integers(0, len(sizes)))
    narrow = tuple(sizes[first:] if draw(st.booleans()) else sizes)
    return (shape, narrow) if draw(st.booleans()) else (narrow, shape)
