"""The order of sets of constants: the compiler makes frozensets of them, which the profiled code has, too."""

import sys

from differential import Program, differential

import torch


def batches(count=8):
    return [(torch.randn(3),) for _ in range(count)]


@differential(hits=5)
def test_loops_through_sets_of_constants():
    def step(x):
        for scale in {16, 1, 2, 3, 4}:
            x = x * scale + 1
        for scale in {7, 15}:
            x = x * scale + 1
        return x

    return Program(step, batches())


@differential(hits=5)
def test_comprehensions_through_sets_of_constants():
    def step(x):
        pairs = [(a, b) for a in {7, 15} for b in {1, 9, 17, 3, 4, 5}]
        mixed = [each for each in {-1, (1, 2), 2.5, True, None, "a"}]
        names = list(name for name in {"alpha", "beta", "gamma", "delta", "e", "f"})
        return x * 2, pairs, mixed, names, {key: 1 for key in {15, 7, 31}}, 3 in {1, 2, 3}

    return Program(step, batches())


# Since 3.14 the last of them has the order in which such a set grows; larger ones have not.
@differential(reasons=["dynamic_value"] if sys.version_info < (3, 14) else ())
def test_displays_as_values():
    def step(x):
        small = [*{1, 2, 3}], list({7, 15})
        return x * 2, small, list({15, 7, 23})

    return Program(step, batches())


@differential(reasons=["unknown_callable"])
def test_loops_of_a_function_that_is_cut():
    def step(x):
        with open("/dev/null") as file:
            file.read()
        for scale in {16, 1, 2, 3, 4}:
            x = x * scale + 1
        return x

    return Program(step, batches())
