"""Operators against eager: result types, values, decompositions, gradients and gradients of
gradients. The graph is differentiated by the compiler and run, as text, by torch's operators."""

import math

import graph_text
import pytest
import torch.nn.functional as F
from graph_text import type_text

import torch

TABLE = graph_text.operators()
EVALUATOR = graph_text.Evaluator(TABLE)


def randn(*size):
    return torch.randn(*size, dtype=torch.float64)


def positive(*size):
    return torch.rand(*size, dtype=torch.float64) + 0.5


def inside(*size):
    """Numbers within (-0.9, 0.9)."""
    return torch.rand(*size, dtype=torch.float64) * 1.8 - 0.9


def whole(limit, *size):
    return torch.randint(limit, size)


SAMPLES = []


def sample(name, eager, operands, order=2, **attributes):
    """`eager` takes the operands that are no attributes, in the order of the schema."""
    SAMPLES.append((name, eager, operands, order, attributes))


SMOOTH = "neg abs sign exp exp2 expm1 sin cos tan atan sinh cosh tanh"
STEPPED = "asinh erf erfc sigmoid floor ceil trunc round frac square reciprocal relu"
for name in [*SMOOTH.split(), *STEPPED.split()]:
    sample(name, getattr(torch, name), [randn(3, 4)])
for name in ["log", "log2", "log10", "log1p", "sqrt", "rsqrt"]:
    sample(name, getattr(torch, name), [positive(3, 4)])
for name in ["asin", "acos", "atanh"]:
    sample(name, getattr(torch, name), [inside(3, 4)])
sample("acosh", torch.acosh, [positive(3) + 1])

for name in ["silu", "mish", "hardswish", "selu", "relu6", "softsign", "tanhshrink"]:
    sample(name, getattr(F, name), [randn(3, 4) * 4])
sample("hardsigmoid", F.hardsigmoid, [randn(3, 4) * 4], order=1)
sample("softplus", F.softplus, [randn(3, 4) * 4, 1, 20])
sample("softplus", F.softplus, [randn(3, 4) * 4, 2.0, 3])
sample("celu", F.celu, [randn(3, 4), 0.5])
sample("log_sigmoid", F.logsigmoid, [randn(3, 4)])
sample("gelu", F.gelu, [randn(3, 4)])
sample("gelu", lambda x: F.gelu(x, approximate="tanh"), [randn(3, 4)], approximate="tanh")
sample("leaky_relu", F.leaky_relu, [randn(3, 4), 0.1])
sample("elu", lambda x, *_: F.elu(x, 1.5), [randn(3, 4), 1.5, 1, 1])
sample("functional_elu", F.elu, [randn(3, 4), 1.5])
sample("hardtanh", F.hardtanh, [randn(3, 4), -0.5, 0.5])
sample("threshold", F.threshold, [randn(3, 4), 0.1, 20.0])
sample("glu", lambda x: F.glu(x, 1), [randn(3, 4, 2)], dim=1)
sample("prelu", F.prelu, [randn(3, 4, 2), randn(4)])
sample("prelu", F.prelu, [randn(3, 4), randn(1)])
sample("masked_fill_tensor", torch.masked_fill, [randn(3, 1), randn(3, 4) > 0, randn(())])
sample("clamp", torch.clamp, [randn(3, 4), -0.5, 0.5])
sample("clamp", torch.clamp, [randn(3, 4), None, 0.5])
sample("clamp_tensor", torch.clamp, [randn(3, 4), randn(4), randn(3, 1)])
sample("clamp_min", torch.clamp_min, [randn(3, 4), 0.5])
sample("clamp_max", torch.clamp_max, [randn(3, 4), 0.5])

for name in ["add", "sub", "mul", "div", "maximum", "minimum", "atan2"]:
    function = getattr(torch, name)
    alpha = [1] if name in ("add", "sub") else []
    take = (lambda f: lambda a, b, *_: f(a, b))(function)
    sample(name, take, [randn(3, 4), randn(4), *alpha])
    sample(name, take, [randn(3, 1), randn(2, 1, 4), *alpha])
    sample(name, take, [randn(3, 4), randn(()), *alpha])
