"""Rows of tables with their numbers: sums of those of one number, and stores into the table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.dims import ONE, Dim, product
from ...ir.op import (
    Effect,
    Elementwise,
    Library,
    Linear,
    MadeOf,
    NoGradient,
    Op,
    RuleCall,
    Sample,
    Scatter,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
)
from ...ir.rules import expect, integral, with_rank
from ...ir.types import UNIT, TensorType, Type, int64
from ..primitive.embedding import embedding_grad
from ..primitive.gathering import index_select
from ..shared.operands import as_positions, existing

if TYPE_CHECKING:
    from ...ir.declaration.elements import Elements, Place, Source
    from ..builder import Value


def flat_rows(rows: Value, numbers: Value, rank: int) -> tuple[Value, Value]:
    """Return rows, which are tensors of a rank, one after the other, with their numbers."""
    row = rows.shape[rows.rank - rank :]
    count = product(rows.shape[: rows.rank - rank])
    return rows.reshape(count, *row), numbers.reshape(count).cast(int64)


def _existing_element(k: Elements, place: Place, numbers: Source, rows: Dim) -> Any:
    return k.number(k.coordinate(numbers(*place.index), rows, from_end=False))


def _positions_type(call: RuleCall) -> Type:
    return TensorType(integral(call, 0).shape, int64)


existing_rows: Final = Op(
    name="existing_rows",
    doc="Numbers of rows of a table, which fail unless each row exists. What writes comes after.",
    params=(operand("numbers"), attribute("rows", convert=kinds.dim)),
    type_rule=_positions_type,
    shape=ShapeBehaviour.FIXED,
    lowering=Library(existing, fused=Elementwise(_existing_element)),
    grad=NoGradient("numbers are integers"),
    samples=lambda: (
        Sample((TensorSpec((9,), "int64", 0, 4),), {"rows": 4}),
        Sample((TensorSpec((2, 3), "int32", 0, 4),), {"rows": 5}),
        Sample((TensorSpec((0,), "int64", 0, 4),), {"rows": 4}),
    ),
)


def _first_places_type(call: RuleCall) -> Type:
    integral(call, 0)
    return TensorType(with_rank(call, 0, 1).shape, int64)


def _first_places(torch: Any, numbers: Any) -> Any:
    _, inverse = torch.unique(numbers, return_inverse=True)
    places = torch.arange(len(numbers), device=numbers.device)
    first = torch.empty_like(places)
    return first.scatter_reduce_(0, inverse, places, "amin", include_self=False)[inverse]


first_places: Final = Op(
    name="first_places",
    doc="For each number of a vector the place of the first that is equal to it.",
    params=(operand("numbers"),),
    type_rule=_first_places_type,
    shape=ShapeBehaviour.FIXED,
    lowering=Library(_first_places, is_fresh=True),
    grad=NoGradient("places are integers"),
    samples=lambda: (
        Sample((TensorSpec((9,), "int64", 0, 4),)),
        Sample((TensorSpec((9,), "int32", -4, 4),)),
        Sample((TensorSpec((0,), "int64", 0, 4),)),
    ),
)


def _summed_rows_type(call: RuleCall) -> Type:
    rows, (count,) = call.tensor(0), with_rank(call, 1, 1).shape
    wanted = TensorType((count, *rows.shape[1:]), rows.dtype)
    expect(call, 0, wanted, "`summed_rows` takes a row for each number")
    return rows


def _summed_rows(torch: Any, rows: Any, numbers: Any) -> Any:
    _, places = torch.unique(as_positions(torch, numbers, rows), return_inverse=True)
    return torch.zeros_like(rows).index_add_(0, places, rows).index_select(0, places)


def _summed_rows_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    rows, numbers = args
    if rows.shape[0] == ONE:
        return rows
    first = first_places(numbers)
    sums = embedding_grad(rows, first, num_embeddings=rows.shape[0])
    return index_select(sums, first, dim=0)


summed_rows: Final = Op(
    name="summed_rows",
    doc="Rows with their numbers, each replaced by the sum of all rows of its number.",
    params=(operand("rows"), operand("numbers")),
    type_rule=_summed_rows_type,
    shape=ShapeBehaviour.FIXED,
    lowering=Library(_summed_rows, is_fresh=True, fused=MadeOf(_summed_rows_code)),
    push=Linear(("rows",)),
    grad=lambda p: (p.g.builder.call(summed_rows, (p.g, p.args[1])), None),
    samples=lambda: (
        Sample((TensorSpec((5, 3)), TensorSpec((5,), "int64", 0, 4))),
        Sample((TensorSpec((5, 2, 3)), TensorSpec((5,), "int64", 0, 4))),
        Sample((TensorSpec((0, 3)), TensorSpec((0,), "int64", 0, 4))),
        Sample((TensorSpec((6, 3), contiguous=False), TensorSpec((6,), "int32", 0, 4))),
    ),
)


def _write_type(call: RuleCall) -> Type:
    table, (count,) = call.tensor(0), with_rank(call, 1, 1).shape
    integral(call, 1)
    wanted = TensorType((count, *table.shape[1:]), table.dtype)
    expect(call, 2, wanted, f"`{call.op.name}` takes a row of the table for each number")
    return UNIT


def _row_element(k: Elements, place: Place, table: Source, numbers: Source, rows: Source) -> Any:
    row = k.coordinate(numbers(place.index[0]), table.shape[0], from_end=False)
    return (row, *place.index[1:]), rows(*place.index)


def _writing(name: str, doc: str, method: str, *, adds: bool) -> Op:
    """Return an operator that changes rows of a table in its storage."""

    def run(torch: Any, table: Any, numbers: Any, rows: Any) -> tuple[()]:
        getattr(table, method)(0, as_positions(torch, numbers, table), rows)
        return ()

    fused = Scatter(base=0, over=2, body=_row_element, in_place=True, adds=adds)
    return Op(
        name=name,
        doc=doc,
        params=(operand("table"), operand("numbers"), operand("rows")),
        type_rule=_write_type,
        effect=Effect.STATE,
        shape=ShapeBehaviour.TRIVIAL,
        lowering=Library(run, fused=fused),
        grad=NoGradient("made after all gradients are", is_zero=False),
        samples=lambda: (),
    )


add_rows: Final = _writing(
    "add_rows",
    "Rows added to those of a table, by their numbers, in its own storage.",
    "index_add_",
    adds=True,
)
store_rows: Final = _writing(
    "store_rows",
    "Rows of a table replaced, by their numbers, in its own storage. Rows of one number are equal.",
    "index_copy_",
    adds=False,
)
