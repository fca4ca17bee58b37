"""How far apart floating numbers are, counted in numbers of their dtype that lie between them."""

import torch

INTEGERS = {
    torch.float16: torch.int16,
    torch.bfloat16: torch.int16,
    torch.float32: torch.int32,
    torch.float64: torch.int64,
}
# A distance across zero that does not fit 64 bits is told as twice this.
FAR = 1 << 61


def positions(x):
    """Of each number among all of its dtype in order, from zero on; both zeros are at zero."""
    bits = x.contiguous().view(INTEGERS[x.dtype]).long()
    return torch.where(bits < 0, torch.iinfo(INTEGERS[x.dtype]).min - bits, bits)


def distance(x, y):
    """Units in the last place from each element of x to y's: 0 between NaNs and between equal infinities,
    and `2 * FAR` from what is not finite to anything else."""
    ordered_x, ordered_y = positions(x), positions(y)
    beside = (ordered_x - ordered_y).abs()
    across = ordered_x.abs().clamp(max=FAR) + ordered_y.abs().clamp(max=FAR)
    units = torch.where((ordered_x >= 0) == (ordered_y >= 0), beside, across)
    same = (x == y) | (x.isnan() & y.isnan())
    units = torch.where(x.isfinite() & y.isfinite(), units, 2 * FAR)
    return torch.where(same, 0, units)