for name in ["add", "sub", "mul", "div"]:
    alpha = [1] if name in ("add", "sub") else []
    take = (lambda function: lambda a, b, *_: function(a, b))(getattr(torch, name))
    sample(name, take, [randn(3, 4), 2.5, *alpha])
    sample(name, take, [randn(3, 4), torch.randn(4), *alpha])
sample("add", lambda a, b, alpha: torch.add(a, b, alpha=alpha), [randn(3, 4), randn(4), 0.5])
sample("sub", lambda a, b, alpha: torch.sub(a, b, alpha=alpha), [randn(3, 4), randn(4), 0.5])
sample("rsub", lambda a, b, alpha: torch.rsub(a, b, alpha=alpha), [randn(3), randn(2, 3), 2])
sample("remainder", torch.remainder, [randn(3, 4), randn(4)])
sample("fmod", torch.fmod, [randn(3, 4), randn(4)])
for mode in ("floor", "trunc"):
    take = (lambda m: lambda a, b: torch.div(a, b, rounding_mode=m))(mode)
    sample("div_mode", take, [randn(3, 4), randn(4)], rounding_mode=mode)
for exponent in (2, 3, 0.5, -1, 1.7, 1, 0):
    sample("pow_scalar", torch.pow, [positive(3, 4), exponent])
sample("pow_scalar", torch.pow, [randn(3, 4), 3])
sample("pow_base", torch.pow, [2.5, randn(3, 4)])
sample("pow", torch.pow, [positive(3, 4), randn(4)])
sample("xlogy", torch.xlogy, [positive(3, 4), positive(4)])
sample("where", torch.where, [randn(3, 4) > 0, randn(4), randn(3, 1)])
sample("where", torch.where, [randn(3, 4) > 0, randn(3, 4), 0.0])
sample("masked_fill", torch.masked_fill, [randn(3, 4), randn(4) > 0, 2.0])
sample("masked_fill", torch.masked_fill, [randn(3, 1), randn(3, 4) > 0, 2.0])
sample("lerp", torch.lerp, [randn(3, 4), randn(4), 0.3])
for name in ("addcmul", "addcdiv"):
    take = (lambda f: lambda a, b, c, value: f(a, b, c, value=value))(getattr(torch, name))
    sample(name, take, [randn(3, 4), randn(4), positive(3, 1), 0.5])

for dims, keep in ((None, False), ([0], False), ([-1], True), ([0, 2], False), ([1], False)):
    options = {"dim": dims, "keepdim": keep}
    call = (lambda o: lambda f: lambda x: f(x, **o))(options)
    for name in ("sum", "mean"):
        sample(name, call(getattr(torch, name)), [randn(2, 3, 4)], **options)
    for name in ("var", "std"):
        take = (lambda f, o: lambda x, c: f(x, correction=1 if c is None else c, **o))(
            getattr(torch, name), options
        )
        sample(name, take, [randn(2, 3, 4), None], **options)
        sample(name, take, [randn(2, 3, 4), 0], **options)
    if dims is not None:
        for name in ("amax", "amin", "logsumexp"):
            sample(name, call(getattr(torch, name)), [randn(2, 3, 4)], **options)
    for order in (1, 2, 3, math.inf):
        take = (lambda o: lambda x, p: torch.linalg.vector_norm(x, p, **o))(options)
        sample("vector_norm", take, [randn(2, 3, 4), order], **options)
sample("norm", lambda x, p: torch.norm(x), [randn(3, 4), 2])
sample(
    "var_unbiased",
    lambda x: torch.var(x, 1, unbiased=False),
    [randn(3, 4)],
    dim=[1],
    unbiased=False,
)
sample("var_all", lambda x: torch.var(x, False), [randn(3, 4)], unbiased=False)
sample("std_all", lambda x: torch.std(x), [randn(3, 4)])
sample("var_mean_all", lambda x: torch.var_mean(x, False), [randn(3, 4)], unbiased=False)
sample(
    "var_mean_unbiased",
    lambda x: torch.var_mean(x, 1, False, True),
    [randn(3, 4)],
    dim=[1],
    unbiased=False,
    keepdim=True,
)
sample("var_mean", lambda x, c: torch.var_mean(x, dim=[1]), [randn(3, 4), None], dim=[1])
sample(
    "amax",
    lambda x: torch.amax(x, 0),
    [torch.tensor([[1.0, 2.0], [1.0, 3.0]], dtype=torch.float64)],
    dim=[0],
)
sample("max", torch.max, [randn(3, 4)])
sample("min", torch.min, [torch.tensor([2.0, 1.0, 1.0], dtype=torch.float64)])
for name in ("max", "min"):
    for keep in (False, True):
        take = (lambda f, k: lambda x: tuple(f(x, 1, k)))(getattr(torch, name), keep)
        sample(name + "_dim", take, [randn(3, 4)], dim=1, keepdim=keep)
