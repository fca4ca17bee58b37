"""Complex tensors, which the graph hands to torch's own operators, and the views of their parts."""

import pytest
from differential import Program, differential

import torch

COMPUTED = {
    "to": lambda x, z, w: (x.to(torch.complex128) @ z).abs(),
    "to a copy": lambda x, z, w: x.to(torch.complex128, copy=True),
    "to another's dtype": lambda x, z, w: (x.to(z), x.type_as(z)),
    "type": lambda x, z, w: (x.type(torch.complex64) @ z.to(torch.complex64)).abs(),
    "strides of to": lambda x, z, w: x.t().to(torch.complex128),
    "real and imag": lambda x, z, w: (z * x).real * 2 + (z * x).imag,
    "functions of parts": lambda x, z, w: torch.real(z * x) + torch.imag(z),
    "part of an input": lambda x, z, w: z.real,
    "exp": lambda x, z, w: torch.exp(z * x).real.sum(),
    "gradient": lambda x, z, w: (torch.complex(w, x) * z).real.sum().backward(),
    "gradient of a part": lambda x, z, w: (w.to(torch.complex128) * z).imag.square().sum(),
}


@pytest.mark.parametrize("case", COMPUTED)
@differential()
def test_graph(case):
    z, w = torch.randn(3, 3, dtype=torch.complex128), torch.randn(3, 3, requires_grad=True)

    def step(x):
        w.grad = None
        return COMPUTED[case](x, z, w)

    return Program(step, [(torch.randn(3, 3),) for _ in range(7)], [z, w])


def double_real_part(x, z):
    y = z * x
    y.real.mul_(2)
    return y


REFUSED = {
    "part written": ("unsupported_tensor", double_real_part),
    "to real": ("shape_mismatch", lambda x, z: (x + z.to(torch.float64)) * 2),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.filterwarnings("ignore:Casting complex")
def test_refused(case):
    reason, step = REFUSED[case]

    @differential(reasons=[reason])
    def check():
        z = torch.randn(3, 3, dtype=torch.complex128)
        return Program(lambda x: step(x, z), [(torch.randn(3, 3),) for _ in range(7)], [z])

    check()


@differential(reasons=["expression"])
def test_imag_of_a_real_tensor():
    def step(x):
        try:
            return (x * 2).imag
        except RuntimeError as error:
            return x * len(str(error))

    return Program(step, [(torch.randn(3, 3),) for _ in range(7)])
