"""Conversions of dtype and memory format: which give the tensor itself, and which have memory of their own."""

from differential import Program, differential

import torch


@differential(hits=3)
def test_types_of_tensors():
    def step(x):
        kinds = x.type(torch.float32), x.type(torch.LongTensor), (x > 0).type(dtype=torch.int32)
        return kinds, x.element_size(), x.new_tensor([[1, 2.5], [3, 4]]), x.long().new_tensor(2)

    return Program(step, [(torch.randn(4),) for _ in range(6)])


@differential(hits=3)
def test_memory_formats_of_conversions():
    def step(x, image):
        same = x.float(memory_format=torch.preserve_format)
        wide = image.to(torch.float32, memory_format=torch.channels_last)
        return (
            same is x,
            x.double(memory_format=torch.contiguous_format),
            x.t().half(memory_format=torch.contiguous_format),
            x.t().to("cpu", torch.float64, True, True, memory_format=torch.preserve_format),
            wide,
            torch.view_as_real(x.cfloat()) * 2,
        )

    return Program(step, [(torch.randn(3, 4), torch.randn(2, 3, 4, 4)) for _ in range(6)])


@differential(hits=3)
def test_a_copy_by_to_has_memory_of_its_own():
    def step(x):
        same = x.to(torch.float64, copy=True)
        turned = x.t().to(x, copy=True)
        x.add_(1)
        return same, turned

    return Program(step, [(torch.randn(3, 4),) for _ in range(6)])