for size in (1, 2, 5, 7):
    sample("prod", torch.prod, [randn(size)])
sample("prod", torch.prod, [torch.tensor([2.0, 0.0, 3.0], dtype=torch.float64)])
sample("prod", torch.prod, [torch.tensor([2.0, 0.0, 3.0, 0.0, 1.0], dtype=torch.float64)])
sample("prod_dim", lambda x: torch.prod(x, 1), [randn(3, 5, 2)], dim=1)
sample("cumsum", lambda x: torch.cumsum(x, 1), [randn(3, 4)], dim=1)
sample("sort", lambda x: tuple(torch.sort(x, -1, True)), [randn(3, 4)], descending=True)
sample("topk", lambda x: tuple(torch.topk(x, 2)), [randn(3, 4)], k=2)

sample("mm", torch.mm, [randn(3, 4), randn(4, 2)])
sample("bmm", torch.bmm, [randn(2, 3, 4), randn(2, 4, 5)])
sample("mv", torch.mv, [randn(3, 4), randn(4)])
sample("dot", torch.dot, [randn(4), randn(4)])
sample("outer", torch.outer, [randn(3), randn(4)])
for shape in ((3, 2), (2,), (1, 2)):
    take = lambda c, a, b, beta, alpha: torch.addmm(c, a, b, beta=beta, alpha=alpha)  # noqa: E731
    sample("addmm", take, [randn(*shape), randn(3, 4), randn(4, 2), 0.5, 2])
take = lambda c, a, b, beta, alpha: torch.baddbmm(c, a, b, beta=beta, alpha=alpha)  # noqa: E731
sample("baddbmm", take, [randn(3, 1), randn(2, 3, 4), randn(2, 4, 5), 1, 0.5])
take = lambda c, a, b, beta, alpha: torch.addmv(c, a, b, beta=beta, alpha=alpha)  # noqa: E731
sample("addmv", take, [randn(3), randn(3, 4), randn(4), 1, 1])
for a, b in (
    [(4,), (4,)],
    [(3, 4), (4,)],
    [(4,), (4, 3)],
    [(3, 4), (4, 2)],
    [(2, 3, 4), (4, 5)],
    [(2, 3, 4), (4,)],
    [(4,), (2, 4, 3)],
    [(2, 3, 4), (2, 4, 5)],
    [(5, 1, 3, 4), (2, 4, 3)],
    [(3, 4), (2, 4, 5)],
):
    sample("matmul", torch.matmul, [randn(*a), randn(*b)])
sample("linear", F.linear, [randn(3, 4), randn(2, 4), randn(2)])
sample("linear", F.linear, [randn(2, 3, 4), randn(2, 4), None])
sample("linear", F.linear, [randn(4), randn(2, 4), randn(2)])

for rank, sizes in ((1, (7,)), (2, (7, 6)), (3, (5, 4, 6))):
    convolve = getattr(F, f"conv{rank}d")
    kernel = (3,) * rank
    sample(f"conv{rank}d", convolve, [randn(2, 4, *sizes), randn(6, 4, *kernel), randn(6)])
    options = {"stride": [2] * rank, "padding": [1] * rank, "dilation": [1] * rank, "groups": 2}
    take = (lambda f, o: lambda *operands: f(*operands, **o))(convolve, options)
    sample(f"conv{rank}d", take, [randn(2, 4, *sizes), randn(6, 2, *kernel), None], **options)
    sample(f"conv{rank}d", convolve, [randn(4, *sizes), randn(6, 4, *kernel), randn(6)])
    take = (lambda f: lambda *operands: f(*operands, padding="same"))(convolve)
    sample(
        f"conv{rank}d_padding",
        take,
        [randn(2, 4, *sizes), randn(6, 4, *kernel), None],
        padding="same",
    )
    options = {"stride": [2] * rank, "padding": [1] * rank, "output_padding": [1] * rank}
    take = (lambda f, o: lambda *operands: f(*operands, **o))(
        getattr(F, f"conv_transpose{rank}d"), options
    )
    sample(
        f"conv_transpose{rank}d",
        take,
        [randn(2, 4, *sizes), randn(4, 3, *kernel), randn(3)],
        **options,
    )

