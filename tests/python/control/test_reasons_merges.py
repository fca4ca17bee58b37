"""Reasons of branches, loops and recursions: why their sides, iterations or activations are no part of a graph."""
# ruff: noqa: F401  (the statements use them)

import warnings
from collections import deque

import pytest
from refusals import Refused, check_followed, check_refusal
from tree_programs import Branch, Leaf, tree

import torch
from torch import nn


def varying():
    """Tensors whose sum goes both ways about 0, and is a number of iterations by its size."""
    return [torch.ones(2) * factor for factor in (0.5, -1, 1.5, -0.5, 1, -1.5, 0.5)]


def raising():
    """Tensors of which raised() raises for some, and that have sums of both signs."""
    return [torch.ones(2) * factor for factor in (1, 3, -1, 1, 3, -1, 1)]


def leaves_of_two_kinds(first, second):
    return lambda: [*(first() for _ in range(4)), second(), second()]


def leaf():
    return torch.ones(2, requires_grad=True)


def leaf_with_hook():
    hooked = leaf()
    hooked.register_hook(doubled)
    return hooked


def trees():
    def with_parts(node):
        node.number, node.list, node.dict = 1, [1, 3], {0.5: 1}
        node.tensor = torch.ones(2) * (node.label + 1)
        if isinstance(node, Branch):
            with_parts(node.left)
            with_parts(node.right)
        return node

    return [with_parts(tree(2 + i % 5)) for i in range(10)]


def value_error(x):
    raise ValueError(1)


def key_error(x):
    raise KeyError(1)


def raised(x):
    if x.sum() > 4:
        raise ValueError(1)
    return 2


def goes_on(x, i):
    if x.sum() * i > 4:
        raise ValueError(1)
    return i < x.abs().sum()


class Warner(nn.Module):
    def forward(self, x):
        y = x * 2
        warnings.warn("a", stacklevel=2)
        return y


def doubled(gradient):
    return gradient * 2


def space():
    hooked = nn.Parameter(torch.ones(2))
    hooked.register_hook(doubled)
    return {
        **globals(),
        "warner": Warner(),
        "warning": Warner.forward,
        "buffer": torch.ones(2),
        "hooked": hooked,
        "met": {1: 2},
        "param": nn.Parameter(torch.ones(2)),
        "many": list(range(50)),
        "kept": Leaf(1, 2),
        "grown": [1, 2],
        "numbers": {1},
    }


def iterations(body, before="", after=""):
    """Statements with a loop whose iterations vary."""
    lines = [
        *before.split("\n"),
        "i = 0",
        "while i < x.abs().sum():",
        "    i = i + 1",
        *(f"    {line}" for line in body.split("\n")),
        *after.split("\n"),
    ]
    return "\n".join(line for line in lines if line)


def sides(first, second="pass", before="", after=""):
    """Statements with a branch that goes both ways."""
    lines = [before, f"if x.sum() > 0: {first}", f"else: {second}", after]
    return "\n".join(line for line in lines if line)


def recursion(start="pass", leaf="return v", inner="pass", before="", after="return go(x, w)"):
    """Statements with a recursion over the tree x."""
    return "\n".join(
        line
        for line in [
            before,
            "def go(node, v):",
            *(f"    {line}" for line in start.split("\n")),
            "    if isinstance(node, Leaf):",
            *(f"        {line}" for line in leaf.split("\n")),
            *(f"    {line}" for line in inner.split("\n")),
            "    return go(node.left, v + 1) + go(node.right, v)",
            after,
        ]
        if line
    )


GROWN = "l = []\ni = 0\nwhile i < x.abs().sum():\n    i = i + 1\n    l.append(i)\n"

