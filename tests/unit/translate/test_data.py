"""Data types from dataclasses: names, members, parameters and fields."""

from __future__ import annotations

import sys
import types
import typing
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import pytest

from pyrelay import Dim, Float, Fn, Int, Ref, Tensor
from pyrelay.diagnostics.diagnostic import Problem
from pyrelay.diagnostics.source import NOWHERE
from pyrelay.ir.types import show
from pyrelay.translate.data.data import DataTypes
from pyrelay.translate.types.annotation import AnnotationReader, NotData

T = TypeVar("T")
U = TypeVar("U")
K = TypeVar("K")
M = Dim("M")


@dataclass(frozen=True)
class Leaf(Generic[T]):
    value: T


@dataclass(frozen=True)
class Node(Generic[T]):
    left: Tree[T]
    right: Tree[T]


Tree = Leaf[T] | Node[T]
SameTree = Leaf[T] | Node[T]
MaybeTree = Leaf[T] | Node[T] | None


@dataclass(frozen=True)
class Point:
    x: float
    y: float = 0.0
    name: str = "p"


@dataclass(frozen=True)
class Pair(Generic[T, U]):
    first: T
    second: U


@dataclass(frozen=True)
class Rows(Generic[K]):
    head: Tensor[Float, (K, M)]
    tail: Chain[K]


@dataclass(frozen=True)
class End:
    pass


Chain = Rows[K] | End


@dataclass(frozen=True)
class Number:
    value: int


@dataclass(frozen=True)
class Let:
    value: Expr
    body: Block


Expr = typing.Union["Number", "Let"]


@dataclass(frozen=True)
class Block:
    first: Expr
    rest: Block | None


@dataclass(frozen=True)
class Everything(Generic[K]):
    a: tuple[int, bool]
    b: Fn[[Float], Int]
    c: Tensor[Float, (K, 2)] | None
    d: Pair[Tree[int], str]


def definitions(*values: Any, **names: Any) -> list[str]:
    """Return the data types that annotations need, as text."""
    problems: list[Problem] = []
    data = DataTypes(problems.append)
    reader = AnnotationReader({**globals(), **names}, problems.append, data)
    for value in values:
        reader.type(value)
    assert [p.diagnostic().title for p in problems] == []
    found: list[str] = []
    for adt in data.adts.values():
        cases = [f"{c.name}({', '.join(map(show, c.fields))})" for c in adt.constructors]
        params = ", ".join(f"{p.name}: {type(p).__name__}" for p in adt.type_params)
        found.append(f"{adt.name}[{params}] = {' | '.join(cases)}")
    return found


def read(value: Any, **names: Any) -> str:
    """Return the type that an annotation names, as text."""
    problems: list[Problem] = []
    reader = AnnotationReader({**globals(), **names}, problems.append, DataTypes(problems.append))
    return show(reader.type(value))


TREE = "Tree[T: TypeVar] = Leaf(T) | Node(Tree[T], Tree[T])"


def test_a_union_alias_names_the_data_type() -> None:
    assert definitions(Tree[int]) == [TREE]


@pytest.mark.parametrize(
    ("annotation", "shown"),
    [
        (Tree[int], "Tree[Int]"),
        (Leaf[int], "Tree[Int]"),
        (Node[int] | Leaf[int], "Tree[Int]"),
        ("Tree[Tree[Float]]", "Tree[Tree[Float]]"),
        (Tree, "Tree[T]"),
        (Leaf, "Tree[...]"),
        (SameTree[float], "Tree[Float]"),
        (Point, "Point"),
        ("Pair[int, T]", "Pair[Int, T]"),
        ("Chain[M]", "Chain[M]"),
        ("Chain[3]", "Chain[3]"),
        ("Chain[K]", "Chain[K]"),
        (Rows, "Chain[any1]"),
        (End, "Chain[any1]"),
    ],
)
def test_a_member_means_its_union(annotation: Any, shown: str) -> None:
    assert read(annotation) == shown


