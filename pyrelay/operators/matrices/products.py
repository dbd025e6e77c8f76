"""Products of vectors and matrices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, Final, NoReturn

from ...ir.bounds import minimum, positive_part
from ...ir.declaration import attribute_kinds as kinds
from ...ir.dims import Dim, product
from ...ir.op import (
    Clash,
    Contraction,
    Hidden,
    HiddenKind,
    Init,
    Linear,
    MadeOf,
    Method,
    Op,
    Promotion,
    Pullback,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    View,
    attribute,
    operand,
    optional,
)
from ...ir.rules import axis, broadcast_shapes, expect, parameter_dtype, with_rank
from ...ir.types import TensorType, Type, float32, show
from ..primitive import create, index, reduce, view
from ..shared import moving
from ..shared.operands import is_given
from ..shared.precision import widened

if TYPE_CHECKING:
    from ..builder import Value


_WORTH: Final = 1 << 18
"""Fewer multiplications are not worth a call of oneDNN, which takes 10 us before it begins."""

_MAY_BE_WORTH: Final = 1 << 14
"""The same, where a type leaves sizes open: these count as 1."""


def _fits_onednn(types: Sequence[Type], _: Mapping[str, Any]) -> bool:
    left, right = types[0], types[1]
    if not isinstance(left, TensorType) or not isinstance(right, TensorType):
        return False
    if left.rank < 2 or right.rank != 2 or not left.dtype == right.dtype == float32:
        return False
    # The shared size counts once, and `linear` has it last, `matmul` first.
    sizes = [d.constant for d in (*left.shape[:-1], *right.shape)]
    least = _MAY_BE_WORTH if None in sizes else _WORTH
    return prod(1 if size is None else size for size in sizes) >= least


def _matmul_onednn(torch: Any, x: Any, y: Any) -> Any:
    return torch.ops.mkldnn._linear_pointwise(x, y.t(), None, "none", [], "")  # noqa: SLF001


def _linear_onednn(torch: Any, x: Any, weight: Any, bias: Any) -> Any:
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")  # noqa: SLF001


def _matmul_clash(call: RuleCall, left: TensorType, right: TensorType) -> NoReturn:
    """Stop and say which operand is probably turned round."""
    rows, columns = left.shape[-1], right.shape[-min(right.rank, 2)]
    advice = "give both one name in the annotations, as `(N, K)` and `(K, M)` do"
    if right.rank >= 2 and right.shape[-1] == rows:
        advice = "the other dim fits: `x @ w.T`"
    elif left.rank >= 2 and left.shape[-2] == columns:
        advice = "the other dim fits: `x.T @ w`"
    elif rows.constant is not None and columns.constant is not None:
        advice = f"it takes {rows} rows on the right, or {columns} columns on the left"
    call.clash(
        f"`{call.op.name}` cannot multiply {show(left)} by {show(right)}: "
        f"{rows} columns against {columns} rows",
        0,
        1,
        help=advice,
    )


def _matmul_type(call: RuleCall) -> Type:
    left, right = call.tensor(0), call.tensor(1)
    for i, ty in enumerate((left, right)):
        if ty.rank == 0:
            call.clash(f"`{call.op.name}` takes no number: use `*`", i)
    rows, columns = left.shape[-1], right.shape[-min(right.rank, 2)]
    try:
        call.solver.unify_dims(rows, columns)
    except Clash:
        _matmul_clash(call, left, right)
    try:
        batch = broadcast_shapes(call, [left.shape[:-2], right.shape[:-2]], stretches=True)
    except Clash:
        call.clash(
            f"`{call.op.name}` cannot broadcast the batches of {show(left)} and {show(right)}", 0, 1
        )
    ends = (left.shape[-2:-1], right.shape[-1:] if right.rank > 1 else ())
    return TensorType((*batch, *ends[0], *ends[1]), left.dtype)


def _swap_last(x: Value) -> Value:
    return x.transpose(-2, -1)


def _rows(x: Value) -> Value:
    """Return the tensor as one matrix: all dims but the last made one."""
    if x.rank == 1:
        return x.unsqueeze(0)
    return x if x.rank == 2 else view.flatten(x, start_dim=0, end_dim=-2)


def _matmul_grad(p: Pullback) -> tuple[Value, Value]:
    x, w = p.args
    if x.rank == 1 and w.rank == 1:
        return p.g * w, p.g * x
    # A vector is a matrix of one row on the left, of one column on the right.
    left = x.unsqueeze(0) if x.rank == 1 else x
    right = w.unsqueeze(1) if w.rank == 1 else w
    g = p.g.unsqueeze(-2) if x.rank == 1 else p.g
    g = g.unsqueeze(-1) if w.rank == 1 else g
    if right.rank == 2 and left.rank > 2:
        # One weight for a whole batch: one large product instead of many small ones.
        to_left = g @ _swap_last(right)
        to_right = _swap_last(_rows(left)) @ _rows(g)
    else:
        to_left = (g @ _swap_last(right)).sum_to(left.shape)
        to_right = (_swap_last(left) @ g).sum_to(right.shape)
    return to_left.reshape(*x.shape), to_right.reshape(*w.shape)


def _matmul_samples() -> Iterable[Sample]:
    yield Sample((TensorSpec((3, 4)), TensorSpec((4, 5))))
    yield Sample((TensorSpec((4,)), TensorSpec((4,))))
    yield Sample((TensorSpec((4,)), TensorSpec((4, 2))))
    yield Sample((TensorSpec((3, 4)), TensorSpec((4,))))
    yield Sample((TensorSpec((2, 3, 4)), TensorSpec((4,))))
    yield Sample((TensorSpec((4,)), TensorSpec((2, 4, 3))))
    yield Sample((TensorSpec((2, 3, 4)), TensorSpec((4, 5))))
    yield Sample((TensorSpec((3, 4)), TensorSpec((2, 4, 5))))
    yield Sample((TensorSpec((2, 1, 3, 4)), TensorSpec((5, 4, 2))))
    yield Sample((TensorSpec((0, 4)), TensorSpec((4, 5))))
    yield Sample((TensorSpec((3, 0)), TensorSpec((0, 5))))
    yield Sample((TensorSpec((4, 3), contiguous=False), TensorSpec((3, 2), contiguous=False)))


def product_of_matrices(ranks: Sequence[int], attrs: Mapping[str, Any]) -> str | None:
    """Return `matmul` as a sum of products; a batch dim of size 1 is broadcast. None for vectors,
    of which the library's product is as good."""
    left, right = ranks
    if min(ranks) < 2:
        return None
    batch = ascii_lowercase[: max(left, right) - 2]
    # Batches count from their last dim; letters before `k` are enough for them.
    assert len(batch) <= ascii_lowercase.index("k")
    first, second = batch[len(batch) - (left - 2) :], batch[len(batch) - (right - 2) :]
    return f"{first}mk,{second}kn->{batch}mn"


