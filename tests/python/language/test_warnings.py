"""Python's warnings in a step: filters, texts, categories, lines, and warnings that become errors.
PYTEST_DONT_REWRITE"""

import warnings

import pytest
from differential import Program, differential

import torch
import torchjanus


def batches(count=8):
    return [(torch.randn(4, 3),) for _ in range(count)]


def ignoring(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = x * 2 + 1
    return y.sum()


def ignoring_one_kind(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category=UserWarning)
        warnings.warn("not shown", stacklevel=1)
        y = x * 2 + 1
    return y.sum()


def by_action(x):
    with warnings.catch_warnings(action="ignore"):
        y = x * 2 + 1
    return y.sum()


def by_message(x):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning)
        y = x * 2 + 1
    return y.sum()


@pytest.mark.parametrize("step", [ignoring, ignoring_one_kind, by_action, by_message])
@differential(hits=5, graphs=1)
def test_filters_of_the_run(step):
    return Program(step, batches(), watch=[warnings.filters])


@differential(reasons=["unknown_callable"])
def test_warning_that_the_run_records():
    def step(x):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            y = x * 2 + 1
            warnings.warn("recorded", stacklevel=1)
        return y.sum(), len(caught)

    return Program(step, batches(), watch=[warnings.filters])


def numbered_batches(count=12):
    return [(torch.randn(5, 4), i) for i in range(count)]


def warn_twice(x, i):
    warnings.warn(f"the mean is {x.mean().item():.3f}")
    y = x * 2
    warnings.warn("each time", DeprecationWarning, stacklevel=2)
    return y


def warn_in_helper(x, i):
    def helper(y):
        warnings.warn("in the helper", RuntimeWarning)
        return y + 1

    return helper(x) * 2


@pytest.mark.parametrize("step", [warn_twice, warn_in_helper])
def test_warnings(step):
    converted = torchjanus.function(step)
    results = []
    for run in (step, converted):
        torch.manual_seed(0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            outcome = [run(x, i) for x, i in numbered_batches(8)]
        seen = [(str(w.message), w.category, w.filename, w.lineno) for w in caught]
        results.append((outcome, seen))
    assert results[0][1:] == results[1][1:]
    assert all(torch.equal(a, b) for a, b in zip(results[0][0], results[1][0], strict=True))
    assert converted.stats()["hits"] >= 4


def test_warnings_that_become_errors():
    def step(x):
        y = x * 2
        if y.dim() == 1:
            warnings.warn("careful", UserWarning)
        return y

    converted = torchjanus.function(step)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(6):
            converted(torch.ones(3))
        assert converted.stats()["hits"] >= 2
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="careful"):
            converted(torch.ones(3))
        warnings.simplefilter("ignore")
        assert converted(torch.ones(3)).tolist() == [2, 2, 2]


def test_warnings_shown_once():
    def step(x):
        warnings.warn("only once")
        return x * 2

    for run in (step, torchjanus.function(step)):
        globals().pop("__warningregistry__", None)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            for _ in range(8):
                run(torch.ones(3))
        assert len(caught) == 1


def test_a_guard_warns_of_no_missing_gradient(capfd):
    """Eager warns where the `.grad` of a tensor that is no leaf is read, which this program never does."""

    def norm(t):
        if t.is_leaf and t.grad is not None:
            return t.grad.norm()
        return t.norm()

    w = torch.nn.Parameter(torch.ones(3))
    (w * w).sum().backward()
    converted = torchjanus.function(norm)
    for index in range(24):
        t = w if index < 8 else [w, w * 2, w.detach()][index % 3]
        torch.testing.assert_close(converted(t), norm(t))
    assert converted.stats()["hits"] > 8
    assert (
        "not a leaf" not in capfd.readouterr().err
    )  # what runs outside of Python's calls writes there
