"""Labelled binary trees: syntax trees of Python's standard library, or the Stanford Sentiment Treebank."""

import ast
import sysconfig
from pathlib import Path

CLASSES = 5


class Leaf:
    """A word. `word` is its text at first, then its number in the vocabulary."""

    def __init__(self, word, label):
        self.word = word
        self.label = label
        self.left = self.right = None


class Branch:
    def __init__(self, left, right, label):
        self.word = None
        self.left = left
        self.right = right
        self.label = label


def leaves(tree):
    """From left to right; without recursion, since some expressions are deeper than Python's stack."""
    found, waiting = [], [tree]
    while waiting:
        node = waiting.pop()
        if node.word is not None:
            found.append(node)
        else:
            waiting += [node.right, node.left]
    return found


def load(sst, limit, least_words=2, most_words=40):
    """Trees and the size of their vocabulary; without a treebank, of Python's standard library."""
    every = read_sst(sst) if sst else read_standard_library()
    trees = []
    for tree in every:
        if least_words <= len(leaves(tree)) <= most_words:
            trees.append(tree)
        if len(trees) == limit:
            break
    numbers = {}
    for tree in trees:
        for leaf in leaves(tree):
            leaf.word = numbers.setdefault(leaf.word, len(numbers))
    return trees, len(numbers)


def batch_of(trees, step, size):
    """The trees of one step: the next ones, from the first one again where they end."""
    return [trees[(step * size + i) % len(trees)] for i in range(size)]


# --- the Stanford Sentiment Treebank's format: (3 (2 It) (4 works)) ---


def read_sst(path):
    """Lines and words end at their ASCII characters: some words have other spaces within them."""
    for line in Path(path).read_text(encoding="utf-8").split("\n"):
        tokens = [each for each in line.replace("(", " ( ").replace(")", " ) ").split(" ") if each]
        if tokens:
            yield parse_sst(iter(tokens))


def parse_sst(tokens):
    """The tree that begins with the next token, an opening bracket."""
    assert next(tokens) == "("
    return parse_after_bracket(tokens)


def parse_after_bracket(tokens):
    label = int(next(tokens))
    token = next(tokens)
    if token != "(":
        assert next(tokens) == ")"
        return Leaf(token, label)
    left = parse_after_bracket(tokens)
    assert next(tokens) == "("
    right = parse_after_bracket(tokens)
    assert next(tokens) == ")"
    return Branch(left, right, label)


# --- Python's own syntax: each expression is a tree; what is to be predicted is its kind ---

KINDS = {
    ast.Call: 0, ast.Attribute: 1, ast.Subscript: 1, ast.BinOp: 2, ast.BoolOp: 2, ast.Compare: 2,
    ast.UnaryOp: 2, ast.Tuple: 3, ast.List: 3, ast.Dict: 3, ast.Set: 3,
}  # fmt: skip


def read_standard_library():
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.Return, ast.Assign, ast.Expr)) and node.value is not None:
                yield tree_of(node.value)


def tree_of(node):
    """A binary tree: the parts of an expression hang on its first one, one after the other."""
    label = KINDS.get(type(node), 4)
    parts = [tree_of(child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    name = getattr(node, "id", None) or getattr(node, "attr", None)
    if name or not parts:
        parts.append(Leaf(name or type(getattr(node, "value", node)).__name__, label))
    tree = parts[0]
    for part in parts[1:]:
        tree = Branch(tree, part, label)
    return tree
