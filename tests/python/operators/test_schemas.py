"""The operators' schemas against torch's: names, order and kinds of parameters of each ATen
overload, and that every Python callable that an operator claims exists."""

import re

import graph_text
import pytest

import torch

TABLE = graph_text.operators()
WITH_ATEN = sorted(name for name, row in TABLE.items() if row[0])

KINDS = {
    "SymInt": "int",
    "number": "Scalar",
    "Device": "ignored",
    "Layout": "ignored",
    "MemoryFormat": "ignored",
    "Generator": "ignored",
}


def parameters(schema):
    """(name, kind, is a list, keyword only) of each parameter; kinds as the graph sees them."""
    inside = schema[schema.index("(") + 1 : schema.rindex(") ->")]
    inside = re.sub(r"\([^()]*\)", "", inside)  # alias marks
    result, keyword_only = [], False
    for part in re.split(r",\s*(?![^\[]*\])", inside):
        if part.strip() == "*":
            keyword_only = True
            continue
        type_text, name = part.strip().split("=")[0].rsplit(" ", 1)
        base = re.match(r"\w+", type_text)[0]
        kind = "ignored" if name == "pin_memory" else KINDS.get(base, base)
        is_list = "[" in type_text and kind != "ignored"
        result.append((name, kind, is_list, keyword_only))
    return result


@pytest.mark.parametrize("name", WITH_ATEN)
def test_schema_is_that_of_the_overload(name):
    aten, schema, _, _ = TABLE[name]
    theirs = parameters(str(graph_text.overload(aten)._schema))
    ours = parameters(schema)
    # Parameters that can only have their default may be left out at the end.
    left_out = theirs[len(ours) :]
    assert ours == theirs[: len(ours)]
    assert all(kind == "ignored" for _, kind, _, _ in left_out)


@pytest.mark.parametrize("name", WITH_ATEN)
def test_number_of_results_is_that_of_the_overload(name):
    aten, schema, _, _ = TABLE[name]
    results = schema[schema.rindex("->") + 2 :].strip()
    count = results.count(",") + 1 if results.startswith("(") else 1
    assert count == len(graph_text.overload(aten)._schema.returns)


@pytest.mark.parametrize("name", sorted(name for name, row in TABLE.items() if row[2]))
def test_python_callables_exist(name):
    for path in TABLE[name][2]:
        if path == "Tensor.index":  # stands for subscripts
            continue
        thing = torch
        for part in path.split("."):
            if path.startswith("_VF."):
                thing = torch._VF if part == "_VF" else getattr(thing, part)
            else:
                assert hasattr(thing, part), path
                thing = getattr(thing, part)