sample("max_pool1d", lambda x: F.max_pool1d(x, 2), [randn(2, 3, 8)], kernel_size=[2])
sample("max_pool2d", lambda x: F.max_pool2d(x, 2), [randn(2, 3, 8, 6)], kernel_size=[2, 2])
sample(
    "max_pool2d",
    lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True),
    [randn(3, 8, 6)],
    kernel_size=[3, 3],
    stride=[2, 2],
    padding=[1, 1],
    ceil_mode=True,
)
sample(
    "functional_max_pool2d", lambda x: F.max_pool2d(x, 2), [randn(2, 3, 8, 6)], kernel_size=[2, 2]
)
sample("max_pool3d", lambda x: F.max_pool3d(x, 2), [randn(1, 2, 4, 4, 4)], kernel_size=[2, 2, 2])
sample("avg_pool1d", lambda x: F.avg_pool1d(x, 2), [randn(2, 3, 8)], kernel_size=[2])
sample("avg_pool2d", lambda x: F.avg_pool2d(x, 2), [randn(2, 3, 8, 6)], kernel_size=[2, 2])
sample(
    "avg_pool2d",
    lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    [randn(2, 3, 8, 6)],
    kernel_size=[3, 3],
    stride=[2, 2],
    padding=[1, 1],
    count_include_pad=False,
)
for size in ([1, 1], [2, 3]):
    take = (lambda n: lambda x: F.adaptive_avg_pool2d(x, n))(size)
    sample("adaptive_avg_pool2d", take, [randn(2, 3, 7, 6)], output_size=size)
sample(
    "adaptive_avg_pool1d", lambda x: F.adaptive_avg_pool1d(x, 3), [randn(2, 3, 7)], output_size=[3]
)

for dim in (0, -1):
    for name in ("softmax", "log_softmax"):
        take = (lambda f, d: lambda x: f(x, d))(getattr(torch, name), dim)
        sample(name, take, [randn(3, 4)], dim=dim)


def batch_norm(x, weight, bias, mean, variance, momentum, eps, training):
    """Eager's result and the new statistics."""
    mean = None if mean is None else mean.clone()
    variance = None if variance is None else variance.clone()
    y = F.batch_norm(x, mean, variance, weight, bias, training, momentum, eps)
    if not training or mean is None:
        return (y, None, None)
    return (y, mean.detach(), variance.detach())


for shape in ((5, 3), (4, 3, 2, 2)):
    for affine in (True, False):
        parameters = [randn(3), randn(3)] if affine else [None, None]
        for training in (True, False):
            take = (lambda t: lambda *o: batch_norm(*o, training=t))(training)
            statistics = [randn(3).detach(), positive(3)]
            sample(
                "batch_norm",
                take,
                [randn(*shape), *parameters, *statistics, 0.1, 1e-5],
                training=training,
            )
        take = lambda *o: batch_norm(*o, training=True)  # noqa: E731
        sample(
            "batch_norm", take, [randn(*shape), *parameters, None, None, 0.1, 1e-5], training=True
        )
for affine in (True, False):
    parameters = [randn(3, 4), randn(3, 4)] if affine else [None, None]
    take = lambda x, w, b, eps: F.layer_norm(x, [3, 4], w, b, eps)  # noqa: E731
    sample("layer_norm", take, [randn(2, 5, 3, 4), *parameters, 1e-5], normalized_shape=[3, 4])
    parameters = [randn(6), randn(6)] if affine else [None, None]
    take = lambda x, w, b, eps: F.group_norm(x, 3, w, b, eps)  # noqa: E731
    sample("group_norm", take, [randn(2, 6, 3), *parameters, 1e-5], num_groups=3)
sample("normalize", lambda x, p, eps: F.normalize(x, p, 1, eps), [randn(3, 4), 2.0, 1e-12])
sample("embedding", F.embedding, [randn(5, 3), whole(5, 2, 4)])
SAMPLES[-1] = ("embedding", lambda w, i: F.embedding(i, w), *SAMPLES[-1][2:])
sample(
    "functional_embedding",
    lambda i, w, *_: F.embedding(i, w, -1),
    [whole(5, 7), randn(5, 3), None, 2.0],
    padding_idx=-1,
)