@pytest.mark.parametrize(
    ("annotation", "inside"),
    [
        (MaybeTree[int], "Tree[Int]"),
        (Tree[int] | None, "Tree[Int]"),
        (typing.Optional["Tree[int]"], "Tree[Int]"),
        (typing.Optional[Float], "Float"),  # noqa: UP045
        (typing.Optional[Point], "Point"),  # noqa: UP045
        ("T | None", "T"),
        ("Tensor[Float, (M,)] | None", "Tensor[Float, (M,)]"),
        ("Float | None", "Float"),
    ],
)
def test_none_in_a_union_makes_the_optional(annotation: Any, inside: str) -> None:
    assert read(annotation) == f"{inside} | None"


def test_a_class_alone_is_a_record_with_defaults() -> None:
    assert definitions(Point) == ["Point[] = Point(Float, Float, str)"]


def test_a_parameter_in_a_shape_is_a_dim_and_other_sizes_are_free() -> None:
    assert definitions("Chain[3]") == [
        "Chain[K: DimVar] = Rows(Tensor[Float, (K, M)], Chain[K]) | End()"
    ]


def test_mutual_recursion_defines_both() -> None:
    assert definitions(Block) == [
        "Block[] = Block(Expr, Block | None)",
        "Expr[] = Number(Int) | Let(Expr, Block)",
    ]


def test_fields_hold_every_type_of_the_language() -> None:
    assert [d.split("[")[0] for d in definitions(Everything[M])] == ["Everything", "Pair", "Tree"]


def module(name: str, **names: Any) -> types.ModuleType:
    """Make a module of the given names."""
    made = types.ModuleType(name)
    vars(made).update(names)
    sys.modules[name] = made
    return made


def record(name: str, home: str, **fields: Any) -> type:
    """Make a frozen dataclass in a module."""
    cls = type(name, (), {"__annotations__": fields, "__module__": home, "__qualname__": name})
    made = dataclass(frozen=True)(cls)
    setattr(sys.modules[home], name, made)
    return made


def test_two_types_of_one_name_get_names_of_their_own() -> None:
    module("first_home")
    module("second_home")
    first = record("Point", "first_home", x=int)
    second = record("Point", "second_home", x=int)
    assert definitions(first, Point, second) == [
        "Point[] = Point(Int)",
        "Point_1[] = Point(Float, Float, str)",
        "Point_2[] = Point(Int)",
    ]


def mistake(value: Any, **names: Any) -> str:
    """Return the title of the mistake that an annotation has."""
    problems: list[Problem] = []
    reader = AnnotationReader({**globals(), **names}, problems.append, DataTypes(problems.append))
    try:
        reader.type(value)
    except NotData as error:
        problems.append(error.problem(NOWHERE))
    (found,) = problems
    return found.diagnostic().title


@dataclass
class Changing:
    x: int


@dataclass(frozen=True)
class WithPost:
    x: int

    def __post_init__(self) -> None:
        """Do something."""


@dataclass(frozen=True)
class Child(Point):
    z: float = 0.0


@dataclass(frozen=True)
class Hidden:
    x: int = field(default=1, init=False)


@dataclass(frozen=True)
class Shared:
    x: int


@dataclass(frozen=True)
class Other:
    x: int


One = Shared | Other
Two = Shared | Hidden


class Plain:
    pass


@pytest.mark.parametrize(
    ("annotation", "title"),
    [
        (Changing, "`Changing` is not a data type: its instances can change"),
        (WithPost, "defines `__post_init__`"),
        (Child, "`Child` is not a data type: it inherits fields from `Point`"),
        (Hidden, "its field `x` is no argument of the class"),
        (Shared, "`Shared` is in two unions: `One` of"),
        (Point | End, "`Point | End` has no name"),
        (Leaf[int] | Point, "the union `Leaf | Point` is not a data type"),
        (Point | int, "the union `Point | int` is not a data type: `int` is no dataclass"),
    ],
)
def test_what_cannot_be_a_data_type_is_refused(annotation: Any, title: str) -> None:
    assert title in mistake(annotation)


def test_a_size_in_a_cell_is_a_size() -> None:
    @dataclass(frozen=True)
    class Held(Generic[K]):
        cell: Ref[Tensor[Float, (K,)]]

    assert definitions(Held[M], Held=Held) == ["Held[K: DimVar] = Held(Ref[Tensor[Float, (K,)]])"]
