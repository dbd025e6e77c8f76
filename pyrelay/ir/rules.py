"""The vocabulary of type rules: broadcasting, axes, dtypes, pairs.

A rule sees operands whose promoted dtypes already agree, so it speaks only of shapes and of the
dtype of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .dims import ONE, Dim, DimHole
from .op import Clash, RuleCall, Stuck, TypeRule
from .types import AnyDType, DType, TensorType, Type, bool_, float32, int64, is_float, show


def broadcast_dims(call: RuleCall, left: Dim, right: Dim, *, stretches: bool = False) -> Dim:
    """Return the dim of two broadcast dims. Raises Stuck while a choice is open, Clash if none is.

    A 1 gives way. A dim not known yet is not guessed in argument position, since it may turn out
    to be 1; when inference settles, equality is chosen. With `stretches` either of two sizes may
    turn out to be 1 in a program that decides that while it runs.
    """
    left, right = call.solver.resolve_dim(left), call.solver.resolve_dim(right)
    if left == right or right == ONE:
        return left
    if left == ONE:
        return right
    for dim in (left, right):
        if isinstance(dim.single, DimHole) and not call.solver.settling:
            raise Stuck(dim)
    if stretches and call.solver.stretches and not (left.has_holes() or right.has_holes()):
        if left.constant is None and right.constant is None:
            return left.at_least(right)
        if left.constant is None or right.constant is None:
            return left if right.constant is None else right
    call.solver.unify_dims(left, right)
    return joined_dim(call, left, right)


def joined_dim(call: RuleCall, left: Dim, right: Dim) -> Dim:
    """Return that of two equal dims which says more: a number, or else one that the arguments show
    rather than one that the running program finds. The order of operands does not matter then."""
    left, right = call.solver.resolve_dim(left), call.solver.resolve_dim(right)
    if left.constant is not None or right.constant is not None:
        return left if left.constant is not None else right
    return left if call.solver.is_found_running(right) else right


def broadcast_shapes(
    call: RuleCall, shapes: Sequence[tuple[Dim, ...]], *, stretches: bool = False
) -> tuple[Dim, ...]:
    """Return the broadcast of shapes, aligned at the last dim. Raises Stuck or Clash."""
    result = shapes[0]
    for shape in shapes[1:]:
        longer, shorter = (result, shape) if len(result) >= len(shape) else (shape, result)
        lead = len(longer) - len(shorter)
        paired = zip(longer[lead:], shorter, strict=True)
        result = longer[:lead] + tuple(
            broadcast_dims(call, a, b, stretches=stretches) for a, b in paired
        )
    return result


def elementwise(result: Callable[[RuleCall, AnyDType], AnyDType]) -> TypeRule:
    """Return the rule of an operator on broadcast operands; `result` gives the result's dtype."""

    def rule(call: RuleCall) -> Type:
        operands = [call.tensor(i) for i in range(len(call.types))]
        try:
            shape = broadcast_shapes(call, [t.shape for t in operands], stretches=True)
        except Clash as clash:
            call.clash(
                f"`{call.name}` cannot broadcast " + " with ".join(show(t) for t in operands),
                *range(len(operands)),
                help=f"aligned at the last dim, sizes are equal or 1: {clash.message}",
            )
        return TensorType(shape, result(call, operands[0].dtype))

    return rule


def _same(_: RuleCall, dtype: AnyDType) -> AnyDType:
    return dtype


def _bool(_: RuleCall, __: AnyDType) -> AnyDType:
    return bool_


def _numeric(call: RuleCall, dtype: AnyDType) -> AnyDType:
    if isinstance(dtype, DType) and dtype == bool_:
        way = "make it a number: `int(b)` for one bool, relay.cast(b, relay.int64) for a tensor"
        call.clash(f"`{call.name}` takes numbers, not Bool", 0, help=way)
    return dtype


same_dtype: TypeRule = elementwise(_same)
"""Broadcast operands; the result has their common dtype."""

numeric: TypeRule = elementwise(_numeric)
"""Broadcast operands that are not bools; the result has their common dtype."""

predicate: TypeRule = elementwise(_bool)
"""Broadcast operands; the result is Bool."""


