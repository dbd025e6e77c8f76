"""Type parameters in brackets and `type` statements, the syntax of Python 3.12."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from pyrelay.diagnostics.diagnostic import CheckError
from pyrelay.infer import infer
from pyrelay.ir.types import show
from pyrelay.translate.translator import translate
from tests.loading import load_file

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
    """Return what imports a module from its text."""

    def imported(text: str) -> ModuleType:
        file = tmp_path / f"pep695_{next(NUMBERS)}.py"
        file.write_text(HEAD + text)
        return load_file(file)

    return imported


def type_of(module: ModuleType, name: str) -> str:
    """Return the inferred type of a function."""
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


def test_a_size_is_a_value_in_the_body(load: Load) -> None:
    module = load("@relay\ndef f[N](x: Tensor[Float, (N,)]):\n    return relay.zeros((N, 2)), N\n")
    assert type_of(module, "f") == (
        'Fn[[Tensor[Float, (N,)]], tuple[Tensor[Float, (N, 2)], Dim("N")]]'
    )


def test_a_type_is_no_value(load: Load) -> None:
    module = load("@relay\ndef f[T](x: T):\n    return T\n")
    with pytest.raises(CheckError, match="`T` is a type parameter that is no size"):
        type_of(module, "f")


def test_text_may_compute_with_type_parameters(load: Load) -> None:
    """Without the quotes, Python itself would add `N` before anybody reads it."""
    module = load(
        """
@dataclass(frozen=True)
class Gates[H]:
    weight: "Tensor[Float, (4 * H, 4)]"

@relay
def f[N](x: "Tensor[Float, (2 * N + 1,)]", y: Tensor[Float, (N,)], gates: Gates[N]):
    return x[: 2 * N], gates
"""
    )
    assert type_of(module, "f") == (
        "Fn[[Tensor[Float, (2*N + 1,)], Tensor[Float, (N,)], Gates[N]],"
        " tuple[Tensor[Float, (2*N,)], Gates[N]]]"
    )


def test_a_type_parameter_may_say_that_it_is_a_size(load: Load) -> None:
    module = load(
        "@relay\ndef f[N: Dim](n: N, x: Tensor[Float, (N,)]):\n    return relay.zeros((n,)) + x\n"
    )
    assert type_of(module, "f") == 'Fn[[Dim("N"), Tensor[Float, (N,)]], Tensor[Float, (N,)]]'


@pytest.mark.parametrize("bound", ["T: Float", "T: (Float, Int)"])
def test_types_that_a_parameter_is_held_to_are_refused(load: Load, bound: str) -> None:
    module = load(f"@relay\ndef f[{bound}](x: T) -> T:\n    return x\n")
    with pytest.raises(CheckError, match="`T` has a bound, which nothing would check"):
        type_of(module, "f")


ABBREVIATIONS = """
type Row[N] = Tensor[Float, (N,)]
type Both[A] = tuple[A, A]
type Rows[N] = Both[Row[N]]
type Perhaps[T] = T | None
type Loss[A] = Fn[[A, A], Float]

@dataclass(frozen=True)
class Holder[M]:
    rows: Rows[M]
"""


@pytest.mark.parametrize(
    ("parameter", "shown"),
    [
        ("Row[3]", "Tensor[Float, (3,)]"),
        ("Row[n]", "Tensor[Float, (n,)]"),
        ("Rows[n]", "tuple[Tensor[Float, (n,)], Tensor[Float, (n,)]]"),
        ("Perhaps[Row[2]]", "Tensor[Float, (2,)] | None"),
        ("Loss[Perhaps[Int]]", "Fn[[Int | None, Int | None], Float]"),
        ("Holder[n]", "Holder[n]"),
        ("Row", "Tensor[Float, (any1,)]"),
    ],
)
def test_a_type_statement_may_abbreviate_any_type(load: Load, parameter: str, shown: str) -> None:
    module = load(
        ABBREVIATIONS + f"@relay\ndef f[n](x: {parameter}, y: Row[n]) -> Int:\n    return 1\n"
    )
    assert type_of(module, "f") == f"Fn[[{shown}, Tensor[Float, (n,)]], Int]"


def test_a_union_with_none_is_optional_under_its_name(load: Load) -> None:
    module = load(
        TREE.replace("| Node[T]", "| Node[T] | None")
        + """
@relay
def f(tree: Tree[Float]) -> Float:
    match tree:
        case None:
            return 0.0
        case Leaf(value):
            return value
        case Node(left, right):
            return f(left) + f(right)
"""
    )
    assert type_of(module, "f") == "Fn[[Tree[Float] | None], Float]"


@pytest.mark.parametrize(
    ("annotation", "why"),
    [
        ("Tree[Float, Int]", r"`Tree` takes 1 type argument, and gets 2"),
        ("Both[Float, Int]", r"`Both` takes 1 type argument, and gets 2"),
        ("Row[Float]", "`Float` is not a size"),
        ("Endless", "`Endless` stands for a type that mentions itself"),
        ("Nested[Float]", "`Nested` stands for a type that mentions itself"),
    ],
)
def test_wrong_type_arguments_and_circles_are_told(load: Load, annotation: str, why: str) -> None:
    circles = "type Endless = tuple[Float, Endless]\ntype Nested[A] = tuple[A, Nested[A]] | None\n"
    text = f"@relay\ndef f(x: {annotation}) -> Int:\n    return 1\n"
    module = load(TREE + ABBREVIATIONS + circles + text)
    with pytest.raises(CheckError, match=why):
        type_of(module, "f")


def test_names_of_the_function_around_are_found(load: Load) -> None:
    module = load(
        """
def around():
    M = Dim("M")
    type Rows[N] = Tensor[Float, (M, N)]

    @relay
    def f[N](x: Rows[N], y: Tensor[Float, (M,)]) -> Rows[N]:
        return x

    return f

f = around()
"""
    )
    assert type_of(module, "f") == (
        "Fn[[Tensor[Float, (M, N)], Tensor[Float, (M,)]], Tensor[Float, (M, N)]]"
    )


@pytest.mark.skipif(sys.version_info < (3, 13), reason="syntax of Python 3.13")
def test_a_type_parameter_may_have_a_default(load: Load) -> None:
    module = load(
        "@dataclass(frozen=True)\nclass Box[T = Float, N = 3]:\n    value: T\n"
        "    row: Tensor[Float, (N,)]\n"
        "@relay\ndef f(box: Box, other: Box[Int, 4]):\n    return box.value, other.value\n"
    )
    assert type_of(module, "f") == "Fn[[Box[Float, 3], Box[Int, 4]], tuple[Float, Int]]"
