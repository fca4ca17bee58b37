"""Which reasons of src/ no test has produced.

usage: reasons.py RECORD

RECORD is what `TORCHJANUS_REASONS=RECORD pytest` wrote: a line for each code and sentence that a test has
seen. A literal of src/ is seen if a sentence with its code has the literal's texts in their order.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).resolve().parent.parent / "src"
BEGIN = re.compile(r"(?:refuse|fallback)\(\s*(?:speculate::)?ReasonCode::(\w+)\s*,")
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')


@dataclass
class Literal:
    """A reason as the source writes it."""

    place: str
    code: str
    texts: list[str]  # between them stands what the program decides

    def is_seen(self, sentences: list[str]) -> bool:
        pattern = re.compile(".*".join(re.escape(text) for text in self.texts))
        return any(pattern.search(sentence) for sentence in sentences)


def end_of_call(source: str, start: int) -> int:
    """Where the parenthesis closes that is open at `start`."""
    depth = 1
    for match in re.compile(r'"(?:[^"\\]|\\.)*"|[()]').finditer(source, start):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if depth == 0:
            return match.start()
    return len(source)


def literals() -> Iterator[Literal]:
    for path in sorted(SOURCES.rglob("*.cpp")):
        source = path.read_text()
        for match in BEGIN.finditer(source):
            arguments = source[match.end() : end_of_call(source, match.end())]
            # Texts that follow each other without anything between are one.
            texts = TEXT.findall(re.sub(r'"\s+"', "", arguments))
            line = source.count("\n", 0, match.start()) + 1
            place = f"{path.relative_to(SOURCES)}:{line}"
            if "?" in TEXT.sub("", arguments):  # one of several
                for text in texts:
                    yield Literal(place, match[1], [text])
            elif texts:
                yield Literal(place, match[1], texts)


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    sentences: dict[str, list[str]] = {}
    for line in sorted(set(Path(sys.argv[1]).read_text().splitlines())):
        code, _, sentence = line.partition("\t")
        sentences.setdefault(code, []).append(sentence)
    every = list(literals())
    unseen = [each for each in every if not each.is_seen(sentences.get(each.code, []))]
    for each in unseen:
        print(f"{each.place}: {each.code}: {' … '.join(each.texts)}")
    print(f"{len(every) - len(unseen)} of {len(every)} reasons of src/ were seen")
    return int(bool(unseen))


if __name__ == "__main__":
    sys.exit(main())