LOOPS = [
    Refused(iterations("d[str(i)] = x", "d = {}"), "a dict gets or loses keys in it"),
    Refused(iterations("l.append(i)", "l = deque(maxlen=9)"), "a list grows or shrinks in it"),
    Refused(
        iterations("t = True if i == 1 else (t + 1 if i == 2 else t * 0.5)", "t = 0"),
        "a number takes several kinds",
    ),
    Refused(
        iterations(
            "c.add_(b); b.add_(a); a.add_(w)", "a = x * 1; b = x * 1; c = x * 1", "return c"
        ),
        "a tensor requires a gradient only after several iterations",
    ),
    Refused(
        GROWN + "return max(l, key=lambda v: (v, v)) * x",
        "elements are compared by other things than numbers",
    ),
    Refused(
        iterations("l.append(w * 2)", "l = [x]", "return l"),
        "only some elements require a gradient",
    ),
    Refused(iterations("s.add(3)", "s = {1}"), "it changes a set or takes from an iterator"),
    Refused(
        iterations("a.data = x * 2", "a = x * 1", "return a"),
        "it sets the attribute data of a tensor",
    ),
    Refused(
        iterations("b = a; a.add_(1)", "a = x * 1; b = x * 2", "return b"),
        "it writes a tensor that it also hands on",
    ),
    Refused(
        iterations("a.add_(1); l.append(a)", "a = x * 1; l = []", "return sum(l)"),
        "it writes a tensor that a list holds",
    ),
    Refused(
        iterations("a.add_(1); b = b + x", "a = x * 1; b = a", "return b"),
        "a tensor that may be another one, which was written",
    ),
    Refused(iterations("met.clear()"), "it clears a container"),
    Refused(
        iterations(
            "\n".join(f"v{k} = v{k + 1}" for k in range(14)) + "\nv14 = 0.5",
            "\n".join(f"v{k} = 1" for k in range(15)),
        ),
        "loop-carried state did not reach a fixpoint",
    ),
    Refused(GROWN + "return l.index(-2) * x", "ValueError: not in the list"),
]

SIDES = [
    Refused(
        sides("s.add(1)", "s.add(2)", "s = set()", "return len(s) * x"),
        "a set holds different elements",
    ),
    Refused(
        sides("d = deque([x], maxlen=2)", "d = deque([x], maxlen=3)", after="return d"),
        "deques of different lengths",
    ),
    Refused(sides("met.clear()"), "one side clears a container"),
    Refused(sides("print(w * 2)"), "a differentiable tensor leaves the run on one side only"),
    Refused(
        iterations("l.append(i); k.append(0.5)", "l = []; k = []")
        + "\n"
        + sides("m = l[:]", "m = k[:]", after="return m"),
        "lists of different elements",
    ),
    Refused(
        sides("a = [x * 2]; b = a", "a = [x * 3]; b = [w * 1]", after="return a[0] + b[0]"),
        "two variables share an object on one side only",
    ),
    Refused(
        sides("many.pop(0)", "many.append(1)"), "the sides leave a list with different elements"
    ),
    Refused(
        "try: return x * (value_error(x) if x.sum() > 0 else key_error(x))\n"
        "except Exception: return x",
        "two kinds of exceptions",
    ),
    Refused(
        "y = (hooked * x).sum() if x.sum() > 0 else (w * x).sum()\ny.backward()",
        "a leaf that gets a gradient in some runs only",
    ),
    Refused(
        sides("buffer.add_(1)", after="buffer.data = x * 3"),
        "the attribute data of a tensor that only some runs write in place",
    ),
]

RAISING = [
    Refused(
        "try: return x * (raised(x) if x.sum() > 0 else 1)\nexcept ValueError: return x",
        "one side raises within an expression",
        helper="raised",
    ),
    Refused(
        "i = 0\ntry:\n    while goes_on(x, i): i += 1\nexcept ValueError: return x",
        "the test of a loop may raise",
        helper="goes_on",
    ),
]

