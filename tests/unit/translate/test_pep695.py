"""Type parameters in brackets and `type` statements, the syntax of Python 3.12."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from pyrelay.diagnostics.diagnostic import CheckError
from pyrelay.ir.types import show
from pyrelay.passes.infer import infer
from pyrelay.translate.translator import translate

pytestmark = pytest.mark.skipif(sys.version_info < (3, 12), reason="syntax of Python 3.12")

HEAD = """
from dataclasses import dataclass
from pyrelay import Dim, Float, Fn, Int, Tensor, relay
"""
TREE = """
@dataclass(frozen=True)
class Leaf[T]:
    value: T

@dataclass(frozen=True)
class Node[T]:
    left: "Tree[T]"
    right: "Tree[T]"

type Tree[T] = Leaf[T] | Node[T]
"""
Load = Callable[[str], ModuleType]
NUMBERS = itertools.count()


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Give what imports a module from its text."""

    def imported(text: str) -> ModuleType:
        file = tmp_path / f"pep695_{next(NUMBERS)}.py"
        file.write_text(HEAD + text)
        spec = importlib.util.spec_from_file_location(file.stem, file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[file.stem] = module
        spec.loader.exec_module(module)
        return module

    return imported


def type_of(module: ModuleType, name: str) -> str:
    """Give the inferred type of a function."""
    translated = translate(getattr(module, name).__relay__)
    ty = infer(translated.module).functions[translated.entry].ty
    assert ty is not None
    return show(ty)


def test_a_function_has_type_parameters(load: Load) -> None:
    module = load("@relay\ndef twice[A](f: Fn[[A], A], x: A) -> A:\n    return f(f(x))\n")
    assert type_of(module, "twice") == "Fn[[Fn[[A], A], A], A]"


def test_a_type_parameter_may_be_a_size(load: Load) -> None:
    module = load("@relay\ndef rows[n](x: Tensor[Float, (n, 3)]) -> Float:\n    return x.sum()\n")
    assert type_of(module, "rows") == "Fn[[Tensor[Float, (n, 3)]], Float]"


def test_a_type_statement_names_a_union_of_generic_classes(load: Load) -> None:
    module = load(
        TREE
        + """
@relay
def size[T](tree: Tree[T]) -> Int:
    match tree:
        case Leaf(_):
            return 1
        case Node(left, right):
            return size(left) + size(right)

@relay
def total(tree: Tree[Float]) -> Float:
    match tree:
        case Leaf(value):
            return value * size(tree)
        case Node(left, right):
            return total(left) + total(right)
"""
    )
    assert type_of(module, "size") == "Fn[[Tree[T]], Int]"
    assert type_of(module, "total") == "Fn[[Tree[Float]], Float]"


def test_a_missing_case_of_such_a_union_is_found(load: Load) -> None:
    module = load(
        TREE
        + """
@relay
def first[T](tree: Tree[T]) -> T:
    match tree:
        case Leaf(value):
            return value
"""
    )
    with pytest.raises(CheckError, match=r"Node\(_, _\)"):
        type_of(module, "first")


def test_local_functions_have_no_type_parameters(load: Load) -> None:
    with pytest.raises(CheckError, match="a type parameter of a local function"):
        load(
            "@relay\ndef f(x: Float) -> Float:\n    def g[A](y: A) -> A:\n        return y\n"
            "    return g(x)\n"
        )