def product_with_vector(rows: Value, vector: Value) -> Value:
    """Return the sums of products of the last dim's elements with a vector's, as a reduction: what
    is read once needs no blocks."""
    products = widened(rows) * widened(vector)
    return reduce.sum_(products, dim=(-1,), dtype=products.dtype).cast(rows.dtype)


matmul: Final = Op(
    name="matmul",
    doc="Product of matrices, or of stacks of matrices; `@`.",
    params=(operand("input", promote=True), operand("other", promote=True)),
    promotion=Promotion.COMMON,
    type_rule=_matmul_type,
    shape=ShapeBehaviour.BATCHED,
    lowering=Contraction(
        lambda torch, x, y: torch.matmul(x, y),
        fused=product_of_matrices,
        methods=(Method("onednn", _matmul_onednn, _fits_onednn),),
    ),
    push=Linear(("input",), ("other",)),
    grad=_matmul_grad,
    samples=_matmul_samples,
)


def _linear_weight(call: RuleCall) -> TensorType:
    ty = call.tensor(0)
    if ty.rank == 0:
        call.clash("`linear` takes a tensor whose last dim holds the features, not a number", 0)
    return TensorType((Dim.of(call.attrs["out_features"]), ty.shape[-1]), parameter_dtype(call))


def _linear_bias(call: RuleCall) -> TensorType:
    return TensorType((Dim.of(call.attrs["out_features"]),), parameter_dtype(call))