RECURSIONS = {
    "autograd": [
        Refused(
            recursion(inner="return go(node.left, v * 2) + go(node.right, param)"),
            "v in a recursion is a leaf",
        ),
    ],
    "dynamic_value": [
        Refused(
            "number = 1\n"
            "def go(node, v):\n"
            "    nonlocal number\n"
            "    if isinstance(node, Leaf): return v * node.word\n"
            "    number = number + 1\n"
            "    return go(node.left, v + 1) + go(node.right, v)\n"
            "y = go(x, w)\n"
            "number = 1.5\n"
            "return y + go(x, w)",
            "the variable number is of another kind in a recursion",
        ),
    ],
    "expression": [
        Refused(
            recursion("if 3 in node.list: v = v * 2"),
            "whether something is in an object met at run time",
        ),
        Refused(
            recursion("if node.list < node.list: v = v * 2"),
            "the comparison < of objects met at run time",
        ),
        Refused(recursion("if node is [v]: v = v * 2"), "the identity of such objects"),
        Refused(recursion("v = v * node.dict[0.5]"), "a key of a dict met at run time"),
    ],
    "heap_write": [
        Refused(
            recursion("kept.number = 3\nv = v + node.number"),
            "an object of class Leaf, before one is read that may be the same",
        ),
    ],
    "limit": [
        Refused(
            recursion("torch.set_grad_enabled(not torch.is_grad_enabled())"),
            "it changes the grad mode",
        ),
        Refused(
            recursion(
                inner="for k in range(39): a[k] = a[k + 1] + 0\na[39] = 1 if a[38] == 0 else 2",
                before="a = [0] * 40",
                after="return go(x, w) + a[0]",
            ),
            "its result did not reach a fixpoint",
        ),
        Refused(
            recursion("d[len(d)] = v", before="d = {}"), "it makes or deletes an item or attribute"
        ),
        Refused(
            "if x.tensor.sum() > 2:\n    y = w * 2\n"
            "    def go(node, v):\n"
            "        if isinstance(node, Leaf): return v * node.word + y\n"
            "        return go(node.left, v + 1) + go(node.right, v)\n"
            "    return go(x, w)\n"
            "return w",
            "it uses a value of a branch or loop around it",
        ),
    ],
    "mode_active": [
        Refused(
            recursion("torch.set_autocast_enabled('cpu', False)", "return v * node.word"),
            "autocast in a recursion",
        ),
    ],
    "unsupported_tensor": [
        Refused(
            recursion(
                leaf="return node.tensor", inner="go(node.left, v)\nreturn go(node.right, v)"
            ),
            "a tensor of an object met at run time leaves a recursion",
        ),
    ],
}

LEAVES = [
    (lambda: nn.Parameter(torch.ones(2)), "is not a Parameter"),
    (leaf_with_hook, "has no hooks"),
]

OTHERS = {
    "unknown_callable": [
        Refused("return warner(x)", "warnings.warn with a stacklevel", helper="warning"),
    ],
    "dynamic_value": [
        Refused("return torch.complex(x, x).sum().item() * x", "a complex number"),
        Refused("grown.extend([1])\nreturn x * grown[-9:][0]", "the length of a list that grows"),
        Refused("return int('1', numbers) * x", "the elements of a set"),
    ],
    "limit": [
        Refused(
            # loops too short for a forecast
            "\n".join(f"{'    ' * depth}for _ in range(7):" for depth in range(5))
            + "\n                    x = x * 1.5 + x * 0.5 + 1",
            "the graph has more than 50000 operations",
        ),
    ],
    "unsupported_argument": [
        Refused(
            "return torch.broadcast_tensors(x[x > 0], w[w > 0])", "sizes that only the run knows"
        ),
    ],
}


@pytest.mark.parametrize("case", LOOPS, ids=lambda case: case.sentence)
def test_loop_stays_in_python(case):
    check_refusal(case, "dynamic_control", space, varying)


@pytest.mark.parametrize("case", SIDES, ids=lambda case: case.sentence)
def test_branch_is_followed(case):
    check_followed(case, space, varying)


@pytest.mark.parametrize("case", RAISING, ids=lambda case: case.sentence)
def test_branch_that_raises_is_followed(case):
    check_followed(case, space, raising)


@pytest.mark.parametrize(("first", "sentence"), LEAVES, ids=["parameter", "hook"])
def test_leaf_of_another_kind(first, sentence):
    firsts = leaves_of_two_kinds(first, leaf)
    check_refusal(Refused("pass", sentence, at_entry=True), "guard_failed", space, firsts)


@pytest.mark.parametrize(
    ("code", "case"),
    [
        pytest.param(code, case, id=case.sentence)
        for code, cases in RECURSIONS.items()
        for case in cases
    ],
)
def test_recursion_stays_in_python(code, case):
    check_refusal(case, code, space, trees)


@pytest.mark.parametrize(
    ("code", "case"),
    [
        pytest.param(code, case, id=case.sentence)
        for code, cases in OTHERS.items()
        for case in cases
    ],
)
def test_statement_gives_its_reason(code, case):
    check_refusal(case, code, space)
