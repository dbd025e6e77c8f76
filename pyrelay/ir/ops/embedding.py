"""Rows of a table looked up by number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..dims import Dim
from ..op import (
    Effect,
    Hidden,
    Holder,
    Init,
    Library,
    Op,
    Promotion,
    Pullback,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
)
from ..rules import integral, with_rank
from ..types import TensorType, Type, float32, is_float, show
from . import compare, create, index
from .operands import as_positions, static

if TYPE_CHECKING:
    from ..build import Value


def _embedding_type(call: RuleCall) -> Type:
    ty = call.tensor(0)
    if is_float(call.known_dtype(ty.dtype)):
        call.clash(
            f"`embedding` looks rows up by integers, not {show(ty)}",
            0,
            help="cast them: relay.cast(x, relay.int64)",
        )
    numbers, table = integral(call, 0), with_rank(call, 1, 2)
    return TensorType((*numbers.shape, table.shape[1]), table.dtype)


def _embedding_weight(call: RuleCall) -> TensorType:
    rows, columns = call.attrs["num_embeddings"], call.attrs["embedding_dim"]
    return TensorType((Dim.of(rows), Dim.of(columns)), float32)


def _embedding_grad(p: Pullback) -> tuple[None, Value]:
    numbers, table = p.args
    g, padding = p.g, p.attrs["padding_idx"]
    if padding is not None:
        place = table.shape[0] + padding if padding < 0 else padding
        hit = compare.equal(numbers, g.builder.size(place)).unsqueeze(-1)
        g = compare.where(hit, create.zeros_like(g), g)
    zeros = table.builder.zeros(table.ty)
    picked = g.builder.tuple((numbers,))
    return None, index.index_accumulate(zeros, picked, g, spec=(("int", 0),))


def _embedding(torch: Any, numbers: Any, table: Any, padding: int | None) -> Any:
    numbers = as_positions(torch, numbers, table)
    return torch.nn.functional.embedding(numbers, table, padding)


embedding: Final = Op(
    name="embedding",
    doc="Rows of a table, by their numbers; the row `padding_idx` gets no gradient.",
    params=(operand("input"), operand("weight"), attribute("padding_idx", None, static)),
    promotion=Promotion.NONE,
    type_rule=_embedding_type,
    effect=Effect.NONE,
    shape=ShapeBehaviour.FEATURE_BATCHED,
    lowering=Library(_embedding),
    grad=_embedding_grad,
    hidden=(Hidden("weight", Holder.PARAMETER, Init.NORMAL, _embedding_weight),),
    hyper=(
        attribute("num_embeddings", convert=static),
        attribute("embedding_dim", convert=static),
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
