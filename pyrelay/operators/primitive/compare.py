"""Comparisons, logic, selection and conversion, element by element, with broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.op import (
    Library,
    Linear,
    NoGradient,
    Op,
    Pointwise,
    Promotion,
    Pullback,
    RuleCall,
    Sample,
    ShapeBehaviour,
    TensorSpec,
    attribute,
    operand,
)
from ...ir.rules import broadcast_shapes, predicate
from ...ir.types import (
    BOOL,
    DType,
    TensorType,
    Type,
    bool_,
    float32,
    float64,
    int64,
    is_float,
    show,
)
from ..shared.samples import numeric_pairs, tied_pairs, unary_samples

if TYPE_CHECKING:
    from ..builder import Value


def _comparison(*, name: str, doc: str, body: Callable[..., Any], torch_name: str) -> Op:
    """Return an operator that compares numbers of a common dtype and gives Bool."""
    return Op(
        name=name,
        doc=doc,
        params=(operand("input", promote=True), operand("other", promote=True)),
        promotion=Promotion.COMMON,
        type_rule=predicate,
        lowering=Pointwise(body),
        grad=NoGradient("a truth value"),
        torch_name=torch_name,
        samples=_compared,
    )


def _compared() -> Iterable[Sample]:
    yield from numeric_pairs()
    yield from tied_pairs()
    yield Sample((TensorSpec((6,), "bool"), TensorSpec((6,), "bool")))


equal: Final = _comparison(
    name="equal",
    doc="Whether elements are equal.",
    body=lambda k, x, y: k.eq(x, y),
    torch_name="eq",
)

not_equal: Final = _comparison(
    name="not_equal",
    doc="Whether elements differ.",
    body=lambda k, x, y: k.ne(x, y),
    torch_name="not_equal",
)

less: Final = _comparison(
    name="less",
    doc="Whether elements of `input` are smaller.",
    body=lambda k, x, y: k.lt(x, y),
    torch_name="less",
)

less_equal: Final = _comparison(
    name="less_equal",
    doc="Whether elements of `input` are smaller or equal.",
    body=lambda k, x, y: k.le(x, y),
    torch_name="less_equal",
)

greater: Final = _comparison(
    name="greater",
    doc="Whether elements of `input` are larger.",
    body=lambda k, x, y: k.gt(x, y),
    torch_name="greater",
)

greater_equal: Final = _comparison(
    name="greater_equal",
    doc="Whether elements of `input` are larger or equal.",
    body=lambda k, x, y: k.ge(x, y),
    torch_name="greater_equal",
)


def _arrays() -> Iterable[Sample]:
    yield Sample((TensorSpec((3, 4)), TensorSpec((3, 4))))
    yield Sample((TensorSpec((2, 1), "int64", 1, 2), TensorSpec((2, 1), "int64", 1, 2)))
    yield Sample((TensorSpec((2, 1)), TensorSpec((2,))))
    yield Sample((TensorSpec((0, 3)), TensorSpec((0, 3))))
    yield Sample((TensorSpec((0,)), TensorSpec((2,))))
    yield Sample((TensorSpec((6,), "bool"), TensorSpec((6,), "bool", contiguous=False)))
    yield Sample((TensorSpec((), "int64", 0, 2), 1))


def _array_equal(torch: Any, left: Any, right: Any) -> Any:
    shapes = [getattr(v, "shape", ()) for v in (left, right)]
    if shapes[0] != shapes[1]:
        tensor = left if shapes[0] else right
        return torch.zeros((), dtype=torch.bool, device=tensor.device)
    same = left == right
    return same.all() if isinstance(same, torch.Tensor) else same


def _array_equal_type(call: RuleCall) -> Type:
    for position in range(2):
        call.tensor(position)
    return BOOL


array_equal: Final = Op(
    name="array_equal",
    doc="Whether two tensors have the same shape and the same elements, as one Bool; NaN is equal "
    "to nothing.",
    params=(operand("input", promote=True), operand("other", promote=True)),
    promotion=Promotion.COMMON,
    type_rule=_array_equal_type,
    shape=ShapeBehaviour.COMPOSITE,
    lowering=Library(_array_equal),
    grad=NoGradient("a truth value"),
    samples=_arrays,
)


def _connective(*, name: str, doc: str, body: Callable[..., Any]) -> Op:
    """Return an operator that combines the truth of two tensors; a number is true unless 0."""
    return Op(
        name=name,
        doc=doc,
        params=(operand("input"), operand("other")),
        type_rule=predicate,
        lowering=Pointwise(lambda k, x, y: body(k, k.cast(x, bool_), k.cast(y, bool_))),
        grad=NoGradient("a truth value"),
        samples=_truths,
    )


def _truths() -> Iterable[Sample]:
    yield Sample((TensorSpec((3, 4), "bool"), TensorSpec((3, 4), "bool")))
    yield Sample((TensorSpec((2, 1, 4), "bool"), TensorSpec((3, 1), "bool")))
    yield Sample((TensorSpec((), "bool"), TensorSpec((3,), "bool", contiguous=False)))
    yield Sample((TensorSpec((), "bool"), TensorSpec((), "int64", -1, 2)))
    yield Sample((TensorSpec((0,), "bool"), TensorSpec((), "bool")))
    yield Sample((TensorSpec((6,), "int64", -1, 2), TensorSpec((6,), "bool")))
    yield Sample((TensorSpec((6,)), TensorSpec((6,), "int64", -1, 2)))


logical_and: Final = _connective(
    name="logical_and",
    doc="Whether elements are both true.",
    body=lambda k, x, y: k.logical_and(x, y),
)

logical_or: Final = _connective(
    name="logical_or",
    doc="Whether at least one of the elements is true.",
    body=lambda k, x, y: k.logical_or(x, y),
)

logical_xor: Final = _connective(
    name="logical_xor",
    doc="Whether exactly one of the elements is true.",
    body=lambda k, x, y: k.logical_xor(x, y),
)


def _test(
    *, name: str, doc: str, body: Callable[..., Any], samples: Callable[[], Iterable[Sample]]
) -> Op:
    """Return a predicate of each element of one tensor of any dtype."""
    return Op(
        name=name,
        doc=doc,
        params=(operand("input"),),
        type_rule=predicate,
        lowering=Pointwise(body),
        grad=NoGradient("a truth value"),
        samples=samples,
    )


def _one_truth() -> Iterable[Sample]:
    yield Sample((TensorSpec((3, 4), "bool"),))
    yield Sample((TensorSpec((), "bool"),))
    yield Sample((TensorSpec((0, 2), "bool"),))
    yield Sample((TensorSpec((6,), "int64", -1, 2),))
    yield Sample((TensorSpec((2, 3), contiguous=False),))


def _finite_and_not() -> Iterable[Sample]:
    yield from unary_samples()
    yield Sample((TensorSpec((3,), low=float("inf"), high=float("inf")),))
    yield Sample((TensorSpec((3,), low=float("-inf"), high=float("-inf")),))
    yield Sample((TensorSpec((3,), low=float("nan"), high=float("nan")),))
    yield Sample((TensorSpec((3,), "int64", 0, 5),))


logical_not: Final = _test(
    name="logical_not",
    doc="Whether elements are false; a number is false when it is 0.",
    body=lambda k, x: k.logical_not(k.cast(x, bool_)),
    samples=_one_truth,
)

isnan: Final = _test(
    name="isnan",
    doc="Whether elements are not a number.",
    body=lambda k, x: k.isnan(x),
    samples=_finite_and_not,
)

isfinite: Final = _test(
    name="isfinite",
    doc="Whether elements are neither infinite nor not a number.",
    body=lambda k, x: k.isfinite(x),
    samples=_finite_and_not,
)

isinf: Final = _test(
    name="isinf",
    doc="Whether elements are plus or minus infinity.",
    body=lambda k, x: k.logical_not(k.logical_or(k.isfinite(x), k.isnan(x))),
    samples=_finite_and_not,
)


def _where_type(call: RuleCall) -> Type:
    condition, chosen, other = (call.tensor(i) for i in range(3))
    if isinstance(condition.dtype, DType) and condition.dtype != bool_:
        call.clash(f"`where` takes a Bool condition, not {show(condition)}", 0)
    shape = broadcast_shapes(call, (condition.shape, chosen.shape, other.shape), stretches=True)
    return TensorType(shape, chosen.dtype)


def _where_grad(p: Pullback) -> Sequence[Value | None]:
    condition = p.args[0]
    return None, where(condition, p.g, 0.0), where(condition, 0.0, p.g)


where: Final = Op(
    name="where",
    doc="Elements of `input` where `condition` holds, of `other` elsewhere.",
    params=(operand("condition"), operand("input", promote=True), operand("other", promote=True)),
    promotion=Promotion.COMMON,
    type_rule=_where_type,
    lowering=Pointwise(lambda k, condition, x, y: k.where(condition, x, y)),
    grad=_where_grad,
    samples=lambda: (
        *(Sample((TensorSpec((3, 4), "bool"), *pair.operands)) for pair in _chosen_pairs()),
        Sample((TensorSpec((), "bool"), TensorSpec((3,)), TensorSpec((2, 1)))),
        Sample((TensorSpec((), "bool"), TensorSpec((), "int64", 0, 9), 2)),
        Sample((TensorSpec((3,), "bool"), TensorSpec((), "bool"), TensorSpec((3,), "bool"))),
    ),
)


def _chosen_pairs() -> Iterable[Sample]:
    yield Sample((TensorSpec((3, 4)), TensorSpec((3, 4))))
    yield Sample((TensorSpec((2, 3, 1)), TensorSpec((4,))))
    yield Sample((TensorSpec((3, 4), contiguous=False), 0.5))
    yield Sample((TensorSpec((0, 3, 4)), TensorSpec(())))
    yield Sample((TensorSpec((4,), "int64", -9, 9), TensorSpec((3, 1), "int64", -9, 9)))
    yield Sample((TensorSpec((4,)), TensorSpec((4,), "int64", -9, 9)))
    yield Sample((TensorSpec((4,), "int32", -9, 9), 2))


def _cast_type(call: RuleCall) -> Type:
    return TensorType(call.tensor(0).shape, call.attrs["dtype"])


def _cast_grad(p: Pullback) -> Sequence[Value | None]:
    dtype = p.args[0].dtype
    return (p.g.cast(dtype) if is_float(dtype) else None,)


cast: Final = Op(
    name="cast",
    doc="The elements converted to another dtype, towards zero from float to integer.",
    params=(operand("input"), attribute("dtype", convert=kinds.dtype)),
    type_rule=_cast_type,
    lowering=Pointwise(lambda k, x, dtype: k.cast(x, dtype)),
    push=Linear(("input",)),
    grad=_cast_grad,
    torch_name="Tensor.to",
    samples=lambda: (
        Sample((TensorSpec((3, 4)),), {"dtype": float64}),
        Sample((TensorSpec((2, 3), contiguous=False),), {"dtype": float32}),
        Sample((TensorSpec(()),), {"dtype": int64}),
        Sample((TensorSpec((0, 2), "int64", 0, 5),), {"dtype": float32}),
        Sample((TensorSpec((6,), "int64", -1, 2),), {"dtype": bool_}),
        Sample((TensorSpec((6,), "bool"),), {"dtype": float32}),
        Sample((TensorSpec((), "int64", -5, 5),), {"dtype": float32}),
        Sample((TensorSpec((), "int64", -5, 5),), {"dtype": bool_}),
    ),
)
