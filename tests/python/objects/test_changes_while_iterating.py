"""Lists, dicts and sets that change while a loop goes over them: the program does what it does eagerly, by a graph or
not."""

import pytest
from differential import Program, compare, default_dtype, observe, seeded

import torch


def check_same(step, batches):
    def build():
        return Program(step, [tuple(each) for each in batches()])

    with default_dtype(torch.float64):
        expected = observe(seeded(build, {}), converted=False)
        actual = observe(seeded(build, {}), converted=True)
        assert "internal_error" not in {each["code"] for each in actual.stats["reasons"]}
        for index, (one, other) in enumerate(zip(expected.steps, actual.steps, strict=True)):
            compare(one, other, f"after call {index}", 1e-10)


def matrices():
    return [(torch.randn(3, 4), 0.5) for _ in range(6)]


def pops_from_the_dict_it_goes_over(x, s):
    table = {"a": 0.1, "b": s}
    for _, value in table.items():
        x = x * value
        table.pop("b", None)
    return x


def adds_to_the_dict_it_goes_over(x, s):
    table = {"a": 0.1}
    for key in table:
        x = x * table[key]
        table[key + "a"] = s
    return x


def overwrites_in_the_dict_it_goes_over(x, s):
    table = {"a": 0.1, "b": s}
    for key, value in table.items():
        table["b"] = 2.0
        table[key] = value + 1
        x = x * value
    return x, table


def swaps_a_key_of_the_dict_it_goes_over(x, s):
    table = {"a": 0.1, "b": s}
    for key in table:
        del table[key]
        table["c"] = s
        x = x + 1
    return x


def appends_to_the_list_it_goes_over(x, s):
    items = [x, x * s]
    for item in items:
        if len(items) < 5:
            items.append(item + 1)
        x = x + item
    return x, items


def pops_from_the_list_it_goes_over(x, s):
    items = [x, x * s, x + s, x - s]
    for item in items:
        items.pop(0)
        x = x + item
    return x, items


def inserts_into_the_list_it_enumerates(x, s):
    items = [x, x * s]
    for index, item in enumerate(items):
        if index < 3:
            items.insert(0, item * 2)
        x = x + item
    return x, len(items)


def shortens_the_list_it_goes_over_backwards(x, s):
    items = [x, x * s, x + s]
    for item in reversed(items):
        items.pop()
        x = x + item
    return x, items


def zips_a_list_that_grows(x, s):
    items = [x]
    for item, factor in zip(items, (1.0, s, 3.0), strict=False):
        items.append(item * factor)
        x = x + item
    return x, items


def rebinds_the_list_it_goes_over(x, s):
    items = [x, x * s]
    for item in items:
        items = [*items, item]
        x = x + item
    return x, len(items)


def iterates_over_a_set_that_changes(x, s):
    numbers = {1, 2}
    for number in numbers:
        numbers.add(number + 10)
        x = x * number
    return x


def keeps_views_of_a_dict_that_changes(x, s):
    table = {"a": x}
    values, keys, items = table.values(), table.keys(), table.items()
    table["b"] = x * s
    y = sum(values) + len(items)
    table["b"] = x - s
    for value in values:
        y = y + value
    for _, value in items:
        y = y * value
    return y, list(keys), len(values), "b" in keys


def gives_a_view_of_a_dict_away(x, s):
    table = {"a": x, "b": x * s}
    return type(table.values()).__name__, type(table.items()).__name__, x + s


def returns_a_view_of_a_dict(x, s):
    return {"a": x * s}.values()


@pytest.mark.parametrize(
    "step",
    [
        pops_from_the_dict_it_goes_over, adds_to_the_dict_it_goes_over,
        overwrites_in_the_dict_it_goes_over, swaps_a_key_of_the_dict_it_goes_over,
        appends_to_the_list_it_goes_over, pops_from_the_list_it_goes_over,
        inserts_into_the_list_it_enumerates, shortens_the_list_it_goes_over_backwards,
        keeps_views_of_a_dict_that_changes, gives_a_view_of_a_dict_away, returns_a_view_of_a_dict,
        zips_a_list_that_grows, rebinds_the_list_it_goes_over, iterates_over_a_set_that_changes,
    ],
    ids=lambda step: step.__name__,
)  # fmt: skip
def test_containers_that_change_while_a_loop_goes_over_them(step):
    check_same(step, matrices)
