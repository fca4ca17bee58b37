"""Statements around tensors: assignments, loops, nested functions, `try`, `with`. PYTEST_DONT_REWRITE"""

from differential import Program, differential

import torch


def calls(*shapes, count=6):
    return [tuple(torch.randn(*shape) for shape in shapes) for _ in range(count)]


@differential(hits=2, graphs=1)
def test_statements():
    def step(x):
        first, *rest = x
        total = first
        for row in rest:
            total += row
        a = b = total * 2
        a, b = b + 1, a
        (c, d), e = (a, b), total
        numbers = [1, 2, 3]
        numbers.append(4)
        numbers[0] = 10
        table = {"k": c}
        table["k2"] = d
        table.update(k3=e)
        del table["k"]
        count: int = 0
        while count < len(numbers):
            count += 1
            if count == 2:
                continue
            if count == 4:
                break
        else:
            raise RuntimeError
        assert count == 4, "never"
        if (n := len(table)) > 1:
            e = e * n
        pass
        return a, table, numbers, count, e

    return Program(step, calls((3, 2)))


@differential(hits=2, graphs=1)
def test_early_return_and_nested_functions():
    def step(x):
        scale = 2.0

        def inner(y, depth):
            nonlocal scale
            if depth == 0:
                return y * scale
            scale = scale + 1
            return inner(y + 1, depth - 1)

        if x.shape[0] == 3:
            return inner(x, 3)
        return x

    return Program(step, calls((3, 2)))


@differential(hits=2, graphs=1)
def test_try_finally_and_known_context_managers():
    def step(x):
        try:
            with torch.no_grad():
                y = x * 2
            with torch.enable_grad():
                z = y + 1
        finally:
            w = z * 3
        return w

    return Program(step, calls((3,)))
