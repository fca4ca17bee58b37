"""What a page about the architecture may be: short, in short sentences, with examples that are true.

A code block behind `<!-- from FILE -->` is an excerpt of that file: its lines stand there in this order. Where lines
are left out between two, the block may say so by a line `…`.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
WHOLE = ROOT / "docs" / "architecture.md"
PAGES = sorted((ROOT / "docs" / "architecture").glob("*.md"))
MOST_WORDS = 1500
LONGEST_SENTENCE = 25  # words
SUBJECTS = {
    "control-flow", "cutting", "dynamic-batching", "execution", "fusion", "gradients", "guards", "state",
}  # fmt: skip

FENCE = re.compile(r"^```[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXCERPT = re.compile(r"<!-- from (\S+) -->\n```[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)

pages = pytest.mark.parametrize("page", [WHOLE, *PAGES], ids=lambda page: page.stem)


def prose(text):
    """The words of a page: no code blocks, no targets of links, no comments."""
    text = FENCE.sub("", text)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    return re.sub(r"\]\([^)]*\)", "]", text)


def sentences(text):
    """Of paragraphs, items of lists and cells of tables. What stands in backticks is a word."""
    text = re.sub(r"`[^`\n]*`", "code", prose(text))
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*|#]|\d+\.) ?)", text):
        cells = block.split("|") if block.lstrip().startswith("|") else [block]
        for cell in cells:
            yield from re.split(r"(?<=[.:;?!])\s|(?<=[.:;?!]\*\*)\s", " ".join(cell.split()))


@pages
def test_page_is_short(page):
    assert len(prose(page.read_text()).split()) <= MOST_WORDS


@pages
def test_sentences_are_short(page):
    long = [each for each in sentences(page.read_text()) if len(each.split()) > LONGEST_SENTENCE]
    assert not long


@pages
def test_page_has_a_picture_or_an_example(page):
    assert FENCE.search(page.read_text())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_links_to_files_and_is_linked_to(page):
    assert "](../../src/" in page.read_text() or "](../../tests/" in page.read_text()
    assert f"](architecture/{page.name})" in WHOLE.read_text()


def test_every_subject_has_a_page():
    assert {page.stem for page in PAGES} >= SUBJECTS


def excerpts():
    for page in [WHOLE, *PAGES]:
        for file, lines in EXCERPT.findall(page.read_text()):
            yield pytest.param(file, lines, id=f"{page.stem}-{Path(file).stem}")


@pytest.mark.parametrize(("file", "lines"), list(excerpts()))
def test_excerpt_is_in_its_file(file, lines):
    text = iter((ROOT / file).read_text().splitlines())
    for line in lines.splitlines():
        assert line == "…" or line in text, f"not in {file}, or not behind the line before: {line}"
