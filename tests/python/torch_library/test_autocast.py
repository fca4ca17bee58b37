"""torch.autocast for the CPU and torch.utils.checkpoint: results, gradients, types and random
numbers as in eager, and what is left to eager."""

import pytest
import torch.nn.functional as F
from differential import Program, differential
from torch.utils.checkpoint import checkpoint

import torch
import torchjanus
from torch import nn

BF16 = torch.bfloat16


def autocast(**options):
    return torch.autocast("cpu", **({"dtype": BF16} | options))


def assert_same_training(build, *, hits, exact, calls=8):
    """Two copies, one of them converted; parameters and results bit for bit, or nearly."""
    seen = []
    for convert in (False, True):
        torch.manual_seed(0)
        step, model, batches = build(calls)
        step = torchjanus.function(step) if convert else step
        torch.manual_seed(1)
        results = [step(*batch) for batch in batches]
        tensors = [
            each
            for result in results
            for each in (result if isinstance(result, tuple) else (result,))
        ]
        tensors += [each for p in model.parameters() for each in (p, p.grad)]
        seen.append((tensors, torch.get_rng_state()))
    (expected, state), (actual, other_state) = seen
    assert torch.equal(state, other_state)
    for one, other in zip(expected, actual, strict=True):
        assert one.dtype == other.dtype and one.requires_grad == other.requires_grad
        if exact:
            assert torch.equal(one, other)
        else:
            torch.testing.assert_close(one, other, rtol=2e-2, atol=2e-2)
    assert step.stats()["hits"] >= hits, step.stats()["reasons"]


@pytest.mark.parametrize(
    "options", [{}, {"dtype": torch.float16}, {"cache_enabled": False}, {"enabled": False}]
)
def test_layers_that_share_a_weight(options):
    """The gradients of all uses of a weight are added up before or after they are cast back."""

    def build(calls):
        layer = nn.Linear(8, 8)

        def step(x):
            layer.zero_grad()
            with autocast(**options):
                y = layer(torch.tanh(layer(torch.tanh(layer(x)))))
            y.float().pow(2).mean().backward()
            return y, y.float()

        return step, layer, [(torch.randn(5, 8),) for _ in range(calls)]

    assert_same_training(build, hits=5, exact=options.get("enabled", True))


def test_contexts_in_contexts():
    def build(calls):
        model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8))

        def step(x):
            model.zero_grad()
            with autocast():
                a = model[0](x)
                with autocast(enabled=False):
                    b = model[2](a.float())
                c = model[2](a)
                wide, narrow = torch.cat([b, c], 1), torch.stack([a, c])
            (wide.sum() + narrow.float().sum()).backward()
            return a, b, c, wide, narrow

        return step, model, [(torch.randn(5, 8),) for _ in range(calls)]

    assert_same_training(build, hits=5, exact=True)


class Block(nn.Module):
    def __init__(self, width=16, heads=2):
        super().__init__()
        self.norm, self.heads = nn.LayerNorm(width), heads
        self.inputs, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.body = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x):
        rows, length, width = x.shape
        q, k, v = (
            self.inputs(self.norm(x))
            .view(rows, length, 3, self.heads, width // self.heads)
            .permute(2, 0, 3, 1, 4)
        )
        mixed = ((q @ k.transpose(-1, -2)) / 4).softmax(-1) @ v
        x = x + self.output(mixed.transpose(1, 2).reshape(rows, length, width))
        return x + self.body(self.norm(x))


def test_transformer():
    def build(calls):
        model = nn.Sequential(nn.Embedding(11, 16), Block(), Block(), nn.Linear(16, 11))

        def step(x):
            model.zero_grad()
            with torch.amp.autocast(device_type="cpu", dtype=BF16):
                loss = F.cross_entropy(model(x[:, :-1]).view(-1, 11), x[:, 1:].reshape(-1))
            loss.backward()
            return loss

        return step, model, [(torch.randint(11, (4, 7)),) for _ in range(calls)]

    assert_same_training(build, hits=5, exact=False)


def test_norms_and_images():
    def build(calls):
        model = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(64, 8), nn.LayerNorm(8), nn.Dropout(0.2), nn.Linear(8, 3),
        )  # fmt: skip
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

        def step(x, y):
            optimizer.zero_grad()
            with autocast():
                loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        return (
            step,
            model,
            [(torch.randn(6, 1, 8, 8), torch.randint(3, (6,))) for _ in range(calls)],
        )

    assert_same_training(build, hits=5, exact=False)


