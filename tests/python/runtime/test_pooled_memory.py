"""Memory that operators ask for in runs, where the plan has none for them: the pool (`src/torch/memory.h`)."""

import ctypes
import resource

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


def test_a_small_block_does_not_drive_out_a_large_one():
    """Each of the two graphs finds the memory of its result that it freed itself, whatever the other one did."""

    def page_faults():
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

    x = torch.randn(1 << 14, 256)
    large = torchjanus.function(lambda x: x * 2 + 1)
    small = torchjanus.function(lambda x: (x * 2).sum(1))
    for _ in range(6):
        large(x), small(x)
    before = page_faults()
    for _ in range(8):
        large(x), small(x)
    pages_of_result = x.nbytes // resource.getpagesize()
    assert page_faults() - before < pages_of_result