for reduction in ("none", "mean", "sum"):
    number = {"none": 0, "mean": 1, "sum": 2}[reduction]
    call = (lambda r: lambda f: lambda *o: f(*o, reduction=r))(reduction)
    for name in ("mse_loss", "l1_loss"):
        function = getattr(F, name)
        take = (lambda f, r: lambda a, b, _: f(a, b, reduction=r))(function, reduction)
        sample("functional_" + name, take, [randn(3, 4), randn(3, 4), None], reduction=reduction)
        sample(name, call(function), [randn(3, 4), randn(3, 4)], reduction=number)
    take = (lambda r: lambda a, b, beta: F.smooth_l1_loss(a, b, beta=beta, reduction=r))(reduction)
    sample("functional_smooth_l1_loss", take, [randn(3, 4), randn(3, 4), 0.7], reduction=reduction)
    take = (lambda r: lambda a, b, d, _: F.huber_loss(a, b, delta=d, reduction=r))(reduction)
    sample(
        "functional_huber_loss", take, [randn(3, 4), randn(3, 4), 0.7, None], reduction=reduction
    )
    for log_target in (False, True):
        take = (lambda r, t: lambda a, b: torch.kl_div(a, b, r, log_target=t))(number, log_target)
        sample(
            "kl_div", take, [randn(3, 4), positive(3, 4)], reduction=number, log_target=log_target
        )
    take = (lambda r: lambda x, t, w: F.binary_cross_entropy(x, t, w, reduction=r))(reduction)
    probabilities = torch.rand(3, 4, dtype=torch.float64) * 0.8 + 0.1
    sample(
        "functional_binary_cross_entropy",
        take,
        [probabilities, torch.rand(3, 4, dtype=torch.float64), None],
        reduction=reduction,
    )
    sample(
        "binary_cross_entropy",
        (lambda r: lambda x, t, w: F.binary_cross_entropy(x, t, w.detach(), reduction=r))(
            reduction
        ),
        [probabilities.clone(), torch.rand(3, 4, dtype=torch.float64), positive(4)],
        order=0,
        reduction=number,
    )
    take = (
        lambda r: (
            lambda x, t, w, p: F.binary_cross_entropy_with_logits(
                x, t, w, pos_weight=p, reduction=r
            )
        )
    )(reduction)
    for weights in ([None, None], [positive(4), positive(3, 1)]):
        sample(
            "functional_binary_cross_entropy_with_logits",
            take,
            [randn(3, 4), torch.rand(3, 4, dtype=torch.float64), *weights],
            reduction=reduction,
            grads=[0],
        )
    take = (
        lambda r: lambda x, t, w, *s: F.cross_entropy(x, t, w, reduction=r, label_smoothing=s[0])
    )(reduction)
    sample(
        "functional_cross_entropy", take, [randn(3, 4), whole(4, 3), None, 0.0], reduction=reduction
    )
    weight = positive(4)
    take_weighted = (lambda r: lambda x, t, w, *s: F.cross_entropy(x, t, w.detach(), reduction=r))(
        reduction
    )
    sample(
        "functional_cross_entropy",
        take_weighted,
        [randn(3, 4, 2, 2), whole(4, 3, 2, 2), weight, 0.0],
        reduction=reduction,
        grads=[0],
    )
    sample(
        "functional_cross_entropy",
        take,
        [randn(3, 4, 2), whole(4, 3, 2), None, 0.0],
        reduction=reduction,
    )
    sample(
        "functional_cross_entropy",
        take,
        [randn(3, 4), positive(3, 4), None, 0.1],
        reduction=reduction,
    )
    sample("functional_cross_entropy", take, [randn(4), whole(4), None, 0.0], reduction=reduction)
    take = (lambda r: lambda x, t, w: F.nll_loss(x, t, w, reduction=r))(reduction)
    sample("functional_nll_loss", take, [randn(3, 4), whole(4, 3), None], reduction=reduction)