CONTEXT = torch.autocast("cpu", dtype=BF16)


@torch.autocast("cpu", dtype=BF16)
def decorated(model, x):
    return model(x)


def test_contexts_of_before_and_decorated_functions():
    def build(calls):
        model = nn.Linear(8, 8)

        def step(x):
            model.zero_grad()
            y = decorated(model, x)
            with CONTEXT:
                z = model(x)
            (y.float().sum() + z.float().pow(2).sum()).backward()
            return y, z, torch.tensor(torch.is_autocast_enabled("cpu"))

        return step, model, [(torch.randn(5, 8),) for _ in range(calls)]

    assert_same_training(build, hits=5, exact=True)


def test_called_within_a_context():
    """Without gradients nothing that eager keeps from before can be seen; with them it is left to eager."""
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3))
    converted = torchjanus.function(lambda x: model(x))
    for _ in range(8):
        x = torch.randn(5, 8)
        with autocast(), torch.no_grad():
            assert torch.equal(converted(x), model(x))
        assert torch.equal(x, x)
    assert converted.stats()["hits"] >= 4
    trained = torchjanus.function(lambda x: model(x))
    for _ in range(8):
        with autocast():
            assert torch.equal(trained(torch.ones(5, 8)), model(torch.ones(5, 8)))
    assert trained.stats()["hits"] == 0
    assert any("autocast" in each["sentence"] for each in trained.stats()["reasons"])


@pytest.mark.parametrize("operator", ["einsum", "backward"])
def test_what_is_left_to_eager(operator):
    layer = nn.Linear(4, 4)

    def step(x):
        layer.zero_grad()
        with autocast():
            y = torch.einsum("ij,kj->ik", x, layer.weight) if operator == "einsum" else layer(x)
            if operator == "backward":
                y.float().sum().backward()
        return y

    converted = torchjanus.function(step)
    for _ in range(8):
        x = torch.randn(3, 4)
        one, other = step(x), converted(x)
        assert one.dtype == other.dtype == BF16 and torch.equal(one, other)


LEAVES = {
    "linear": lambda x, y: F.linear(x, y), "matmul": lambda x, y: x @ y, "mm": torch.mm,
    "bmm": lambda x, y: torch.bmm(x[None], y[None]), "addmm": lambda x, y: torch.addmm(x, x, y),
    "baddbmm": lambda x, y: torch.baddbmm(x[None], x[None], y[None]),
    "prelu": lambda x, y: F.prelu(x, y[0, :1]), "conv1d": lambda x, y: F.conv1d(x[None], y[:, :, None]),
    "attention": lambda x, y: F.scaled_dot_product_attention(x[None], y[None], x[None]),
    "mse_loss": F.mse_loss, "l1_loss": F.l1_loss, "smooth_l1_loss": F.smooth_l1_loss,
    "huber_loss": F.huber_loss, "prod": lambda x, y: torch.prod(x), "cat": lambda x, y: torch.cat([x, y]),
    "stack": lambda x, y: torch.stack([x, y]), "kl_div": lambda x, y: F.kl_div(x, y, reduction="sum"),
    "nll_loss": lambda x, y: F.nll_loss(x, torch.tensor([0, 1, 2, 3])), "trace": lambda x, y: torch.trace(x),
    "cross_entropy": lambda x, y: F.cross_entropy(x, torch.tensor([0, 1, 2, 3])),
    "with_logits": lambda x, y: F.binary_cross_entropy_with_logits(x, y),
    "softmax": lambda x, y: x.softmax(1), "layer_norm": lambda x, y: F.layer_norm(x, (4,)),
    "exp": lambda x, y: x.exp(), "norm": lambda x, y: x.norm(), "mv": lambda x, y: torch.mv(x, y[0]),
    "outer": lambda x, y: torch.outer(x[0], y[0]), "pad": lambda x, y: F.pad(x, (1, 1)),
    "softplus": lambda x, y: F.softplus(x), "var": lambda x, y: x.var(1), "add": lambda x, y: x + y,
    "where": lambda x, y: torch.where(x > 0, x, y), "cosine": lambda x, y: F.cosine_similarity(x, y),
}  # fmt: skip


