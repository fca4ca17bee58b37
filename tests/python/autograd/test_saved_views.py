"""Views of parameters that a gradient due outside keeps: a write to the parameter in between makes it raise."""

import pytest
import torch.nn.functional as F

import torch
import torchjanus

DTYPE = torch.float64

PROGRAMS = {
    "part": lambda x, w, v: ((x * w).tanh() * v[:1]).sum(),
    "row": lambda x, w, v: ((x * w).tanh() * v[0]).sum(),
    "transposed": lambda x, w, v: ((x * w).tanh() @ v.t()).sum(),
    "expanded": lambda x, w, v: ((x * w).tanh() * v[:1].expand(4, 4)).sum(),
    "viewed": lambda x, w, v: ((x * w).tanh().view(-1) * v.view(-1)).sum(),
    "filter": lambda x, w, v: F.conv1d((x * w).tanh()[None], v[:, :, None]).sum(),
    "itself": lambda x, w, v: ((x * w).tanh() * v).sum(),
    "not kept": lambda x, w, v: ((x * w).tanh() + v[:1]).sum(),
}


def gradient(function, x, w, v, written):
    loss = function(x)
    with torch.no_grad():
        for each in written:
            each.add_(1)
    try:
        return torch.autograd.grad(loss, w)[0]
    except RuntimeError as error:
        return str(error).split(":")[0]


@pytest.mark.parametrize("writes", [True, False])
@pytest.mark.parametrize("name", PROGRAMS)
def test_write_between_forward_and_backward(name, writes):
    torch.manual_seed(0)
    w, v = (torch.randn(4, 4, dtype=DTYPE, requires_grad=True) for _ in range(2))
    f = torchjanus.function(lambda x: PROGRAMS[name](x, w, v))
    for _ in range(7):
        x = torch.randn(4, 4, dtype=DTYPE)
        before = v.detach().clone()
        written = [v] if writes else []
        expected = gradient(lambda x: PROGRAMS[name](x, w, v), x, w, v, written)
        with torch.no_grad():
            v.copy_(before)
        actual = gradient(f, x, w, v, written)
        if isinstance(expected, str):
            assert actual == expected
        else:
            torch.testing.assert_close(actual, expected, rtol=1e-9, atol=1e-9)
    assert f.stats()["hits"] >= 3