sample("view", lambda x: x.view(-1, 2), [randn(3, 4)], size=[-1, 2])
sample("reshape", lambda x: x.reshape(4, 3), [randn(3, 4)], shape=[4, 3])
sample("flatten", lambda x: x.flatten(1), [randn(2, 3, 4)], start_dim=1)
sample("unflatten", lambda x: x.unflatten(1, (2, -1)), [randn(3, 4)], dim=1, sizes=[2, -1])
sample("squeeze", lambda x: x.squeeze(1), [randn(3, 1, 4)], dim=[1])
sample("squeeze_all", lambda x: x.squeeze(), [randn(3, 1, 4, 1)])
sample("unsqueeze", lambda x: x.unsqueeze(-1), [randn(3, 4)], dim=-1)
sample("transpose", lambda x: x.transpose(0, -1), [randn(2, 3, 4)], dim0=0, dim1=-1)
sample("t", lambda x: x.t(), [randn(3, 4)])
sample("mT", lambda x: x.mT, [randn(2, 3, 4)])
sample("permute", lambda x: x.permute(2, 0, 1), [randn(2, 3, 4)], dims=[2, 0, 1])
sample("movedim", lambda x: x.movedim(0, 2), [randn(2, 3, 4)], source=[0], destination=[2])
sample(
    "movedim",
    lambda x: x.movedim((0, 1), (2, 0)),
    [randn(2, 3, 4)],
    source=[0, 1],
    destination=[2, 0],
)
sample("expand", lambda x: x.expand(2, 3, 4), [randn(3, 1)], size=[2, -1, 4])
sample("expand_as", lambda x, y: x.expand_as(y), [randn(3, 1), randn(2, 3, 4)])
sample("sum_to_size", lambda x: x.sum_to_size(3, 1), [randn(2, 3, 4)], size=[3, 1])
sample("select", lambda x: x.select(1, -1), [randn(3, 4)], dim=1, index=-1)
for start, end, step in ((1, 3, 1), (None, -1, 1), (-3, None, 2), (2, 1, 1), (0, 100, 3)):
    take = (lambda s: lambda x: x[:, s])(slice(start, end, step))
    sample("slice", take, [randn(3, 5)], dim=1, start=start, end=end, step=step)
sample("narrow", lambda x: x.narrow(1, 1, 2), [randn(3, 5)], dim=1, start=1, length=2)
for offset in (0, 1, -2):
    take = (lambda o: lambda x: x.diagonal(o, 0, 1))(offset)
    sample("diagonal", take, [randn(3, 4, 2)], offset=offset)
sample(
    "select_scatter",
    lambda x, y: x.select_scatter(y, 0, 1),
    [randn(3, 4), randn(4)],
    dim=0,
    index=1,
)
sample(
    "slice_scatter",
    lambda x, y: x.slice_scatter(y, 1, 1, 3),
    [randn(3, 4), randn(3, 2)],
    dim=1,
    start=1,
    end=3,
)
sample("diagonal_scatter", lambda x, y: x.diagonal_scatter(y), [randn(3, 4), randn(3)])
sample("split", lambda x: x.split(2), [randn(5, 2)], split_size=2)
sample("split_with_sizes", lambda x: x.split([1, 4], 1), [randn(2, 5)], split_sizes=[1, 4], dim=1)
sample("chunk", lambda x: x.chunk(3, 1), [randn(2, 7)], chunks=3, dim=1)
sample("unbind", lambda x: x.unbind(1), [randn(2, 3)], dim=1)

