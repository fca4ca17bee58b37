"""Regular expressions on known texts."""

import re

import pytest
from differential import Program, differential

import torch

PATTERN = re.compile(r"(?P<layer>\w+)\.(\d+)(\.bias)?")
BYTES = re.compile(rb"\d+")
NAME = "layers.12.bias, heads.3"

EXPRESSIONS = {
    "match": lambda: PATTERN.match(NAME) is not None,
    "no match": lambda: PATTERN.match("12") is None,
    "truth": lambda: bool(PATTERN.search(NAME)) and not PATTERN.fullmatch(NAME),
    "groups": lambda: PATTERN.match(NAME).groups(),
    "group": lambda: (PATTERN.match(NAME).group(1), PATTERN.match(NAME).group("layer", 2)),
    "item": lambda: int(PATTERN.match(NAME)[2]) + 1,
    "dict": lambda: PATTERN.match(NAME).groupdict(),
    "span": lambda: (PATTERN.search(NAME, 3).span(), PATTERN.search(NAME).end("layer")),
    "attributes": lambda: (PATTERN.match(NAME).string, PATTERN.match(NAME).re.pattern),
    "sub": lambda: (PATTERN.sub(r"\2", NAME), PATTERN.subn("-", NAME, count=1)),
    "split": lambda: PATTERN.split(NAME),
    "findall": lambda: PATTERN.findall(NAME),
    "finditer": lambda: [each.group() for each in PATTERN.finditer(NAME)],
    "bytes": lambda: BYTES.findall(b"1 and 22"),
    "functions": lambda: (
        re.sub(r"\d+", "#", NAME),
        re.split(r"[.,]\s*", NAME),
        re.findall("LAYERS", NAME, re.IGNORECASE),
    ),
    "compiled": lambda: re.compile(r"h\w+", re.ASCII).search(NAME).group(),
    "expand": lambda: PATTERN.match(NAME).expand(r"\g<layer>/\2"),
    "escape": lambda: re.escape("a.b"),
}


def calls(*between):
    made = [(torch.randn(3),) for _ in range(7)]
    for change in between:
        made += [change, *((torch.randn(3),) for _ in range(6))]
    return made


@differential(hits=4)
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_known_texts(name):
    expression = EXPRESSIONS[name]

    def step(x):
        return x * 2, expression()

    return Program(step, calls())


@differential(hits=8)
def test_the_text_and_the_pattern_change():
    held = {"text": "block.1", "pattern": PATTERN}

    def step(x):
        found = held["pattern"].match(held["text"])
        return x * (2 if found else 3), found and found.group(2)

    return Program(
        step,
        calls(
            lambda: held.update(text="block"),
            lambda: held.update(pattern=re.compile("(b)(l)")),
            lambda: held.update(text="block.2"),
        ),
    )


@differential(hits=8)
def test_a_match_that_is_kept():
    held = {"match": PATTERN.match("block.1")}

    def step(x):
        return x * int(held["match"].group(2))

    return Program(step, calls(lambda: held.update(match=PATTERN.match("block.5"))))


@differential(reasons=["unknown_callable"], hits=0)
def test_a_function_that_makes_the_replacements():
    seen = []

    def step(x):
        return x * 2, PATTERN.sub(lambda match: seen.append(1) or match[2], NAME)

    return Program(step, calls(), [seen])


@differential(reasons=["unknown_callable"], hits=0)
def test_a_text_of_a_number_that_varies():
    def step(x):
        text = f"{float(x.sum()):.1f}"
        return x * 2, re.compile("1").search(text) is None

    return Program(step, calls())
