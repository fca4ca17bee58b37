"""What gathers and scatters single tensors: until torch 2.12 it has other names."""

from torch import distributed

all_gather_single = getattr(distributed, "all_gather_single", distributed.all_gather_into_tensor)
reduce_scatter_single = getattr(
    distributed, "reduce_scatter_single", distributed.reduce_scatter_tensor
)