def _linear_clash(call: RuleCall, x: TensorType, weight: TensorType) -> NoReturn:
    """Stop and say what was probably forgotten."""
    features = weight.shape[-1]
    advice = f"the weight is (out_features, in_features): here it needs {x.shape[-1]} columns"
    if weight.shape[0] == x.shape[-1]:
        advice = "the weight is (out_features, in_features): pass `w.T`"
    for start in range(x.rank - 1):
        if product(x.shape[start:]) == features:
            advice = f"flatten the other dims first: relay.flatten(x, start_dim={start})"
    call.clash(
        f"`linear` got {x.shape[-1]} features, its weight takes {features}", 0, 1, help=advice
    )


def _linear_type(call: RuleCall) -> Type:
    x, weight = call.tensor(0), with_rank(call, 1, 1, 2)
    if x.rank == 0:
        call.clash("`linear` takes a tensor whose last dim holds the features, not a number", 0)
    features = weight.shape[-1]
    try:
        call.solver.unify_dims(x.shape[-1], features)
    except Clash:
        _linear_clash(call, x, weight)
    out = weight.shape[:-1]
    if call.given(2):
        expect(call, 2, TensorType(out, x.dtype), "`linear` takes one bias per output")
    return TensorType((*x.shape[:-1], *out), x.dtype)


def _linear_grad(p: Pullback) -> tuple[Value | None, ...]:
    x, weight, bias = p.args
    single = weight.rank == 1
    matrix = weight.unsqueeze(0) if single else weight
    rows = _rows(p.g.unsqueeze(-1) if single else p.g)
    to_x = (rows @ matrix).reshape(*x.shape)
    to_weight = (_swap_last(rows) @ _rows(x)).reshape(*weight.shape)
    to_bias = rows.sum((0,)).reshape(*bias.shape) if is_given(bias) else None
    return to_x, to_weight, to_bias


def _linear_code(args: tuple[Value, ...], attrs: Mapping[str, Any]) -> Value:
    x, weight, bias = args
    if weight.rank == 1 or x.rank == 1:
        found = product_with_vector(*((x, weight) if weight.rank == 1 else (weight, x)))
    else:
        found = x @ _swap_last(weight)
    return found + bias if is_given(bias) else found


def _linear(torch: Any, x: Any, weight: Any, bias: Any) -> Any:
    if x.ndim == 1 and weight.ndim == 2:
        # One call of a matrix with a vector; `linear` makes it a product of matrices.
        return torch.mv(weight, x) if bias is None else torch.addmv(bias, weight, x)
    return torch.nn.functional.linear(x, weight, bias)


linear: Final = Op(
    name="linear",
    doc="`input @ weight.T + bias`; the weight is (out_features, in_features).",
    params=(operand("input", promote=True), operand("weight", promote=True), optional("bias")),
    promotion=Promotion.COMMON,
    type_rule=_linear_type,
    shape=ShapeBehaviour.FEATURE_BATCHED,
    lowering=Contraction(
        _linear,
        fused=MadeOf(_linear_code),
        methods=(Method("onednn", _linear_onednn, _fits_onednn),),
    ),
    push=Linear(("input",), ("weight", "bias"), added="bias"),
    grad=_linear_grad,
    hidden=(
        Hidden("weight", HiddenKind.PARAMETER, Init.FAN_IN, _linear_weight),
        Hidden("bias", HiddenKind.PARAMETER, Init.ZEROS, _linear_bias, only_if="bias"),
    ),
    hyper=(attribute("out_features", convert=kinds.size), attribute("bias", True, kinds.flag)),
    torch_name="nn.functional.linear",
    samples=lambda: (
        Sample((TensorSpec((3, 4)), TensorSpec((5, 4)), TensorSpec((5,)))),
        Sample((TensorSpec((3, 4)), TensorSpec((5, 4)), None)),
        Sample((TensorSpec((4,)), TensorSpec((5, 4)), TensorSpec((5,)))),
        Sample((TensorSpec((2, 3, 4)), TensorSpec((5, 4)), TensorSpec((5,)))),
        Sample((TensorSpec((2, 3, 4)), TensorSpec((4,)), None)),
        Sample((TensorSpec((0, 4)), TensorSpec((5, 4)), TensorSpec((5,)))),
        Sample((TensorSpec((4, 3), contiguous=False), TensorSpec((5, 3)), None)),
    ),
)


