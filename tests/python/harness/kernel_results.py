"""What functions of tensors give eagerly and in kernels."""

import torchjanus


def strides(x):
    """Those that say where an element is."""
    return [stride for stride, size in zip(x.stride(), x.shape, strict=True) if size > 1]


def eager_and_converted(function, *operands):
    """Pairs of what the function gives eagerly and from its graph, each of one dtype and shape; the graph's text."""
    expected = function(*operands)
    converted = torchjanus.function(function)
    for _ in range(5):
        actual = converted(*operands)
    if not isinstance(expected, tuple):
        expected, actual = (expected,), (actual,)
    pairs = list(zip(expected, actual, strict=True))
    for e, a in pairs:
        assert (a.dtype, a.shape) == (e.dtype, e.shape)
    return pairs, str(converted.graph())
