"""Attributes of every operator, of every kind: a value that is none of its kind is refused by name,
at its place in the text, and no type rule meets one that it does not know."""

from __future__ import annotations

from typing import Any, Final

import pytest

from pyrelay import CheckError, relay
from pyrelay.diagnostics.source import NOWHERE
from pyrelay.ir.dims import Dim
from pyrelay.ir.expr import Call, Function, Tuple, Var
from pyrelay.ir.module import Module
from pyrelay.ir.op import Init, Op, Sample, TensorSpec
from pyrelay.ir.types import DTYPES, STR, SizeType, TensorType, TupleType, Type
from pyrelay.operators.table import BY_NAME
from pyrelay.text.printer import to_text

N: Final = Dim.of("N")
VALUES: Final[tuple[Any, ...]] = (
    *(None, True, 0, 1, -1, 7, -100, 2**70, 0.5, float("nan"), float("inf")),
    *("", "mean", "ij,jk->ik", "a", "{", N, N - 1, DTYPES["int64"], DTYPES["float32"]),
    *((), (0,), (1, 1), (0, -1), (2, 3, 4), ("a",), (None, 1), (N,), (True, False, True)),
    *((("int", 9),), (("slice", 0, 0, 0),), (("ellipsis",), ("ellipsis",)), (("new",), 3)),
)
WITH_ATTRIBUTES: Final = [op for op in BY_NAME.values() if op.attributes]


def typed(value: Any) -> Type:
    """Return the type of an operand of a sample."""
    match value:
        case TensorSpec(shape, dtype):
            return TensorType(tuple(map(Dim.of, shape)), DTYPES[dtype])
        case tuple():
            return TupleType(tuple(map(typed, value)))
        case str():
            return STR
        case None:
            return TupleType(())
        case _:
            names = {bool: "bool", int: "int64", float: "float32"}
            return TensorType((), DTYPES[names[type(value)]])


def program(op: Op, sample: Sample, attrs: dict[str, Any]) -> str:
    """Return the text of a program that calls an operator."""
    params = [Var(f"x{i}", typed(o), span=NOWHERE) for i, o in enumerate(sample.operands)]
    given = (*params, *(Tuple((), span=NOWHERE) for _ in op.operands[len(params) :]))
    body = Call(op, given, attrs, span=NOWHERE)
    size = Var("n", SizeType(N), span=NOWHERE)
    return to_text(Module({"main": Function((size, *params), body, span=NOWHERE)}, {}))


@pytest.mark.parametrize("op", WITH_ATTRIBUTES, ids=lambda op: op.name)
def test_any_attribute_is_taken_or_refused(op: Op) -> None:
    for sample in list(op.samples())[:1]:
        for param in op.attributes:
            for value in VALUES:
                text = program(op, sample, {**sample.attrs, param.name: value})
                try:
                    relay.parse(text).check()
                except CheckError as error:
                    refused = error
                else:
                    continue
                assert all(d.primary is not None for d in refused.diagnostics)


@pytest.mark.parametrize("op", WITH_ATTRIBUTES, ids=lambda op: op.name)
def test_every_attribute_has_a_kind_that_its_normal_form_is_of(op: Op) -> None:
    for param in op.attributes:
        assert param.convert is not None
        for sample in op.samples():
            if param.name in sample.attrs:
                once = param.convert(sample.attrs[param.name])
                assert param.convert(once) == once


def test_an_unknown_attribute_is_refused_by_every_operator() -> None:
    for op in WITH_ATTRIBUTES:
        for sample in list(op.samples())[:1]:
            plain = {n: v.name if isinstance(v, Init) else v for n, v in sample.attrs.items()}
            module = relay.parse(program(op, sample, {**plain, "unheard": 1}))
            with pytest.raises(CheckError) as caught:
                module.check()
            (found,) = caught.value.diagnostics
            assert found.code == "RL611"
            assert found.primary is not None
            assert found.primary.span.text == "unheard"
