"""Attention: values averaged by how well keys fit queries."""

from __future__ import annotations

import math as scalar_math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.op import (
    Clash,
    Expansion,
    Library,
    Op,
    Precision,
    Promotion,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
    optional,
)
from ...ir.rules import broadcast_shapes, floating
from ...ir.types import TensorType, Type, bool_, is_float, show
from ..matrices.rules import swapped
from ..primitive import math
from ..primitive.compare import equal, greater_equal, where
from ..primitive.create import arange
from ..primitive.extrema import amax
from ..shared.operands import is_given
from ..shared.precision import widened
from .softmax import softmax

if TYPE_CHECKING:
    from ...ir.dims import Dim
    from ..builder import Value


def _rows_of_features(call: RuleCall, index: int) -> TensorType:
    ty = floating(call, index)
    if ty.rank < 2:
        name = call.operand_name(index)
        call.clash(f"`{name}` of attention is (..., length, features), not {show(ty)}", index)
    return ty


def _attention_type(call: RuleCall) -> Type:
    query, key, value = (_rows_of_features(call, i) for i in range(3))
    pair = f"{show(query)} and {show(key)}"
    message = f"queries and keys have one number of features: {pair} differ"
    call.unify_dims(key.shape[-1], query.shape[-1], 1, message)
    message = f"there is one value for each key: {show(key)} and {show(value)} differ"
    call.unify_dims(value.shape[-2], key.shape[-2], 2, message)
    try:
        batch = broadcast_shapes(call, [t.shape[:-2] for t in (query, key, value)])
    except Clash as clash:
        found = ", ".join(show(t) for t in (query, key, value))
        call.clash(f"leading dims of attention broadcast: {clash.message} in {found}", 0, 1, 2)
    if call.given(3):
        _check_mask(call, (*batch, query.shape[-2], key.shape[-2]))
    return TensorType((*batch, query.shape[-2], value.shape[-1]), query.dtype)


def _check_mask(call: RuleCall, scores: tuple[Dim, ...]) -> None:
    """Check that a mask broadcasts to the scores. Raises Stuck or Clash."""
    mask = call.tensor(3)
    if call.attrs["is_causal"]:
        call.clash("attention takes a mask or is causal, not both", 3)
    dtype = call.known_dtype(mask.dtype)
    if not is_float(dtype) and dtype != bool_:
        call.clash(f"a mask of attention is of bools or floats, not {show(mask)}", 3)
    wanted = TensorType(scores, mask.dtype)
    message = f"a mask of {show(mask)} does not broadcast to scores of {show(wanted)}"
    try:
        found = broadcast_shapes(call, [scores, mask.shape])
        if len(found) != len(scores):
            call.clash(message, 3)
        for have, want in zip(found, scores, strict=True):
            call.solver.unify_dims(have, want)
    except Clash:
        call.clash(message, 3)


def _scale(query: Value, attrs: Mapping[str, Any]) -> Value | float:
    size = query.shape[-1]
    if attrs["scale"] is not None:
        return attrs["scale"]
    if size.constant is not None:
        return 1.0 / scalar_math.sqrt(max(size.constant, 1))
    return math.rsqrt(query.builder.size(size).cast(query.dtype))


def _causal(scores: Value) -> Value:
    """Return whether each query comes at or after each key."""
    rows, columns = (scores.builder.call(arange, (), {"end": n}) for n in scores.shape[-2:])
    return greater_equal(rows.unsqueeze(-1), columns)


def _shares(scores: Value) -> Value:
    """Return the softmax of masked scores, which is 0 where a query sees no key."""
    is_blind = equal(amax(scores, dim=-1, keepdim=True), -scalar_math.inf)
    return where(is_blind, 0.0, softmax(where(is_blind, 0.0, scores), dim=-1))


def _attention_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    query, key, value, mask = args
    wide = widened(query)
    scores = (wide * _scale(wide, attrs)) @ swapped(widened(key))
    if attrs["is_causal"]:
        shares = softmax(where(_causal(scores), scores, -scalar_math.inf), dim=-1)
    elif not is_given(mask):
        shares = softmax(scores, dim=-1)
    elif is_float(mask.dtype):
        shares = _shares(scores + mask.cast(scores.dtype))
    else:
        shares = _shares(where(mask, scores, -scalar_math.inf))
    return (shares @ widened(value)).cast(query.dtype)


def _attention(
    torch: Any, query: Any, key: Any, value: Any, mask: Any, is_causal: bool, scale: float | None
) -> Any:
    function = torch.nn.functional.scaled_dot_product_attention
    return function(query, key, value, mask, is_causal=is_causal, scale=scale)


_QUERY: Final = TensorSpec((2, 3, 4))
_KEY: Final = TensorSpec((2, 5, 4))
_VALUE: Final = TensorSpec((2, 5, 6))

scaled_dot_product_attention: Final = Op(
    name="scaled_dot_product_attention",
    doc="`softmax(query @ key.T * scale) @ value`. A query sees keys where `attn_mask` is true, "
    "a mask of floats is added to the scores; a causal one sees no later keys. `scale` is one over "
    "the root of the number of features unless given.",
    params=(
        operand("query", promote=True),
        operand("key", promote=True),
        operand("value", promote=True),
        optional("attn_mask"),
        attribute("is_causal", default=False, convert=kinds.flag),
        attribute("scale", None, kinds.optional(kinds.real)),
    ),
    promotion=Promotion.COMMON,
    type_rule=_attention_type,
    shape=ShapeBehaviour.COMPOSITE,
    precision=Precision.NARROW,
    # Torch's own kernels never store the scores, so the call is not taken apart unless a
    # derivative needs them.
    lowering=Library(_attention, is_fresh=True),
    grad=Expansion(_attention_code),
    torch_name="nn.functional.scaled_dot_product_attention",
    samples=lambda: (
        Sample((_QUERY, _KEY, _VALUE, None)),
        Sample((_QUERY, _KEY, _VALUE, None), {"is_causal": True, "scale": 0.3}),
        Sample((_QUERY, _KEY, _VALUE, TensorSpec((3, 5), "bool"))),
        Sample((_QUERY, _KEY, _VALUE, TensorSpec((2, 3, 5)))),
        Sample((_QUERY, _KEY, _VALUE, TensorSpec((5,), "bool"))),
        Sample((TensorSpec((3, 4)), TensorSpec((5, 4)), TensorSpec((5, 2)), None)),
        Sample(
            (TensorSpec((2, 2, 3, 4)), TensorSpec((2, 2, 3, 4)), TensorSpec((2, 2, 3, 4)), None)
        ),
        Sample((TensorSpec((0, 3, 4)), TensorSpec((0, 5, 4)), TensorSpec((0, 5, 6)), None)),
        Sample(
            (TensorSpec((4, 3), contiguous=False), TensorSpec((5, 3)), TensorSpec((5, 3)), None)
        ),
    ),
)
