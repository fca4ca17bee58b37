"""torch.cat passes over vectors without elements: a cache of keys begins as one."""

import pytest
from differential import Program, differential

import torch


def empty(**properties):
    return torch.tensor([], **properties)


CASES = {
    "in front": lambda x, e: torch.cat([e, x], dim=-2),
    "behind": lambda x, e: torch.cat((x, e, x), 1),
    "by keyword": lambda x, e: torch.concat(dim=1, tensors=[e, x, e, x * 2]),
    "of another dtype": lambda x, e: torch.concatenate([e.float(), x.float().half()], 1),
    "nothing else": lambda x, e: (torch.cat([e, e]), x * 2),
    "vectors": lambda x, e: torch.cat([e, x.flatten()]),
    "that requires a gradient": lambda x, e: torch.cat([empty(requires_grad=True), x], 1),
    "of another rank": lambda x, e: torch.cat([x[:, :0], x], 1),
}


@pytest.mark.parametrize("case", CASES)
@differential()
def test_cat(case):
    e, w = empty(), torch.randn(3, requires_grad=True)

    def step(x):
        w.grad = None
        results = CASES[case](x * w, e)
        first = results[0] if isinstance(results, tuple) else results
        if first.numel():
            first.square().sum().backward()
        return results

    return Program(step, [(torch.randn(2, 4, 3),) for _ in range(7)], [e, w])


@differential(hits=3)
def test_cache_that_grows():
    w, caches = torch.randn(3, 3), {}

    def step(x):
        caches["keys"] = torch.cat([caches.get("keys", caches["nothing"]), x @ w], dim=1)
        return caches["keys"].sum()

    def again():
        caches.clear()
        caches["nothing"] = empty()

    again()
    calls = [*[(torch.randn(2, 1, 3),)] * 5, again, *[(torch.randn(2, 1, 3),)] * 5]
    return Program(step, calls, [caches])
