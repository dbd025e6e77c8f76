"""Rows of a table looked up by number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.dims import Dim, product
from ...ir.op import (
    Elementwise,
    Hidden,
    HiddenKind,
    Init,
    Library,
    Linear,
    Op,
    Pullback,
    RuleCall,
    Sample,
    Scatter,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
)
from ...ir.rules import expect, floating, integral, with_rank
from ...ir.types import TensorType, Type, float32, is_float, show
from ..shared.operands import as_positions, as_tensor, existing
from . import compare, create

if TYPE_CHECKING:
    from ...ir.declaration.elements import Elements, Place, Source
    from ..builder import Value


def _embedding_type(call: RuleCall) -> Type:
    ty = call.tensor(0)
    if is_float(call.known_dtype(ty.dtype)):
        call.clash(
            f"`embedding` looks rows up by integers, not {show(ty)}",
            0,
            help="cast them: relay.cast(x, relay.int64)",
        )
    numbers, table = integral(call, 0), with_rank(call, 1, 2)
    rows, padding = table.shape[0].constant, call.attrs["padding_idx"]
    if isinstance(padding, int) and rows is not None and not -rows <= padding < rows:
        call.clash(f"`embedding` has no row {padding} as `padding_idx` in a table of {rows}", 1)
    return TensorType((*numbers.shape, table.shape[1]), table.dtype)


def _embedding_weight(call: RuleCall) -> TensorType:
    rows, columns = call.attrs["num_embeddings"], call.attrs["embedding_dim"]
    return TensorType((Dim.of(rows), Dim.of(columns)), float32)


def _embedding_grad(p: Pullback) -> tuple[None, Value]:
    numbers, table = p.args
    padding, g = p.attrs["padding_idx"], p.g
    if padding is not None:
        padding = table.shape[0] + padding if padding < 0 else Dim.of(padding)
        g = _without(g, numbers, padding)
    return None, rows_grad(g, numbers, table)


def _without(rows: Value, numbers: Value, padding: Dim) -> Value:
    """Return rows with zeros for those of one number."""
    hit = compare.equal(numbers, rows.builder.size(padding)).unsqueeze(-1)
    return compare.where(hit, create.zeros_like(rows), rows)


def rows_grad(g: Value, numbers: Value, table: Value) -> Value:
    """Return the cotangent of a table of which rows are read by their numbers, counted from 0; a
    row is an element, a vector or any tensor."""
    return embedding_grad(g, numbers, num_embeddings=table.shape[0])


def _embedding(torch: Any, numbers: Any, table: Any, padding: int | None) -> Any:
    if isinstance(numbers, int) and numbers >= 0:
        return table[numbers].clone()  # without a tensor for the number
    numbers = as_positions(torch, numbers, table)
    return torch.embedding(table, numbers)


def _embedding_element(
    k: Elements, place: Place, numbers: Source, table: Source, padding: Any
) -> Any:
    row = k.coordinate(numbers(*place.index[:-1]), table.shape[0], from_end=False)
    return table(row, place.index[-1])


embedding: Final = Op(
    name="embedding",
    doc="Rows of a table, by their numbers; the row `padding_idx` gets no gradient.",
    params=(
        operand("input"),
        operand("weight"),
        attribute("padding_idx", None, kinds.optional(kinds.size)),
    ),
    type_rule=_embedding_type,
    shape=ShapeBehaviour.FEATURE_BATCHED,
    lowering=Library(_embedding, is_fresh=True, fused=Elementwise(_embedding_element)),
    grad=_embedding_grad,
    hidden=(Hidden("weight", HiddenKind.PARAMETER, Init.NORMAL, _embedding_weight),),
    hyper=(
        attribute("num_embeddings", convert=kinds.size),
        attribute("embedding_dim", convert=kinds.size),
    ),
    torch_name="nn.functional.embedding",
    samples=lambda: (
        Sample((TensorSpec((5,), "int64", 0, 4), TensorSpec((4, 3)))),
        Sample((TensorSpec((2, 5), "int64", 0, 4), TensorSpec((4, 3)))),
        Sample((TensorSpec((), "int64", 0, 4), TensorSpec((4, 3)))),
        Sample((2, TensorSpec((4, 3)))),
        Sample((TensorSpec((9,), "int64", 0, 4), TensorSpec((4, 3))), {"padding_idx": 1}, False),
        Sample((TensorSpec((9,), "int64", 0, 4), TensorSpec((4, 3))), {"padding_idx": -2}, False),
        Sample((TensorSpec((0,), "int64", 0, 4), TensorSpec((4, 3)))),
        Sample((TensorSpec((6,), "int32", 0, 4), TensorSpec((4, 3), contiguous=False))),
    ),
)


def _embedding_grad_type(call: RuleCall) -> Type:
    g = floating(call, 0)
    numbers = integral(call, 1)
    row = g.shape[numbers.rank :]
    message = "`embedding_grad` takes a row per number"
    expect(call, 0, TensorType((*numbers.shape, *row), g.dtype), message)
    return TensorType((Dim.of(call.attrs["num_embeddings"]), *row), g.dtype)


def _embedding_backward(torch: Any, g: Any, numbers: Any, rows: int) -> Any:
    g = as_tensor(torch, g)
    numbers = existing(torch, as_tensor(torch, numbers, g), rows)
    row = g.shape[numbers.dim() :]
    if not row:  # for elements, `embedding_dense_backward` takes twenty times as long
        return g.new_zeros(rows).index_add_(0, numbers.reshape(-1), g.reshape(-1))
    flat = g.reshape(*numbers.shape, row.numel())
    found = torch.ops.aten.embedding_dense_backward(flat, numbers, rows, -1, False)
    return found if len(row) == 1 else found.reshape(rows, *row)


def _embedding_grad_grad(p: Pullback) -> tuple[Value, None]:
    rows, numbers = p.args
    table = p.g.reshape(p.g.shape[0], product(p.g.shape[1:]))
    return embedding(numbers, table).reshape(*rows.shape), None


def _embedding_grad_element(
    k: Elements, place: Place, g: Source, numbers: Source, rows: Dim
) -> Any:
    rank = len(numbers.shape)
    row = k.coordinate(numbers(*place.index[:rank]), rows, from_end=False)
    return (row, *place.index[rank:]), g(*place.index)


embedding_grad: Final = Op(
    name="embedding_grad",
    doc="The cotangent of a table of which rows are read, as `embedding` does. It fails unless all "
    "rows exist: nothing else may have read them. On a GPU what goes to one row is added in any "
    "order.",
    params=(operand("grad"), operand("input"), attribute("num_embeddings", convert=kinds.dim)),
    type_rule=_embedding_grad_type,
    shape=ShapeBehaviour.FIXED,
    lowering=Library(
        _embedding_backward,
        is_fresh=True,
        fused=Scatter(base=None, over=0, body=_embedding_grad_element),
    ),
    push=Linear(("grad",)),
    grad=_embedding_grad_grad,
    samples=lambda: (
        Sample((TensorSpec((5, 3)), TensorSpec((5,), "int64", 0, 4)), {"num_embeddings": 4}),
        Sample((TensorSpec((2, 5, 3)), TensorSpec((2, 5), "int64", 0, 4)), {"num_embeddings": 4}),
        Sample((TensorSpec((3,)), TensorSpec((), "int64", 0, 4)), {"num_embeddings": 4}),
        Sample((TensorSpec((0, 3)), TensorSpec((0,), "int64", 0, 4)), {"num_embeddings": 4}),
        Sample((TensorSpec((5,)), TensorSpec((5,), "int64", 0, 4)), {"num_embeddings": 4}),
        Sample((TensorSpec((5, 2, 3)), TensorSpec((5,), "int64", 0, 4)), {"num_embeddings": 4}),
        Sample(
            (TensorSpec((6, 3), contiguous=False), TensorSpec((6,), "int32", 0, 4)),
            {"num_embeddings": 4},
        ),
    ),
)