@pytest.mark.parametrize("name", LEAVES)
def test_operators_of_each_type(name):
    """Types of results and gradients for operands of float32, bfloat16 and one of each."""
    operator = LEAVES[name]

    def step(x, y):
        with autocast():
            result = operator(x, y)
        x.grad = y.grad = None
        result.float().sum().backward()
        return result

    for types in ((torch.float32, torch.float32), (BF16, BF16), (torch.float32, BF16)):
        converted = torchjanus.function(step)
        for seed in range(6):
            torch.manual_seed(seed)
            operands = [torch.rand(4, 4).to(dtype).requires_grad_() for dtype in types]
            copies = [each.detach().clone().requires_grad_() for each in operands]
            try:
                expected = step(*operands)
            except RuntimeError as error:
                with pytest.raises(RuntimeError, match=str(error)[:20].replace("(", ".")):
                    converted(*copies)
                continue
            actual = converted(*copies)
            assert actual.dtype == expected.dtype
            torch.testing.assert_close(actual, expected, rtol=1e-2, atol=1e-2)
            for one, other in zip(operands, copies, strict=True):
                assert (one.grad is None) == (other.grad is None)
                if one.grad is not None:
                    assert one.grad.dtype == other.grad.dtype
                    torch.testing.assert_close(other.grad, one.grad, rtol=2e-2, atol=2e-2)


# --- checkpoints ---------------------------------------------------------------------------------


@differential(hits=4)
def test_checkpointed_blocks():
    blocks = nn.ModuleList(
        nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.3), nn.Tanh()) for _ in range(3)
    )

    def step(x, scale=2.0):
        blocks.zero_grad()
        for block in blocks:
            x = checkpoint(block, x, use_reentrant=False)
        x = checkpoint(lambda a, factor: a.sin() * factor, x, factor=scale, use_reentrant=False)
        x.sum().backward()
        return x.sum()

    return Program(step, [(torch.randn(4, 6),) for _ in range(8)], watch=[*blocks.parameters()])


@differential(hits=4)
def test_gradients_of_a_checkpoint_that_are_due_outside():
    layer = nn.Linear(6, 6)

    def step(x):
        return checkpoint(lambda a: layer(a).tanh(), x, use_reentrant=False).sum()

    return Program(step, [(torch.randn(4, 6),) for _ in range(8)], watch=[*layer.parameters()])


@pytest.mark.parametrize(
    "kind", ["batch_norm", "attribute", "random", "reentrant", "other_numbers"]
)
def test_checkpoints_that_are_left_to_eager(kind):
    """What is computed again is seen: statistics move twice, counters count twice."""
    import random

    def run(convert):
        torch.manual_seed(0)
        random.seed(0)
        norm, linear, seen = nn.BatchNorm1d(4), nn.Linear(4, 4), []

        def inner(x):
            if kind == "attribute":
                seen.append(len(seen))
            x = linear(x).tanh()
            x = norm(x) if kind == "batch_norm" else F.dropout(x, 0.5)
            return x * random.random() if kind == "random" else x

        def step(x):
            linear.zero_grad()
            options = {"preserve_rng_state": False} if kind == "other_numbers" else {}
            y = checkpoint(inner, x, use_reentrant=kind == "reentrant", **options)
            y.sum().backward()
            return y

        step = torchjanus.function(step) if convert else step
        results = [step(torch.randn(5, 4, requires_grad=True)) for _ in range(8)]
        numbers = [
            random.random(),
            *norm.running_mean.tolist(),
            *linear.weight.grad.flatten().tolist(),
        ]
        return [each.tolist() for each in results], numbers, seen, torch.get_rng_state().tolist()

    expected, actual = run(False), run(True)
    assert actual == expected


@differential(tolerance=1e-2, dtype=torch.float32)
def test_weight_that_is_first_cast_without_gradients():
    """Eager keeps that cast, with its gradient."""
    linear = nn.Linear(4, 4)

    def step(x):
        linear.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            with torch.no_grad():
                target = linear(x)
            y = linear(x)
        (y.float() * target).sum().backward()
        return target, y

    return Program(step, [(torch.randn(5, 4),) for _ in range(6)], watch=[linear])


def test_lists_are_torchs():
    """Each operator with a kernel for autocast is cast, and no other."""
    names = torch._C._dispatch_get_all_op_names()
    known = {name.removeprefix("aten::").split(".")[0] for name in names}
    listed = {
        name.removeprefix("aten::").split(".")[0]
        for name in names
        if torch._C._dispatch_has_kernel_for_dispatch_key(name, "AutocastCPU")
    }
    # Ours have further forms, with other parameters.
    assert known & set(torchjanus._core.testing.cast_operators()) == listed
