"""json in a step: known texts are read, and known values written, when the graph is made; other texts behind it."""

import collections
import json

import pytest
from differential import Program, differential

import torch

TEXT = '{"name": "layer", "sizes": [1, 2.5, -3e2], "last": null, "on": true, "inner": {"é": "\\u00e9"}}'
DECODER = json.JSONDecoder()
kept = {"rate": 0.5, "names": ["a", "b"]}


def calls(*between):
    made = [(torch.randn(3), n) for n in range(2, 9)]
    for change in between:
        made += [change, *((torch.randn(3), n) for n in range(6))]
    return made


READ = {
    "an object": lambda: json.loads(TEXT),
    "empty": lambda: (json.loads("{}"), json.loads(" [] "), json.loads('""')),
    "constants": lambda: json.loads("[NaN, Infinity, -Infinity, false]"),
    "is in": lambda: "partitions" in json.loads("{}"),
    "an item": lambda: json.loads(TEXT)["sizes"][1] + 1,
    "bytes": lambda: json.loads(b'{"a": 1}'),
    "part of a text": lambda: DECODER.raw_decode('{"a": 1} and more'),
}


@differential(hits=4)
@pytest.mark.parametrize("name", READ)
def test_known_texts_are_read(name):
    read = READ[name]
    return Program(lambda x, n: (x * 2, read()), calls())


@differential(hits=4)
def test_what_was_read_is_new_in_each_call():
    earlier = []

    def step(x, n):
        read = json.loads(TEXT)
        read["sizes"].append(x.sum() * n)
        again = json.loads(TEXT)
        return x * 2, read, again

    def convert(step):
        import torchjanus

        converted = torchjanus.function(step)

        def call(*given):
            result = converted(*given)
            earlier.append(result[1])
            return (*result, len({id(each) for each in earlier}) == len(earlier))

        return call, converted

    return Program(lambda *given: (*step(*given), True), calls(), convert=lambda _: convert(step))


@differential(hits=8)
def test_the_text_changes():
    held = {"text": '{"scale": 2}'}

    def step(x, n):
        return x * json.loads(held["text"])["scale"]

    return Program(step, calls(lambda: held.update(text='{"scale": 3.5}')))


@differential(reasons=["unknown_callable"])
@pytest.mark.parametrize("hook", ["object_hook", "object_pairs_hook", "parse_float", "parse_int"])
def test_a_hook_of_the_program(hook):
    seen = []

    def note(value):
        seen.append(str(value))
        return value

    return Program(lambda x, n: (x * 2, json.loads(TEXT, **{hook: note}), len(seen)), calls())


@differential(reasons=["would_raise"])
def test_a_text_that_is_not_json():
    def step(x, n):
        try:
            return x * 2, json.loads("{1}")
        except json.JSONDecodeError as error:
            return x * 3, str(error)

    return Program(step, calls())


WRITTEN = {
    "known": lambda x, n: json.dumps({"a": [1, 2.5, None, True], "b": "é", 3: (4,)}),
    "options": lambda x, n: json.dumps(
        {"b": [1, {}], "a": "é"}, indent=2, sort_keys=True, ensure_ascii=False
    ),
    "existing": lambda x, n: json.dumps(kept),
    "known, asked": lambda x, n: json.dumps([1, 2]).split(","),
    "a number that varies": lambda x, n: json.dumps({"n": n, "half": n / 2, "more": n > 3}),
    "a number of the run": lambda x, n: json.dumps([x[0].item(), f"{n} steps"], indent=1),
    "separators": lambda x, n: json.dumps({"n": [n]}, separators=(",", ":")),
    "in a text": lambda x, n: "log: " + json.dumps({"n": n}) + "\n",
}


@differential(hits=3)
@pytest.mark.parametrize("name", WRITTEN)
def test_values_are_written(name):
    write = WRITTEN[name]
    return Program(lambda x, n: (x * 2, write(x, n)), calls())


@differential(hits=3)
def test_what_is_written_is_as_it_is_then():
    record = {"n": 0, "all": [0]}

    def step(x, n):
        record["n"] = n
        before = json.dumps(record)
        record["all"][0] = n * 2
        record["n"] = -1
        print(before)
        return x * 2, before, json.dumps(record)

    return Program(step, calls(), watch=[record])


class Own(dict):
    pass


OTHERS = {
    "a tensor": lambda x: {"x": x},
    "of a class": lambda x: Own(a=1),
    "ordered": lambda x: collections.OrderedDict(a=x.sum().item()),
    "an object as a key": lambda x: {(1, 2): 3},
}


@differential(reasons=["unknown_callable"])
def test_what_json_can_not_write():
    def step(x, n):
        return x * 2, json.dumps({(1, 2): n})

    return Program(step, calls())


@pytest.mark.parametrize("name", OTHERS)
def test_other_values(name):
    """They are written or refused as in eager, whatever of it runs as a graph."""
    import torchjanus

    def step(x):
        try:
            return json.dumps(OTHERS[name](x), default=str)
        except TypeError as error:
            return str(error)

    converted = torchjanus.function(step)
    for _ in range(7):
        x = torch.randn(2)
        assert step(x) == converted(x)


def test_a_list_in_itself():
    import torchjanus

    endless: list = []
    endless.append(endless)

    def step(x):
        try:
            return x * 2, json.dumps(endless)
        except (ValueError, RecursionError) as error:
            return x, str(error)

    converted = torchjanus.function(step)
    for _ in range(6):
        x = torch.ones(2)
        assert step(x)[1] == converted(x)[1]
