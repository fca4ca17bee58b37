"""importlib.util.find_spec of a package that is not there: each entry asks again."""

import importlib
import importlib.util
import sys

from differential import Program, differential

import torch

NAME = "a_package_that_nobody_has"


def step(x):
    if importlib.util.find_spec(NAME) is not None:
        return x * 3
    return x * 2


def batches(count=6):
    return [(torch.randn(3),) for _ in range(count)]


@differential(hits=3)
def test_a_package_that_is_missing():
    return Program(step, batches())


def test_a_package_that_comes_and_goes(tmp_path):
    (tmp_path / f"{NAME}.py").write_text("")

    def install():
        sys.path.insert(0, str(tmp_path))

    def remove():
        sys.path.remove(str(tmp_path))

    differential(hits=6)(
        lambda: Program(step, [*batches(), install, *batches(3), remove, *batches()])
    )()


@differential(hits=3)
def test_one_that_is_loaded():
    return Program(lambda x: (importlib.util.find_spec("json").name, x * 2), batches())


class Finder:
    """The program's own."""

    asked = 0

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name == NAME:
            cls.asked += 1


def test_a_finder_of_the_program():
    def program():
        Finder.asked = 0
        add, drop = (lambda: sys.meta_path.append(Finder)), (lambda: sys.meta_path.remove(Finder))
        calls = [*batches(), add, *batches(3), drop, *batches()]
        return Program(lambda x: (step(x), Finder.asked), calls)

    differential(hits=4)(program)()


@differential(reasons=["unknown_callable"])
def test_a_module_of_a_package():
    return Program(lambda x: (importlib.util.find_spec("json.nothing"), x * 2), batches())
