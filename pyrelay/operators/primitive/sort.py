"""Orders: elements along a dim sorted, the positions that sort them, the first k, and the position
of an element in a sorted row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.op import (
    Clash,
    Library,
    NoGradient,
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
from ...ir.rules import axis
from ...ir.types import TensorType, TupleType, Type, int64, show
from ..shared.operands import as_tensors, on_tensor
from ..shared.samples import filled
from .gathering import place

if TYPE_CHECKING:
    from ..builder import Value


def _order_type(call: RuleCall) -> TensorType:
    ty = call.tensor(0)
    axis(call, call.attrs["dim"], ty.rank)
    return TensorType(ty.shape, int64)


def _sort_type(call: RuleCall) -> Type:
    return TupleType((call.tensor(0), _order_type(call)))


def _place_values(p: Pullback) -> Sequence[Value | None]:
    return (place(p.g[0], p.out[1], p.args[0], p.attrs["dim"]),)


def _sort_samples() -> Iterable[Sample]:
    yield Sample((TensorSpec((3, 4)),))
    yield Sample((TensorSpec((3, 4)),), {"dim": 0, "descending": True})
    yield Sample((TensorSpec((2, 3, 4)),), {"dim": -2, "stable": True})
    yield Sample((TensorSpec((4, 3), contiguous=False),), {"dim": 1})
    yield Sample((TensorSpec((0, 3)),), {"dim": 1})
    yield Sample((TensorSpec((2, 0)),))
    yield Sample((TensorSpec((7,), "int64", -3, 4),), {"stable": True})
    yield Sample((filled(1.0, 5),), {"stable": True}, smooth=False)
    yield Sample((filled(1.0, 5),), {"stable": True, "descending": True}, smooth=False)


def _sort(torch: Any, x: Any, dim: int, descending: bool, stable: bool) -> Any:
    return tuple(torch.sort(x, dim=dim, descending=descending, stable=stable))


def _argsort(torch: Any, x: Any, dim: int, descending: bool, stable: bool) -> Any:
    return torch.argsort(x, dim=dim, descending=descending, stable=stable)


_ORDERED: Final = (
    operand("input"),
    attribute("dim", -1, kinds.axis),
    attribute("descending", False, kinds.flag),
    attribute("stable", False, kinds.flag),
)


sort: Final = Op(
    name="sort",
    doc="Elements in order along `dim`, and the positions they come from.",
    params=_ORDERED,
    type_rule=_sort_type,
    shape=ShapeBehaviour.IDENTITY,
    lowering=Library(on_tensor(_sort)),
    grad=_place_values,
    samples=_sort_samples,
)

argsort: Final = Op(
    name="argsort",
    doc="Positions of the elements in order along `dim`.",
    params=_ORDERED,
    type_rule=_order_type,
    shape=ShapeBehaviour.IDENTITY,
    lowering=Library(on_tensor(_argsort)),
    grad=NoGradient("positions"),
    samples=_sort_samples,
)


def _topk_type(call: RuleCall) -> Type:
    ty, k = call.tensor(0), call.solver.resolve_dim(call.attrs["k"])
    place_of = axis(call, call.attrs["dim"], ty.rank)
    have = call.solver.resolve_dim(ty.shape[place_of])
    missing = (k - have).constant
    if (missing is not None and missing > 0) or (k.constant is not None and k.constant < 0):
        call.clash(f"`topk` cannot take {k} of {have} elements in {show(ty)}", 0)
    shape = tuple(k if d == place_of else size for d, size in enumerate(ty.shape))
    return TupleType((TensorType(shape, ty.dtype), TensorType(shape, int64)))


def _topk(torch: Any, x: Any, k: int, dim: int, largest: bool, ordered: bool) -> Any:
    return tuple(torch.topk(x, k, dim, largest, ordered))


topk: Final = Op(
    name="topk",
    doc="The `k` largest or smallest elements along `dim`, and the positions they come from.",
    params=(
        operand("input"),
        attribute("k", convert=kinds.dim),
        attribute("dim", -1, kinds.axis),
        attribute("largest", True, kinds.flag),
        attribute("sorted", True, kinds.flag),
    ),
    type_rule=_topk_type,
    shape=ShapeBehaviour.FIXED,
    lowering=Library(on_tensor(_topk)),
    grad=_place_values,
    samples=lambda: (
        Sample((TensorSpec((3, 4)),), {"k": 2}),
        Sample((TensorSpec((3, 4)),), {"k": 2, "dim": 0, "largest": False}),
        Sample((TensorSpec((2, 5, 3)),), {"k": 5, "dim": -2}),
        Sample((TensorSpec((4, 3), contiguous=False),), {"k": 1, "dim": 1}),
        Sample((TensorSpec((0, 3)),), {"k": 2}),
        Sample((TensorSpec((3,)),), {"k": 0}),
        Sample((TensorSpec((7,), "int64", 0, 100),), {"k": 3}),
    ),
)


def _searchsorted_type(call: RuleCall) -> Type:
    ordered, source = call.tensor(0), call.tensor(1)
    if ordered.rank == 0:
        call.clash(f"`searchsorted` takes sorted rows, not {show(ordered)}", 0)
    if ordered.rank > 1:
        message = f"`searchsorted` has no row of {show(ordered)} for each row of {show(source)}"
        if source.rank != ordered.rank:
            call.clash(message, 0, 1, help="one row for all is of 1 dimension")
        try:
            for left, right in zip(ordered.shape[:-1], source.shape[:-1], strict=True):
                call.solver.unify_dims(left, right)
        except Clash:
            call.clash(message, 0, 1)
    return TensorType(source.shape, int64)


def _searchsorted(torch: Any, ordered: Any, source: Any, right: bool) -> Any:
    ordered, source = as_tensors(torch, (ordered, source))
    # Torch warns of operands that it has to copy.
    return torch.searchsorted(ordered.contiguous(), source.contiguous(), right=right)


_SORTED_ROW: Final = TensorSpec((5,), low=0.5, high=0.5)

searchsorted: Final = Op(
    name="searchsorted",
    doc="The position in a sorted row before which each element can be inserted: of equal elements "
    "before the first, or, with `right`, behind the last. There is one row, or one for each row of "
    "`input`.",
    params=(
        operand("sorted_sequence", promote=True),
        operand("input", promote=True),
        attribute("right", default=False, convert=kinds.flag),
    ),
    promotion=Promotion.COMMON,
    type_rule=_searchsorted_type,
    shape=ShapeBehaviour.FIXED,
    lowering=Library(_searchsorted, is_fresh=True),
    grad=NoGradient("positions are integers"),
    samples=lambda: (
        Sample((_SORTED_ROW, TensorSpec((3, 4)))),
        Sample((_SORTED_ROW, TensorSpec((4,), low=0.5, high=0.5)), {"right": True}),
        Sample((_SORTED_ROW, TensorSpec((4,), low=0.5, high=0.5))),
        Sample((TensorSpec((2, 5), low=0.5, high=0.5), TensorSpec((2, 3)))),
        Sample((TensorSpec((3,), "int64", 2, 2), TensorSpec((4,), "int64", 0, 5))),
        Sample((TensorSpec((3,), "int64", 2, 2), TensorSpec((4,)))),
        Sample((_SORTED_ROW, TensorSpec(()))),
        Sample((TensorSpec((0,)), TensorSpec((3,)))),
        Sample((_SORTED_ROW, TensorSpec((0, 3)))),
        Sample((_SORTED_ROW, TensorSpec((4, 3), contiguous=False))),
    ),
)
