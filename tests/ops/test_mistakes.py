"""What an operator's type rule refuses, and how it says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pyrelay.ir.op import Clash, Op
from pyrelay.ir.types import STR, Type, bool_, float32, int64, tensor_type
from pyrelay.operators.builder import Value
from pyrelay.operators.composite import measure, softmax
from pyrelay.operators.primitive import activation, arithmetic, compare, extrema, reduce, scan, sort
from tests.ops.programs import Program

MATRIX = tensor_type(float32, 3, 4)
ROW = tensor_type(float32, 5)
NAMED = tensor_type(float32, "n", 4)
TRUTHS = tensor_type(bool_, 3)
EMPTY = tensor_type(float32, 0, 4)
WHOLE = tensor_type(int64, 3)


def call(op: Op, operands: Sequence[Type | None], attrs: Mapping[str, Any]) -> Value:
    program = Program()
    values = [None if ty is None else program.parameter(ty) for ty in operands]
    return program.builder.call(op, values, attrs)


@pytest.mark.parametrize(
    ("op", "operands", "attrs", "message", "labels"),
    [
        (
            arithmetic.add,
            (MATRIX, ROW),
            {},
            "`add` cannot broadcast Tensor[Float, (3, 4)] with Tensor[Float, (5,)]",
            {0, 1},
        ),
        (arithmetic.negative, (TRUTHS,), {}, "`negative` takes numbers, not Bool", {0}),
        (arithmetic.sign, (STR,), {}, "`sign` takes a tensor as `input`, not str", {0}),
        (
            compare.where,
            (ROW, MATRIX, MATRIX),
            {},
            "`where` takes a Bool condition, not Tensor[Float, (5,)]",
            {0},
        ),
        (activation.clip, (MATRIX, None, None), {}, "`clip` needs `min`, `max` or both", {0}),
        (
            reduce.sum_,
            (MATRIX,),
            {"dim": 2},
            "`sum` has no dim 2 here: the tensor has 2 dimensions",
            {0},
        ),
        (
            softmax.softmax,
            (ROW,),
            {"dim": -2},
            "`softmax` has no dim -2 here: the tensor has 1 dimension",
            {0},
        ),
        (reduce.all_, (MATRIX,), {"dim": (1, -1)}, "`all` names a dim twice: (1, -1)", {0}),
        (reduce.mean, (MATRIX,), {"dtype": int64}, "`mean` gives a float, not int64", {0}),
        (
            reduce.sum_to,
            (MATRIX,),
            {"size": (1, 3, 4)},
            "`sum_to` cannot add dims to Tensor[Float, (3, 4)]",
            {0},
        ),
        (
            extrema.amax,
            (EMPTY,),
            {"dim": 0},
            "`amax` has no element to choose in Tensor[Float, (0, 4)]",
            {0},
        ),
        (
            extrema.argmin,
            (EMPTY,),
            {},
            "`argmin` has no element to choose in Tensor[Float, (0, 4)]",
            {0},
        ),
        (extrema.argmax, (TRUTHS,), {}, "`argmax` takes numbers, not Bool", {0}),
        (
            scan.cumsum,
            (tensor_type(float32),),
            {"dim": 0},
            "`cumsum` has no dim 0 here: the tensor has 0 dimensions",
            {0},
        ),
        (scan.recurrence, (WHOLE, WHOLE), {"dim": 0}, "`recurrence` takes float tensors", {0}),
        (
            sort.topk,
            (MATRIX,),
            {"k": 5},
            "`topk` cannot take 5 of 4 elements in Tensor[Float, (3, 4)]",
            {0},
        ),
        (
            sort.topk,
            (MATRIX,),
            {"k": -1},
            "`topk` cannot take -1 of 4 elements in Tensor[Float, (3, 4)]",
            {0},
        ),
        (
            measure.norm,
            (MATRIX,),
            {"dim": 7},
            "`norm` has no dim 7 here: the tensor has 2 dimensions",
            {0},
        ),
    ],
)
def test_a_wrong_call_is_refused_with_its_reason(
    op: Op,
    operands: Sequence[Type | None],
    attrs: Mapping[str, Any],
    message: str,
    labels: set[int],
) -> None:
    with pytest.raises(Clash) as caught:
        call(op, operands, attrs)
    assert caught.value.message == message
    assert set(caught.value.labels) == labels


@pytest.mark.parametrize(
    ("op", "attrs"),
    [
        (extrema.max_, {"dim": (0, 1)}),
        (extrema.argmax, {"dim": (0, 1)}),
        (reduce.prod, {"dim": (0, 1)}),
        (reduce.sum_, {"dim": ("rows",)}),
        (activation.gelu, {"approximate": "erf"}),
        (softmax.softmax, {}),
        (reduce.sum_, {"axis": 0}),
    ],
)
def test_an_attribute_outside_the_signature_is_refused(op: Op, attrs: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        call(op, (MATRIX,), attrs)


def test_a_sum_keeps_the_names_of_the_dims_that_stay() -> None:
    assert call(reduce.sum_, (NAMED,), {"dim": 1}).ty == tensor_type(float32, "n")
    assert call(reduce.sum_, (NAMED,), {"dim": 0, "keepdim": True}).ty == tensor_type(float32, 1, 4)


def test_a_named_number_of_elements_may_be_taken_from_a_named_dim() -> None:
    result = call(sort.topk, (NAMED,), {"k": 2, "dim": 0})
    assert result[0].ty == tensor_type(float32, 2, 4)
    assert result[1].ty == tensor_type(int64, 2, 4)


def test_a_number_beside_integers_makes_floats_only_if_it_is_one() -> None:
    program = Program()
    whole = program.parameter(WHOLE)
    assert (whole + 1).ty == WHOLE
    assert (whole + 1.5).ty == tensor_type(float32, 3)
    assert (whole / 2).ty == tensor_type(float32, 3)
    assert (whole + True).ty == WHOLE


def test_a_size_takes_the_dtype_of_the_tensor_it_meets() -> None:
    program = Program()
    x = program.parameter(tensor_type(float32, "n"))
    half = program.parameter(tensor_type(float32, 2))
    assert (half * program.builder.size(x.shape[0])).dtype == float32
    assert (half * program.builder.size(3)).dtype == float32
