"""The literal reasons of src/: what the source says of why a program, or a part of it, is not converted.

The tests have to produce each of them; conftest.py asks at the end of a whole run which are missing. A
reason is a call of one of MAKERS with a text among its arguments:

    interpreter.refuse(ReasonCode::limit, cat("a loop of more than ", count, " iterations"));

Its text has … where the program's values stand, and there is one for each way of a conditional.
"""

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[3] / "src"
ROOMS = ("bind", "frontend", "python", "speculate", "syntax")

# By their texts, with why no test can produce them.
EXCEPTED = {
    "this build has no graph generator": "all builds have one",
    "TypeError: a partial without all of its arguments": "only Python 3.14 has placeholders",
}
# Those that no test produces yet, as "code: text". None may be added.
UNTESTED = Path(__file__).with_name("reasons_without_a_test.txt")

LOOPS = "dynamic_control"  # the code of what is said of loops

MAKERS = re.compile(
    r"\b(?:refuse|raise|fail|fail_first_iteration|note|disable|Refusal|Reason|CannotMerge|NotMerged)[({]"
    r"|\bwhy(?:_not)? = "
)
TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)\'|//[^\n]*|[\w:]+|\S')
CONSTANT = re.compile(r'constexpr (?:const char\*|std::string_view) (k\w+) =\s+("(?:[^"\\]|\\.)*")')
OPEN, CLOSE = ("(", "{", "["), (")", "}", "]")


@dataclass(frozen=True)
class Literal:
    """A reason as the source writes it."""

    code: str  # empty: the maker knows it
    text: str

    @property
    def name(self) -> str:
        return f"{self.code or 'any'}: {self.text}"

    def is_among(self, recorded: Iterable[tuple[str, str]]) -> bool:
        pattern = re.escape(self.text).replace("…", ".*")
        if not self.code:  # a maker that knows it may put something in front
            pattern = f".*{pattern}.*"
        fits = re.compile(pattern, re.DOTALL).fullmatch
        # Why an iteration is not converted becomes why its loop is not.
        is_cause = re.compile(f".*: {pattern}", re.DOTALL).fullmatch
        return any(
            (self.code in ("", code) and fits(details))
            or (self.code and code == LOOPS and is_cause(details))
            for code, details in recorded
        )


def split_at(tokens: list[str], separator: str) -> list[list[str]]:
    """The parts between the separators that stand in no parentheses."""
    parts: list[list[str]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token in OPEN) - (token in CLOSE)
        if token == separator and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def texts(tokens: list[str], constants: dict[str, str]) -> list[str]:
    """What the expression may give."""
    choice = split_at(tokens, "?")
    if len(choice) > 1:
        sides = split_at([token for part in choice[1:] for token in ["?", *part]][1:], ":")
        return [each for side in sides for each in texts(side, constants)]
    if len(terms := split_at(tokens, "+")) > 1:
        return joined(terms, constants)
    if tokens[:2] in (["cat", "("], ["std::string", "("]) and tokens[-1] == ")":
        return joined(split_at(tokens[2:-1], ","), constants)
    if tokens and all(token.startswith('"') for token in tokens):
        text = "".join(token[1:-1] for token in tokens)
        return [text.replace('\\"', '"')]
    if len(tokens) == 1 and tokens[0] in constants:
        return texts([constants[tokens[0]]], constants)
    return ["…"]


def joined(parts: list[list[str]], constants: dict[str, str]) -> list[str]:
    return ["".join(each) for each in itertools.product(*(texts(p, constants) for p in parts))]


def arguments_after(source: str, start: int, *, ends_at_semicolon: bool) -> list[list[str]]:
    tokens = []
    depth = 1
    for match in TOKEN.finditer(source, start):
        token = match[0]
        depth += (token in OPEN) - (token in CLOSE)
        if depth == 0 or (ends_at_semicolon and token == ";"):
            break
        if not token.startswith("//"):
            tokens.append(token)
    while tokens[:1] == ["{"] and tokens[-1:] == ["}"]:
        tokens = tokens[1:-1]
    return split_at(tokens, ",")


def literals_in(source: str) -> Iterator[Literal]:
    constants = {match[1]: match[2] for match in CONSTANT.finditer(source)}
    for maker in MAKERS.finditer(source):
        arguments = arguments_after(source, maker.end(), ends_at_semicolon=maker[0][-1] == " ")
        code = ""
        for argument in arguments:
            name = argument[-1].removeprefix("speculate::") if argument else ""
            if name.startswith("ReasonCode::"):
                code = name.removeprefix("ReasonCode::")
            elif maker[0] == "raise(" and name.startswith("PyExc_"):
                code = "would_raise"
            for text in texts(argument, constants):
                if re.search(r"\w", text):
                    yield Literal(code, text)


def places() -> dict[Literal, list[str]]:
    """Each reason, and the files that make it."""
    found: dict[Literal, list[str]] = {}
    for path in sorted(SOURCES.rglob("*")):
        if path.suffix in (".h", ".cpp") and path.relative_to(SOURCES).parts[0] in ROOMS:
            for literal in literals_in(path.read_text()):
                found.setdefault(literal, []).append(str(path.relative_to(SOURCES)))
    return found


def unseen(recorded: Iterable[tuple[str, str]]) -> list[str]:
    """What is wrong: the reasons that are neither among the recorded ones nor known to be untested, and
    what the source has no more of those."""
    recorded = list(recorded)
    every = {literal.name: (literal, files) for literal, files in places().items()}
    known = {*UNTESTED.read_text().splitlines()}
    missing = [
        f"no test produces this reason ({', '.join(sorted(set(files)))}): {name}"
        for name, (literal, files) in every.items()
        if name not in known and literal.text not in EXCEPTED and not literal.is_among(recorded)
    ]
    gone = known - every.keys()
    gone |= EXCEPTED.keys() - {literal.text for literal, _ in every.values()}
    return missing + [f"the source has no such reason: {name}" for name in sorted(gone)]