sample("gather", lambda x, i: x.gather(1, i), [randn(3, 4), whole(4, 2, 5)], dim=1)
sample(
    "scatter",
    lambda x, i, s: x.scatter(1, i, s),
    [randn(3, 4), torch.tensor([[0, 2], [1, 3]]), randn(2, 2)],
    dim=1,
)
sample(
    "scatter_value",
    lambda x, i, v: x.scatter(1, i, v),
    [randn(3, 4), torch.tensor([[0, 2], [1, 3]]), 1.5],
    dim=1,
)
sample(
    "scatter_add",
    lambda x, i, s: x.scatter_add(1, i, s),
    [randn(3, 4), whole(4, 2, 3), randn(2, 3)],
    dim=1,
)
sample("index_select", lambda x, i: x.index_select(1, i), [randn(3, 4), whole(4, 6)], dim=1)
sample(
    "index_add",
    lambda x, i, s, a: x.index_add(0, i, s, alpha=a),
    [randn(3, 4), whole(3, 5), randn(5, 4), 0.5],
    dim=0,
)
sample(
    "take_along_dim",
    lambda x, i: torch.take_along_dim(x, i, 1),
    [randn(3, 4), whole(4, 3, 2)],
    dim=1,
)
sample("index", lambda x, i: x[i], [randn(5, 4), whole(5, 3, 2)])
sample("index", lambda x, _, i: x[:, i], [randn(5, 4, 3), None, whole(4, 2)])
sample("index", lambda x, i, _, j: x[i, :, j], [randn(5, 4, 3), whole(5, 2), None, whole(3, 2)])
sample("index", lambda x, _, i, j: x[:, i, j], [randn(5, 4, 3), None, whole(4, 2, 1), whole(3, 2)])
sample(
    "index_put",
    lambda x, i, v: x.index_put((i,), v, True),
    [randn(5, 4), whole(5, 3), randn(4)],
    accumulate=True,
)
sample(
    "index_put",
    lambda x, i, v: x.index_put((i,), v),
    [randn(5, 4), torch.tensor([0, 3]), randn(2, 4)],
)
sample("cat", lambda *x: torch.cat(x, 1), [randn(2, 3), randn(2, 1), randn(2, 2)], dim=1)
sample("stack", lambda *x: torch.stack(x, -1), [randn(2, 3), randn(2, 3)], dim=-1)
sample("repeat", lambda x: x.repeat(2, 1, 3), [randn(2, 3)], repeats=[2, 1, 3])
sample("tile", lambda x: x.tile(2), [randn(2, 3)], dims=[2])
sample("flip", lambda x: x.flip(0, -1), [randn(2, 3)], dims=[0, -1])
sample("roll", lambda x: x.roll((1, -2), (0, 1)), [randn(2, 3)], shifts=[1, -2], dims=[0, 1])
sample(
    "constant_pad_nd",
    lambda x, v: F.pad(x, (1, 2, -1, 0), value=v),
    [randn(3, 4), 0.5],
    pad=[1, 2, -1, 0],
)
sample("pad", lambda x, v: F.pad(x, (1, 1)), [randn(3, 4), None], pad=[1, 1])
sample("tril", lambda x: x.tril(1), [randn(3, 4)], diagonal=1)
sample("triu", lambda x: x.triu(-1), [randn(3, 4)], diagonal=-1)
sample("to", lambda x: x.to(torch.float32), [randn(3, 4)], dtype=torch.float32)
sample("to_float", lambda x: x.float(), [randn(3, 4)])
sample("type_as", lambda x, y: x.type_as(y), [randn(3, 4), torch.randn(2)])
sample("clone", torch.clone, [randn(3, 4)])
sample("copy", lambda x, y: x.clone().copy_(y), [randn(3, 4), torch.randn(4)])
sample("fill", lambda x, v: torch.fill(x, v), [randn(3, 4), 2.0])
sample("fill_tensor", lambda x, v: torch.fill(x, v), [randn(3, 4), randn(())])


