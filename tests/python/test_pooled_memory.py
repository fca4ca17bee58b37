"""Memory that operators ask for in runs, where the plan has none for them: the pool (`src/torch/memory.h`)."""

import ctypes

from differential import resident_mib

import torch
import torchjanus


def test_what_the_pool_tried_goes_back_once_it_is_filled():
    """Each selection is larger than the one before, so that no block of those before has room for it."""

    def chosen(x):
        total = x.new_zeros(())
        for part in range(1, 11):
            some = x[: part * len(x) // 10]
            total = total + some[some > 0].sum()
        return total

    converted = torchjanus.function(chosen)
    x = torch.randn(1 << 21)
    # After the runs that learn and plan all is given back; the third one fills the pool again.
    results = [converted(x) for _ in range(6)]
    assert converted.stats()["hits"] == 3
    before = resident_mib()
    ctypes.CDLL(None).malloc_trim(0)
    assert before - resident_mib() < 16
    for result in results:
        torch.testing.assert_close(result, chosen(x), rtol=1e-4, atol=1)
