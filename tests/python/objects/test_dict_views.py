"""dict.keys(), dict.values() and dict.items() show the dict as it is when somebody looks.
PYTEST_DONT_REWRITE"""

import collections
import types

import pytest
from differential import Program, differential

import torch
import torchjanus


def at_once(step):
    return (torchjanus.function(step, profile_runs=0),) * 2


def program(step, *watch, count=4):
    return Program(step, [(torch.randn(3),) for _ in range(count)], watch=watch, convert=at_once)


KINDS = {
    "dict": dict,
    "ordered": collections.OrderedDict,
    "default": lambda items: collections.defaultdict(int, items),
}


def watched(use):
    """A test of the use, on dicts that existed before the call and on those that the run makes."""

    @pytest.mark.parametrize("is_made", [False, True])
    @pytest.mark.parametrize("kind", KINDS)
    @differential(hits=4, graphs=1)
    def test(kind, is_made):
        existing = KINDS[kind]({1: 2, 2: 3})

        def step(x):
            items = {1: 2, 2: 3} if is_made else existing
            return x * 2, use(items)

        return program(step, existing)

    return test


@watched
def test_what_is_added_is_seen(items):
    keys, values, pairs = items.keys(), items.values(), items.items()
    items[4] = 7
    seen = (
        list(keys),
        len(values),
        list(pairs),
        4 in keys,
        7 in values,
        (4, 7) in pairs,
        sum(values),
    )
    del items[4]
    return seen, list(keys), list(values), max(keys), bool(pairs)


@watched
def test_what_is_emptied_is_empty(items):
    keys = items.keys()
    items.clear()
    empty = bool(keys), len(keys), list(keys)
    items[1], items[2] = 2, 3
    return empty, list(keys)


@watched
def test_views_are_compared_as_sets(items):
    keys, other = items.keys(), {2: 5, 1: 2}
    before = keys == other.keys(), items.items() == other.items(), items.values() == other.values()
    items[4] = 5
    after = (
        keys == other.keys(),
        keys > other.keys(),
        keys == {1, 2, 4},
        keys == (1, 2, 4),
        keys != [1],
    )
    del items[4]
    return before, after, keys <= {1, 2, 3}, {1} < keys


@watched
def test_operators_of_sets(items):
    keys = items.keys()
    items[4] = 5
    made = keys & {1, 4}, keys | [9], keys - {1}, keys ^ {1, 5}, {1, 9} - keys
    del items[4]
    right = {1, 4}, {1, 2, 4, 9}, {2, 4}, {2, 4, 5}, {9}
    return (
        [one == other for one, other in zip(made, right)],
        keys.isdisjoint([5]),
        items.items().isdisjoint([(1, 2)]),
    )


@watched
def test_what_views_can_not_do(items):
    raised = []
    for use in (
        lambda: items.keys()[0],
        lambda: items.keys() + (1,),
        lambda: {items.keys(): 1},
        lambda: items.values() < items.values(),
    ):
        try:
            use()
        except TypeError:
            raised.append("TypeError")
    try:
        items.keys().count(1)
    except AttributeError:
        raised.append("AttributeError")
    return raised


@watched
def test_views_that_are_handed_on(items):
    def grown(keys):
        items[9] = 1
        return len(keys), list(keys)

    views = [items.keys(), items.values()]
    seen = grown(items.keys()), [list(each) for each in views]
    del items[9]
    return seen, [list(each) for each in views]


@watched
def test_values_that_change_on_the_way(items):
    iterator, seen = iter(items.items()), []
    seen.append(next(iterator))
    items[2] = 50
    seen.append(next(iterator))
    items[2] = 3
    return seen, next(iterator, "end"), list(reversed(items.keys()))


@differential(reasons=["would_raise"])
@pytest.mark.parametrize("part", ["keys", "items"])
def test_a_dict_that_grows_while_it_is_gone_through(part):
    items = {1: 2, 2: 3}

    def step(x):
        try:
            for each in getattr(items, part)():
                items[len(items) + 5] = each
        except RuntimeError:
            return x * 3
        return x * 2

    return program(step, items)


@differential(hits=10, graphs=1)
def test_one_side_of_a_branch_writes():
    items = {1: torch.ones(3)}
    values = items.values()

    def step(x):
        held = {1: x}
        seen = held.values()
        if x.sum() > 0:
            held[1] = x * 2
        else:
            held[1] = x * 3
        return sum(seen)

    return Program(step, [(torch.randn(3),) for _ in range(16)], watch=[values])


@differential(hits=4, graphs=1)
def test_attributes_of_an_object():
    holder = types.SimpleNamespace(first=1, second=2)

    def step(x):
        names = vars(holder).keys()
        holder.third = 5
        seen = list(names), len(names)
        del holder.third
        return x * 2, seen, list(names)

    return program(step, holder)


def one_object(items):
    keys = items.keys()
    same = keys
    items[4] = 3
    return keys is same


def other_object(items):
    keys = items.values()
    items[4] = 3
    return keys is items.values()


def not_the_object(items):
    pairs = items.items()
    same = pairs
    items[4] = 3
    return pairs is not same


@pytest.mark.parametrize("is_made", [False, True])
@pytest.mark.parametrize("use", [one_object, other_object, not_the_object])
@differential(reasons=["expression"])
def test_the_identity_of_a_view_whose_dict_changed(is_made, use):
    existing = {1: 2}

    def step(x):
        items = {1: 2} if is_made else existing
        result = x * 2 if use(items) else x * 3
        del items[4]
        return result

    return program(step, existing)


@watched
def test_the_identity_of_views_of_two_kinds(items):
    keys, values = items.keys(), items.values()
    same = keys
    return keys is same, keys is values, keys is None, keys is items, keys in [same]


@differential()
def test_tuples_of_views():
    def step(x):
        made = {"a": x + 1, "b": x * 2}
        values, keys, items = tuple(made.values()), tuple(made.keys()), tuple(made.items())
        made["c"] = x
        joined = torch.cat(values), torch.stack(tuple(made.values()))
        return len(values), type(values), keys, len(items), values + (1,), values[0], joined

    return program(step)