def attribute_text(value):
    """An attribute as the text of a graph."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, torch.dtype):
        return graph_text.NAMES[value]
    if isinstance(value, str):
        return f'"{value}"'
    return "[" + ",".join(map(str, value)) + "]" if isinstance(value, list) else str(value)


def constant_text(value):
    if value is None:
        return "none", "none"
    if isinstance(value, float):
        return repr(value), "f64"
    return str(value).lower(), "bool" if isinstance(value, bool) else "i64"


class Graph:
    """The text of a graph that applies one operator and takes gradients."""

    def __init__(self, name, operands, attributes, results):
        self.inputs, self.lines, self.operands = [], [], []
        for operand in operands:
            self.operands.append(self._operand(operand))
        types = ["none" if y is None else type_text(y) for y in results]
        self.results = [f"%y{i}" for i in range(len(results))]
        fields = ", ".join(f"{k}={attribute_text(v)}" for k, v in attributes.items())
        node = f"{name} {', '.join(self.operands)}" + (f" {{{fields}}}" if fields else "")
        self.lines.append(f"{', '.join(self.results)} = {node} : {', '.join(types)}")
        self.returned = [n for n, y in zip(self.results, results, strict=True) if y is not None]

    def input(self, tensor):
        name = f"%x{len(self.inputs)}"
        self.inputs.append((name, tensor))
        return name

    def _operand(self, value):
        if isinstance(value, torch.Tensor):
            return self.input(value)
        text, kind = constant_text(value)
        name = f"%c{len(self.lines)}"
        self.lines.append(f"{name} = constant {{value={text}}} : {kind}")
        return name

    def gradient(self, outputs, seeds, targets, prefix, create_graph):
        """Appends a `gradient` node: names and tensors; gives the names of its results."""
        names = [f"%{prefix}{i}" for i in range(len(targets))]
        operands = ", ".join([*outputs, *seeds, *(name for name, _ in targets)])
        types = ", ".join(type_text(tensor) for _, tensor in targets)
        fields = f"outputs={len(outputs)}, targets={len(targets)}"
        fields = f"create_graph={str(create_graph).lower()}, {fields}"
        self.lines.append(f"{', '.join(names)} = gradient {operands} {{{fields}}} : {types}")
        return names

    def text(self):
        inputs = ", ".join(f"{name}: {type_text(tensor)}" for name, tensor in self.inputs)
        body = "\n".join("  " + line for line in self.lines)
        return f"graph @f({inputs}) {{\n{body}\n  return {', '.join(self.returned)}\n}}\n"

    def run(self):
        text = graph_text.run_tool(
            "janus-opt", "--pass", "decompose,differentiate", text=self.text()
        )
        return EVALUATOR.run(text, [tensor.detach() for _, tensor in self.inputs])


def as_list(results):
    return list(results) if isinstance(results, (tuple, list)) else [results]


def zeros_for_none(gradients, targets):
    return [
        torch.zeros_like(t) if g is None else g for g, t in zip(gradients, targets, strict=True)
    ]


@pytest.mark.parametrize("index", range(len(SAMPLES)), ids=lambda i: f"{i}-{SAMPLES[i][0]}")
def test_operator_is_eagers(index):
    name, eager, operands, order, attributes = SAMPLES[index]
    attributes = dict(attributes)
    wanted = attributes.pop("grads", None)
    torch.manual_seed(index)
    operands = [x.clone() if isinstance(x, torch.Tensor) else x for x in operands]
    for i, x in enumerate(operands):
        if (
            isinstance(x, torch.Tensor)
            and x.is_floating_point()
            and (wanted is None or i in wanted)
        ):
            x.requires_grad_(order > 0 and not (name == "batch_norm" and i in (3, 4)))
    expected = as_list(eager(*operands))
    graph = Graph(name, operands, attributes, expected)
    compared = [y for y in expected if y is not None]

    targets = [(n, x) for n, x in graph.inputs if x.requires_grad]
    outputs = [
        (n, y)
        for n, y in zip(graph.results, expected, strict=True)
        if y is not None and y.requires_grad
    ]
    if targets and outputs:
        seeds = [torch.randn_like(y).requires_grad_() for _, y in outputs]
        seed_names = [graph.input(seed) for seed in seeds]
        first = graph.gradient([n for n, _ in outputs], seed_names, targets, "g", True)
        gradients = torch.autograd.grad(
            [y for _, y in outputs],
            [x for _, x in targets],
            seeds,
            create_graph=True,
            allow_unused=True,
        )
        gradients = zeros_for_none(gradients, [x for _, x in targets])
        graph.returned += first
        compared += gradients
        again = [(n, y) for n, y in zip(first, gradients, strict=True) if y.requires_grad]
        if order > 1 and again:
            second_seeds = [torch.randn_like(y) for _, y in again]
            names = [graph.input(seed) for seed in second_seeds]
            all_targets = targets + list(zip(seed_names, seeds, strict=True))
            second = graph.gradient([n for n, _ in again], names, all_targets, "h", False)
            expected_second = torch.autograd.grad(
                [y for _, y in again], [x for _, x in all_targets], second_seeds, allow_unused=True
            )
            graph.returned += second
            compared += zeros_for_none(expected_second, [x for _, x in all_targets])
    results = graph.run()
    for ours, theirs in zip(results, compared, strict=True):
        theirs = theirs.detach()
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        tolerance = 1e-9 if theirs.dtype == torch.float64 else 1e-5
        torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance, equal_nan=True)
