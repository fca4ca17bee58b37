"""Results of operators that the graph has no own form of, and that may be views: of what is written before
or after, directly or through other views."""

import pytest
from differential import Program, compare, default_dtype, differential, observe, seeded

import torch
import torchjanus

VIEWS = {
    "as_strided": lambda b: b.as_strided((2,), (1,), 1),
    "view of another dtype": lambda b: b.view(torch.int64),
    "complex": lambda b: torch.view_as_complex(b.view(-1, 2)),
    "there and back": lambda b: torch.view_as_real(torch.view_as_complex(b.view(3, 2, 2))),
    "hsplit": lambda b: torch.hsplit(b, 2)[1],
    "tensor_split": lambda b: b.tensor_split(2, 1)[0],
    "unfold": lambda b: b.unfold(1, 2, 1),
    "meshgrid": lambda b: torch.meshgrid(b[0], b[1], indexing="ij")[0],
    "einsum": lambda b: torch.einsum("ii->i", b[:, :3]),
    "alias": lambda b: torch.ops.aten.alias(b),
}
WRITES = {
    "add_": lambda b, x: b.add_(x),
    "out": lambda b, x: torch.add(x, 1, out=b),
    "item": lambda b, x: b.__setitem__(0, x[0]),
}


def calls(count=7):
    return [(torch.randn(3, 4),) for _ in range(count)]


def written_before(view, write):
    b = torch.zeros(3, 4)

    def step(x):
        write(b, x)
        return view(b)

    return step, [b]


def written_before_and_kept(view, write):
    b, kept = torch.zeros(3, 4), {}

    def step(x):
        write(b, x)
        kept["view"] = view(b)
        return b.sum()

    return step, [b, kept]


def part_written_before(view, write):
    b = torch.zeros(5, 4)

    def step(x):
        part = b[1:4]
        write(part, x)
        return view(part)

    return step, [b]


def written_after(view, write):
    b = torch.zeros(3, 4)

    def step(x):
        y = view(b)
        write(b, x)
        return y + 0, y

    return step, [b]


def argument_written_after(view, write):
    def step(x):
        y = view(x)
        write(x, x.clone())
        return y

    return step, []


def made_and_written_after(view, write):
    def step(x):
        b = x * 2
        y = view(b)
        write(b, x)
        return b, y

    return step, []


def view_written(view, write):
    b = torch.zeros(3, 4)

    def step(x):
        write(b, x)
        y = view(b)
        y.mul_(3)
        return b.sum(), y

    return step, [b]


KINDS = [
    written_before,
    written_before_and_kept,
    part_written_before,
    written_after,
    argument_written_after,
    made_and_written_after,
    view_written,
]


def agree(build):
    """Whether or not a graph can do it, every effect is eager's."""
    with default_dtype(torch.float64):
        expected = observe(seeded(build, {}), converted=False)
        actual = observe(seeded(build, {}), converted=True)
    for index, (one, other) in enumerate(zip(expected.steps, actual.steps, strict=True)):
        compare(one, other, f"after call {index}", 1e-10)
    assert "internal_error" not in [reason["code"] for reason in actual.stats["reasons"]]
    return actual.stats


def converted_after(profile_runs):
    def convert(step):
        function = torchjanus.function(step, profile_runs=profile_runs)
        return function, function

    return convert


@pytest.mark.parametrize("profile_runs", [0, 3])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("view", VIEWS)
def test_what_may_be_a_view_of_what_is_written(view, kind, profile_runs):
    for write in WRITES.values():

        def build(write=write):
            step, watch = kind(VIEWS[view], write)
            return Program(step, calls(), watch, converted_after(profile_runs))

        agree(build)


@pytest.mark.parametrize("view", VIEWS)
def test_views_of_what_nobody_writes(view):
    @differential(hits=4)
    def build():
        b = torch.randn(3, 4)

        def step(x):
            return VIEWS[view](b) + x.sum(), VIEWS[view](x)

        return Program(step, calls(), watch=[b])

    build()


@differential(reasons=["autograd"])
def test_a_gradient_of_what_may_be_a_view_of_what_was_written():
    w, v = torch.randn(3, 4, requires_grad=True), torch.randn(3, 2, requires_grad=True)

    def step(x):
        part = torch.hsplit(w[:], 2)[1]
        y = (part * v).sum()
        with torch.no_grad():
            w.mul_(0.9)
        y.backward()
        return y

    return Program(step, calls(), watch=[w, v])


LAYOUTS = {
    "turned": lambda x: (x.t() * 2).exp(),
    "part": lambda x: (x * 2)[1:],
    "column": lambda x: (x * 2)[:, 1],
    "joined": lambda x: torch.cat([x, x])[1:],
    "repeated": lambda x: (x[:1] * 2).expand(3, 4),
    "argument": lambda x: x,
    "part of the argument": lambda x: x[1:],
    "computed": lambda x: x.tanh() + 1,
}


@pytest.mark.parametrize("offset", [None, 0, 2])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_as_strided_goes_by_memory(layout, offset):
    def build():
        def step(x):
            y = LAYOUTS[layout](x)
            place = () if offset is None else (offset,)
            return y.as_strided((2, 2), (1, 1), *place) + y.sum()

        return Program(step, calls(), convert=converted_after(0))

    stats = agree(build)
    if layout in ("argument", "part of the argument", "computed"):
        assert stats["hits"] >= 5


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@differential(reasons=["unsupported_argument"])
def test_as_strided_of_what_an_operator_has_resized():
    buffer = torch.zeros(0)

    def step(x):
        torch.add(x, 1, out=buffer)
        part = buffer.as_strided((2,), (1,), 1)
        part.mul_(3)
        return buffer.sum(), part, part.storage_offset()

    shapes = [(2, 3), (3, 4), (4, 5), (5, 2), (2, 2), (6, 7), (3, 3), (2, 3), (4, 5)]
    return Program(step, [(torch.randn(*shape),) for shape in shapes], watch=[buffer])


@differential(reasons=["unknown_callable"])
def test_lazy_negative():
    def step(x):
        return torch.imag(torch.conj(torch.view_as_complex(x))) * 2 + 1

    return Program(step, [(torch.randn(3, 2),) for _ in range(5)])


def lengths():
    """Calls with sizes that vary, so that only the run knows whether a part of the columns lies in order."""
    return [(torch.randn(3, n),) for n in (5, 5, 5, 5, 6, 6, 7, 2, 5, 8)]


@differential(hits=5, graphs=2)
def test_a_part_that_is_also_flattened():
    kept = []

    def step(x):
        part = x[:, 1:]
        kept.append(part)
        loss = (part.flatten() * 2).sum() + part.reshape(-1).mean()
        return part, loss

    return Program(step, lengths(), watch=[kept])


@differential(hits=5, graphs=2)
def test_a_part_of_a_part_that_is_also_flattened():
    def step(x):
        part = x[:, 1:]
        rows = part[:2]
        return rows.t(), part.reshape(-1).sum(), rows.flatten().sum()

    return Program(step, lengths())


@differential(hits=3)
def test_a_result_that_may_be_a_view():
    def step(x):
        return x[:, 1:].flatten(), x.sum()

    return Program(step, lengths())


def test_views_of_the_argument_share_its_memory():
    @torchjanus.function
    def step(x):
        part = x[:, 1:]
        return part, part.flatten().sum()

    for (x,) in lengths():
        part, _ = step(x)
        part.fill_(7)
        assert x[:, 1:].eq(7).all()
    assert torchjanus.stats(step)["hits"] > 0
