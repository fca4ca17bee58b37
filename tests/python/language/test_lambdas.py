"""Functions are told apart and found in the source, however they are written: lambdas on one line, replaced lambdas."""

import torch
import torchjanus


def test_lambdas_on_one_line():
    made = [torchjanus.function(f) for f in [lambda x, k=k: x * k for k in (1.0, 2.0)]]
    made += [torchjanus.function(lambda x: x + 1), torchjanus.function(lambda x: x - 1)]
    for _ in range(6):
        results = [f(torch.ones(2)).tolist() for f in made]
    assert results == [[1, 1], [2, 2], [2, 2], [0, 0]]
    assert [f.stats()["hits"] for f in made] == [3] * 4


def test_function_that_is_replaced_by_a_lambda():
    class Holder:
        pass

    set_it = lambda: setattr(Holder, "forward", lambda self, x: x * 3)  # noqa: E731
    set_it()
    holder = Holder()
    f = torchjanus.function(lambda x: holder.forward(x))
    for _ in range(6):
        assert f(torch.ones(2)).tolist() == [3, 3]
    Holder.forward = lambda self, x: x * 5
    for _ in range(6):
        assert f(torch.ones(2)).tolist() == [5, 5]
    stats = f.stats()
    assert stats["hits"] >= 7
    assert [reason["code"] for reason in stats["reasons"]] == ["guard_failed"], stats