def _outer_type(call: RuleCall) -> Type:
    left, right = with_rank(call, 0, 1), with_rank(call, 1, 1)
    return TensorType((*left.shape, *right.shape), left.dtype)


outer: Final = Op(
    name="outer",
    doc="All products of an element of one vector with an element of another.",
    params=(operand("input", promote=True), operand("vec2", promote=True)),
    promotion=Promotion.COMMON,
    type_rule=_outer_type,
    shape=ShapeBehaviour.FIXED,
    lowering=Contraction(
        lambda torch, x, y: torch.outer(x, y),
        fused=MadeOf(lambda args, _: args[0].unsqueeze(1) * args[1]),
    ),
    push=Linear(("input",), ("vec2",)),
    grad=lambda p: (p.g @ p.args[1], p.args[0] @ p.g),
    samples=lambda: (
        Sample((TensorSpec((3,)), TensorSpec((4,)))),
        Sample((TensorSpec((0,)), TensorSpec((4,)))),
        Sample((TensorSpec((3,), contiguous=False), TensorSpec((1,)))),
    ),
)


def _diagonal_length(call: RuleCall, rows: Dim, columns: Dim) -> Dim:
    offset: int = call.attrs["offset"]
    rows, columns = call.solver.resolve_dim(rows), call.solver.resolve_dim(columns)
    return positive_part(minimum(rows - max(0, -offset), columns - max(0, offset)))


def _diagonal_type(call: RuleCall) -> Type:
    source = call.tensor(0)
    if source.rank < 2:
        call.clash(f"`diagonal` takes a tensor of 2 dimensions or more, not {show(source)}", 0)
    a = axis(call, call.attrs["dim1"], source.rank)
    b = axis(call, call.attrs["dim2"], source.rank)
    if a == b:
        call.clash("`diagonal` takes two different dims", 0)
    rest = tuple(d for i, d in enumerate(source.shape) if i not in (a, b))
    length = _diagonal_length(call, source.shape[a], source.shape[b])
    return TensorType((*rest, length), source.dtype)


def _diagonal_grad(p: Pullback) -> tuple[Value]:
    x, offset = p.args[0], p.attrs["offset"]
    a, b = p.attrs["dim1"] % x.rank, p.attrs["dim2"] % x.rank
    size, builder = p.out.shape[-1], p.g.builder
    places = builder.call(create.arange, (), {"end": size})
    rows, columns = places + max(0, -offset), places + max(0, offset)
    rest = tuple(d for i, d in enumerate(x.shape) if i not in (a, b))
    zeros = builder.zeros(TensorType((*rest, x.shape[a], x.shape[b]), x.dtype))
    spec = (("ellipsis",), ("int", 0), ("int", 1))
    indices = builder.tuple((rows, columns))
    filled = index.index_accumulate(zeros, indices, p.g, spec=spec)
    order = [i for i in range(x.rank) if i not in (a, b)] + [a, b]
    inverse = tuple(order.index(i) for i in range(x.rank))
    return (view.permute(filled, dims=inverse),)


diagonal: Final = Op(
    name="diagonal",
    doc="The diagonal between two dims, as a last dim.",
    params=(
        operand("input"),
        attribute("offset", 0, kinds.whole),
        attribute("dim1", 0, kinds.axis),
        attribute("dim2", 1, kinds.axis),
    ),
    type_rule=_diagonal_type,
    shape=ShapeBehaviour.N_DIMENSIONAL,
    lowering=View(
        lambda torch, x, offset, a, b: torch.diagonal(x, offset, a, b), moving.diagonal_of
    ),
    push=Linear(("input",)),
    grad=_diagonal_grad,
    samples=lambda: (
        Sample((TensorSpec((3, 3)),)),
        Sample((TensorSpec((3, 4)),), {"offset": 1}),
        Sample((TensorSpec((3, 4)),), {"offset": -1}),
        Sample((TensorSpec((2, 3, 3)),), {"dim1": -2, "dim2": -1}),
        Sample((TensorSpec((2, 0, 0)),), {"dim1": 1, "dim2": 2}),
        Sample((TensorSpec((4, 3), contiguous=False),)),
    ),
)