def axis(call: RuleCall, dim: int, rank: int, index: int = 0) -> int:
    """Return a dim counted from 0. Raises Clash when the tensor has no such dim."""
    if not -rank <= dim < rank:
        many = "1 dimension" if rank == 1 else f"{rank} dimensions"
        call.clash(f"`{call.name}` has no dim {dim} here: the tensor has {many}", index)
    return dim % rank


def axes(
    call: RuleCall, dims: int | tuple[int, ...] | None, rank: int, index: int = 0
) -> tuple[int, ...]:
    """Return dims counted from 0, in order; None means all. Raises Clash on a repeat."""
    if dims is None:
        return tuple(range(rank))
    given = (dims,) if isinstance(dims, int) else dims
    found = tuple(axis(call, d, rank, index) for d in given)
    if len(set(found)) != len(found):
        call.clash(f"`{call.name}` names a dim twice: {given}", index)
    return found


def drop_axes(shape: Sequence[Dim], dropped: Sequence[int], *, keepdim: bool) -> tuple[Dim, ...]:
    """Return the shape after a reduction over the dims `dropped`."""
    if keepdim:
        return tuple(ONE if i in dropped else d for i, d in enumerate(shape))
    return tuple(d for i, d in enumerate(shape) if i not in dropped)


def floating(call: RuleCall, index: int) -> TensorType:
    """Return the type of an operand that must be a float tensor. Raises Stuck or Clash."""
    ty = call.tensor(index)
    dtype = call.known_dtype(ty.dtype)
    if isinstance(ty.dtype, DType) and not is_float(dtype):
        call.clash(
            f"`{call.name}` takes a float tensor, not {show(ty)}", index, cast=(index, float32)
        )
    return ty


def integral(call: RuleCall, index: int) -> TensorType:
    """Return the type of an operand that must be an integer tensor. Raises Stuck or Clash."""
    ty = call.tensor(index)
    if is_float(ty.dtype) or ty.dtype == bool_:
        call.clash(
            f"`{call.name}` takes integers as `{call.operand_name(index)}`, not {show(ty)}", index
        )
    return ty


def with_rank(call: RuleCall, index: int, *ranks: int) -> TensorType:
    """Return the type of an operand that must have one of the ranks. Raises Stuck or Clash."""
    ty = call.tensor(index)
    if ty.rank not in ranks:
        wanted = " or ".join(str(r) for r in ranks)
        call.clash(
            f"`{call.name}` takes a tensor of {wanted} dimensions as "
            f"`{call.operand_name(index)}`, not {show(ty)}",
            index,
        )
    return ty


def expect(call: RuleCall, index: int, ty: TensorType, message: str) -> None:
    """Make an operand's type equal to `ty`; a clash says `message`. Raises Clash."""
    call.tensor(index)
    try:
        call.solver.unify(call.types[index], ty)
    except Clash:
        call.clash(f"{message}: {show(ty)}", index)


def common_dtype(call: RuleCall, tensors: Sequence[TensorType]) -> AnyDType:
    """Return the one dtype of tensors, which are the first operand. Raises Clash if they differ."""
    first = tensors[0]
    for other in tensors[1:]:
        try:
            call.solver.unify(TensorType((), first.dtype), TensorType((), other.dtype))
        except Clash:
            call.clash(
                f"`{call.name}` takes tensors of one dtype, not {show(first)} and {show(other)}",
                0,
                help=f"cast one: relay.cast(x, relay.{first.dtype})",
            )
    return first.dtype


def same_as_operand(index: int = 0) -> TypeRule:
    """Return the rule whose result has the type of one operand."""
    return lambda call: call.tensor(index)


INDEX_DTYPE = int64
"""The dtype of results that are positions."""


def one_shape(call: RuleCall) -> Type:
    """Return the type of the first operand, which the second has, too. Raises Stuck or Clash."""
    ty = call.tensor(0)
    name = call.operand_name(1)
    expect(call, 1, ty, f"`{call.op.name}` takes a {name} of the shape of `grad`")
    return ty


def parameter_dtype(call: RuleCall) -> AnyDType:
    """Return the dtype of a hidden parameter: of a float operand its own, else float32."""
    dtype = call.known_dtype(call.tensor(0).dtype)
    return dtype if is_float(dtype) else float32
