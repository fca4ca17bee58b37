"""Graphs in TensorBoard's form: nodes are named by what was converted, file, function, line and operator, so that its
graph folds by them.

The graph's text (docs/ir.md) is read. Values flow from the operands of an operator with blocks through the blocks into
that operator, so there are no cycles.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .source_text import Sources, divided

_VALUE = re.compile(r"%[^\s,(){}:=]+")
_NODE = re.compile(r"(?:(?P<results>%[^=]*?) = )?(?P<op>[\w.]+)(?P<rest>.*)")
_SHAPE = re.compile(r"[a-z]\w*\[([^\]]*)\]")
_NO_SCOPE = re.compile(r"[^\w.\-]+")
_ENDS = ("yield", "return")


@dataclass
class Node:
    """An operator, input, parameter of a block, or what the graph returns."""

    name: str
    op: str
    inputs: list[str] = field(default_factory=list)
    text: str = ""
    shapes: list[list[int]] = field(
        default_factory=list
    )  # of tensors among the results; -1: not known


def nodes(entry: dict[str, Any], scope: str, sources: Sources) -> list[Node]:
    """The nodes of a graph: an entry of `_details()["cache"]`."""
    return list(_Reader(entry, scope, sources).read())


def as_graph_def(all_nodes: list[Node]) -> Any:
    """The message that event files hold."""
    from tensorboard.compat.proto.graph_pb2 import GraphDef
    from tensorboard.compat.proto.node_def_pb2 import NodeDef

    graph = GraphDef()
    graph.versions.producer = 22
    for each in all_nodes:
        node = NodeDef(name=each.name, op=each.op, input=each.inputs)
        node.attr["text"].s = each.text.encode(errors="backslashreplace")
        for shape in each.shapes:
            dims = node.attr["_output_shapes"].list.shape.add().dim
            for size in shape:
                dims.add().size = size
        graph.node.append(node)
    return graph


class _Reader:
    def __init__(self, entry: dict[str, Any], scope: str, sources: Sources) -> None:
        self.lines = divided(entry["optimised"])
        operators = (entry["picture"] or {"operators": ()})["operators"]
        self.places = {line: (file, number) for line, file, number, *_ in operators if file}
        self.scope, self.sources = scope, sources
        self.names: set[str] = set()
        self.makers: dict[str, str] = {}  # the name of the node that gives a value
        self.open: list[Node] = []  # operators whose blocks are read

    def read(self) -> Iterator[Node]:
        for at, line in enumerate(self.lines):
            text = line.strip()
            if text.startswith("graph "):
                yield from self._inputs(text)
            elif text == "}":
                if self.open:
                    yield self.open.pop()
            elif text.startswith("}"):  # the next block of the same operator
                yield from self._parameters(text)
            elif found := _NODE.fullmatch(text):
                yield from self._node(at, text, found)

    def _inputs(self, text: str) -> Iterator[Node]:
        for value, kind in _typed(text):
            yield self._made(
                Node(self._name(None, f"input/{value[1:]}"), "input", text=kind), [value], kind
            )

    def _parameters(self, text: str) -> Iterator[Node]:
        """Of a block: they get the operands of its operator."""
        operator = self.open[-1]
        scope = operator.name
        for value, kind in _typed(text.partition("{")[2]):
            node = Node(
                unlike(f"{scope}/{legal(value[1:])}", self.names),
                "parameter",
                list(operator.inputs),
                kind,
            )
            yield self._made(node, [value], kind)

    def _node(self, at: int, text: str, found: re.Match[str]) -> Iterator[Node]:
        op, rest = found["op"], found["rest"]
        operands, _, types = rest.partition(" : ")
        inputs = [self.makers[each] for each in _VALUE.findall(operands) if each in self.makers]
        if op in _ENDS and self.open:
            self.open[-1].inputs += [each for each in inputs if each not in self.open[-1].inputs]
            return
        node = Node(self._name(self.places.get(at), op), op, list(dict.fromkeys(inputs)), text)
        self._made(node, _VALUE.findall(found["results"] or ""), types.partition("{")[0])
        if not text.endswith("{") and not _opens_block(text):
            yield node
            return
        self.open.append(node)
        yield from self._block(op, inputs, text)

    def _block(self, op: str, inputs: list[str], text: str) -> Iterator[Node]:
        """The first block's parameters; those of fused operators are its operands, one by one."""
        parameters = list(_typed(text.rpartition("{ (")[2])) if "{ (" in text else []
        if op == "fused" and len(parameters) == len(inputs):
            self.makers |= {
                value: maker for (value, _), maker in zip(parameters, inputs, strict=True)
            }
        else:
            yield from self._parameters(text)

    def _made(self, node: Node, results: list[str], types: str) -> Node:
        self.makers |= dict.fromkeys(results, node.name)
        node.shapes = [
            [_size(each) for each in dims.split(",") if each] for dims in _SHAPE.findall(types)
        ]
        return node

    def _name(self, place: tuple[str, int] | None, op: str) -> str:
        parts = [self.scope]
        if place is not None:
            file, line = place
            function = self.sources[file].enclosing(line)[2]
            parts += [legal(Path(file).name), legal(function), f"line_{line}"]
        return unlike("/".join([*parts, *map(legal, op.split("/"))]), self.names)


def _opens_block(text: str) -> bool:
    """Whether the line ends with a block's parameters."""
    return bool(re.search(r"\{ \([^{}]*\)$", text))


def _typed(text: str) -> Iterator[tuple[str, str]]:
    """Values that are declared with their types: %x: f32[B,784]."""
    for found in re.finditer(r"(%[^\s,(){}:=]+): ([^\s%(){}]+?)(?=,? |[,)]*$|\))", text):
        yield found[1], found[2]


def _size(dimension: str) -> int:
    return int(dimension) if dimension.strip().isdecimal() else -1


def unlike(name: str, taken: set[str]) -> str:
    """The name, or with a number behind it one that is not taken; it is from now on."""
    number, found = 1, name
    while found in taken:
        found = f"{name}_{number}"
        number += 1
    taken.add(found)
    return found


def legal(name: str) -> str:
    """As TensorBoard shows names between slashes: letters of any script, digits, and some signs."""
    legal = _NO_SCOPE.sub("_", name).strip("_")
    return legal if legal and legal[0].isalnum() else f"v{legal}"
