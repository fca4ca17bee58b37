"""Makes a program smaller while a property holds: statements, branches and calls are left out."""

import ast
import copy
import functools
import time
from collections.abc import Callable, Iterator

Candidate = Callable[[], str | None]

# What a program keeps: without these it is no program any more.
_KEPT = ("build", "step", "calls", "return Program", "import", "globals_shown", "closure_shown")


def shrink(text: str, holds: Callable[[str], bool], seconds: float = 90) -> str:
    """The smallest text found in that time for which `holds` is true, as it is for `text`."""
    end = time.monotonic() + seconds
    best = ast.unparse(ast.parse(text))
    if not holds(best):
        return text
    position, unsuccessful = 0, 0
    left = candidates(best)
    while unsuccessful < len(left) and time.monotonic() < end:
        smaller = left[position % len(left)]()
        if smaller is not None and len(smaller) < len(best) and holds(smaller):
            # What followed the cut follows it still, at about the same position.
            best, left, unsuccessful = smaller, candidates(smaller), 0
        else:
            position, unsuccessful = position + 1, unsuccessful + 1
    return best


def candidates(text: str) -> list[Candidate]:
    """Smaller programs, the boldest cuts first; each is written when it is asked for."""
    tree = ast.parse(text)
    places = sorted(_bodies(tree), key=lambda place: -place[2])
    result: list[Candidate] = [
        functools.partial(_changed, tree, change, number, index)
        for number, index, _ in places
        for change in (_without, _unwrapped)
    ]
    return [*result, *_fewer_calls(tree), *_simpler_expressions(tree)]


def _changed(tree: ast.AST, change: Callable, number: int, index: int) -> str | None:
    smaller = change(copy.deepcopy(tree), number, index)
    return None if smaller is None else ast.unparse(ast.fix_missing_locations(smaller))


def _statement_lists(tree: ast.AST) -> list[list[ast.stmt]]:
    result = []
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            value = getattr(node, name, None)
            if isinstance(value, list) and value:
                result.append(value)
    return result


def _bodies(tree: ast.AST) -> Iterator[tuple[int, int, int]]:
    """Number of the list, index in it, and size of each statement that may go."""
    for number, statements in enumerate(_statement_lists(tree)):
        for index, statement in enumerate(statements):
            text = ast.unparse(statement)
            if not text.startswith(("def build", "def step", "calls = ", "return Program")):
                yield number, index, len(text)


def _without(tree: ast.AST, number: int, index: int) -> ast.AST:
    statements = _statement_lists(tree)[number]
    if len(statements) == 1:
        statements[:] = [ast.Pass()]
    else:
        del statements[index]
    return tree


def _unwrapped(tree: ast.AST, number: int, index: int) -> ast.AST | None:
    statements = _statement_lists(tree)[number]
    statement = statements[index]
    if not isinstance(statement, (ast.If, ast.For, ast.While, ast.With, ast.Try)):
        return None
    statements[index : index + 1] = statement.body
    return tree


def _fewer_calls(tree: ast.AST) -> Iterator[Candidate]:
    def without(calls: list[ast.expr], index: int) -> str:
        call = calls.pop(index)
        text = ast.unparse(tree)
        calls.insert(index, call)
        return text

    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "calls":
            calls = node.value.elts
            for index in range(len(calls) - 1, -1, -1):
                yield functools.partial(without, calls, index)


def _simpler_expressions(tree: ast.AST) -> Iterator[Candidate]:
    """An operation replaced by one of its operands."""

    def replaced(parent: ast.AST, name: str, value: object, position: int, new: ast.expr) -> str:
        old = value[position] if isinstance(value, list) else value
        _put(parent, name, value, position, new)
        text = ast.unparse(tree)
        _put(parent, name, value, position, old)
        return text

    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            for position, each in enumerate(value if isinstance(value, list) else [value]):
                for operand in _operands(each):
                    yield functools.partial(replaced, parent, name, value, position, operand)


def _operands(node: object) -> list[ast.expr]:
    match node:
        case ast.BinOp():
            return [node.left, node.right]
        case ast.UnaryOp():
            return [node.operand]
        case ast.IfExp():
            return [node.body, node.orelse]
        case ast.BoolOp():
            return node.values
        case ast.Call():
            receiver = [node.func.value] if isinstance(node.func, ast.Attribute) else []
            return [*receiver, *node.args]
        case ast.Tuple() | ast.List() if isinstance(node.ctx, ast.Load):
            return node.elts if len(node.elts) > 1 else []
    return []


def _put(parent: ast.AST, name: str, value: object, position: int, new: ast.expr) -> None:
    if isinstance(value, list):
        value[position] = new
    else:
        setattr(parent, name, new)
