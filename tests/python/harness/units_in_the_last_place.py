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
    units = torch.zeros(x.shape, dtype=torch.int64)
    differs = (x != y) & ~(x.isnan() & y.isnan())
    units[differs] = distance_of_different(x[differs], y[differs])
    return units


def distance_of_different(x, y):
    place_of_x, place_of_y = positions(x), positions(y)
    beside = (place_of_x - place_of_y).abs()
    across = place_of_x.abs().clamp(max=FAR) + place_of_y.abs().clamp(max=FAR)
    units = torch.where((place_of_x >= 0) == (place_of_y >= 0), beside, across)
    return torch.where(x.isfinite() & y.isfinite(), units, 2 * FAR)
