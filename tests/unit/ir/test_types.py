"""Types are compared by structure, shown as users write them, and rebuilt by substitution."""

from __future__ import annotations

import pytest

from pyrelay.ir.derived_types.differentiable import is_differentiable
from pyrelay.ir.dims import Dim, DimVar
from pyrelay.ir.types import (
    BOOL,
    FLOAT,
    INT,
    STR,
    UNIT,
    AdtType,
    DTypeHole,
    FnType,
    RefType,
    SizeType,
    Substitution,
    TensorType,
    TupleType,
    Type,
    TypeHole,
    TypeVar,
    bfloat16,
    dim_names,
    dims,
    float32,
    int32,
    int64,
    map_type,
    parts,
    show,
    substitution,
    subtypes,
    tensor_type,
)
from pyrelay.prelude.library import LIST, OPTION

n, m = Dim.of("n"), Dim.of("m")
MATRIX = tensor_type(float32, "n", 4)
TREE = AdtType("Tree", (INT, n))
IDENTITY = FnType((TypeVar("A"),), TypeVar("A"), (TypeVar("A"),))
FIRST = FnType((tensor_type(float32, "n"),), FLOAT, (DimVar("n"),))


def test_types_of_equal_structure_are_equal_and_hash_alike() -> None:
    again = TensorType((n, Dim.of(4)), float32)
    assert again == MATRIX
    assert hash(again) == hash(MATRIX)
    assert tensor_type(float32, "n", 5) != MATRIX
    assert tensor_type(int64, "n", 4) != MATRIX


@pytest.mark.parametrize(
    ("ty", "text"),
    [
        (FLOAT, "Float"),
        (INT, "Int"),
        (BOOL, "Bool"),
        (tensor_type(bfloat16), "bfloat16"),
        (MATRIX, "Tensor[Float, (n, 4)]"),
        (tensor_type(int32, 3), "Tensor[int32, (3,)]"),
        (tensor_type(float32, n // 2 + 1), "Tensor[Float, (n // 2 + 1,)]"),
        (SizeType(n + 1), 'Dim("n + 1")'),
        (SizeType(Dim.of(3)), "3"),
        (UNIT, "None"),
        (TupleType((FLOAT, INT)), "tuple[Float, Int]"),
        (FnType((MATRIX, INT), FLOAT), "Fn[[Tensor[Float, (n, 4)], Int], Float]"),
        (RefType(FLOAT), "Ref[Float]"),
        (TREE, "Tree[Int, n]"),
        (AdtType("Nat"), "Nat"),
        (TypeVar("A"), "A"),
        (STR, "str"),
        (TypeHole(3), "an unknown type"),
        (TensorType((), DTypeHole(2, None)), "an unknown number"),
    ],
)
def test_a_type_is_shown_as_it_is_annotated(ty: Type, text: str) -> None:
    assert show(ty) == text


def test_rank_counts_dims() -> None:
    assert MATRIX.rank == 2
    assert FLOAT.rank == 0


def test_parts_are_the_types_directly_inside() -> None:
    assert parts(MATRIX) == ()
    assert parts(TupleType((FLOAT, INT))) == (FLOAT, INT)
    assert parts(FnType((FLOAT,), INT)) == (FLOAT, INT)
    assert parts(RefType(MATRIX)) == (MATRIX,)
    assert parts(TREE) == (INT,)


def test_subtypes_come_outside_in_and_left_to_right() -> None:
    ty = TupleType((RefType(FLOAT), FnType((INT,), BOOL)))
    assert list(subtypes(ty)) == [ty, RefType(FLOAT), FLOAT, ty.fields[1], INT, BOOL]


def test_dims_of_a_type_are_those_of_all_its_parts() -> None:
    ty = TupleType((MATRIX, SizeType(m), TREE))
    assert list(dims(ty)) == [n, Dim.of(4), m, n]
    assert dim_names(ty) == {"n", "m"}


def test_a_quantified_dim_is_not_free() -> None:
    assert dim_names(FIRST) == frozenset()
    assert dim_names(TupleType((FIRST, SizeType(n)))) == {"n"}


def test_substitution_replaces_dims_and_types_everywhere() -> None:
    replace = Substitution({"n": m + 1}, {"A": FLOAT})
    ty = TupleType((MATRIX, TREE, RefType(TypeVar("A")), SizeType(2 * n)))
    expected = TupleType(
        (
            tensor_type(float32, m + 1, 4),
            AdtType("Tree", (INT, m + 1)),
            RefType(FLOAT),
            SizeType(2 * m + 2),
        )
    )
    assert replace(ty) == expected


def test_substitution_leaves_quantified_names_alone() -> None:
    replace = Substitution({"n": Dim.of(3)}, {"A": FLOAT})
    assert replace(IDENTITY) == IDENTITY
    assert replace(FIRST) == FIRST
    open_type = FnType((MATRIX, TypeVar("A")), FLOAT, (TypeVar("A"),))
    closed = FnType((tensor_type(float32, 3, 4), TypeVar("A")), FLOAT, (TypeVar("A"),))
    assert replace(open_type) == closed


def test_the_empty_substitution_gives_the_same_object() -> None:
    assert Substitution({}, {})(MATRIX) is MATRIX


def test_type_parameters_are_instantiated_in_order() -> None:
    found = substitution((TypeVar("A"), DimVar("n")), (INT, m))
    assert found(TupleType((TypeVar("A"), MATRIX))) == TupleType((INT, tensor_type(float32, m, 4)))


def test_type_arguments_must_agree_in_number_and_kind() -> None:
    with pytest.raises(ValueError, match="argument"):
        substitution((TypeVar("A"),), ())
    with pytest.raises(AssertionError):
        substitution((DimVar("n"),), (INT,))
    with pytest.raises(AssertionError):
        substitution((TypeVar("A"),), (n,))


def test_map_type_replaces_whole_parts_before_their_insides() -> None:
    ty = TupleType((RefType(FLOAT), FLOAT))
    found = map_type(ty, lambda t: INT if isinstance(t, RefType) else None, lambda d: d)
    assert found == TupleType((INT, FLOAT))


def test_only_what_holds_floats_can_be_differentiated() -> None:
    assert is_differentiable(FLOAT)
    assert is_differentiable(TupleType((INT, MATRIX)))
    assert is_differentiable(TREE)
    assert not is_differentiable(INT)
    assert not is_differentiable(UNIT)
    assert not is_differentiable(TupleType((BOOL, STR, SizeType(n))))
    for holder in (LIST, OPTION):
        assert is_differentiable(AdtType(holder, (MATRIX,)))
        assert is_differentiable(AdtType(holder, (TypeVar("T"),)))
        assert is_differentiable(AdtType(holder, (TypeHole(0),)))
        assert not is_differentiable(AdtType(holder, (AdtType(LIST, (INT,)),)))
