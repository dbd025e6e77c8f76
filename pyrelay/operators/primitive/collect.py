"""Terms that a recursion has kept, put side by side: what `passes.accumulate` ends with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.dims import Dim
from ...ir.op import Library, NoGradient, Op, RuleCall, ShapeBehaviour, attribute, operand
from ...ir.types import AdtType, TensorType, TupleType, Type
from ..shared.operands import as_tensor

if TYPE_CHECKING:
    from ..builder import Value


def _collect_type(call: RuleCall) -> Type:
    ty = call.type(0)
    pack = ty.args[0] if isinstance(ty, AdtType) and ty.args else None
    if not isinstance(pack, TupleType | TensorType):
        call.clash("`collect` takes a list of tensors or of tuples of tensors", 0)
    count = call.solver.fresh_dim("count")
    fields = pack.fields if isinstance(pack, TupleType) else (pack,)
    tensors = [t for t in fields if isinstance(t, TensorType)]
    return TupleType(tuple(TensorType((count, *t.shape), t.dtype) for t in tensors))


def _collect(torch: Any, device: Any, terms: Any, shapes: Any, dtypes: Any) -> Any:
    found: list[Any] = []
    while len(terms) > 1:
        _, term, terms = terms
        found.append(term if isinstance(term, tuple) else (term,))
    if not found:
        empty = zip(shapes, dtypes, strict=True)
        return tuple(torch.empty((0, *s), dtype=d, device=device) for s, d in empty)
    columns = zip(*found, strict=True)
    return tuple(
        _side_by_side(torch, device, column, dtype)
        for column, dtype in zip(columns, dtypes, strict=True)
    )


def _side_by_side(torch: Any, device: Any, column: Sequence[Any], dtype: Any) -> Any:
    numbers = [isinstance(v, torch.Tensor) for v in column]
    if True not in numbers:
        return torch.tensor(column, dtype=dtype, device=device)
    if False not in numbers:
        return torch.stack(column)
    like = column[numbers.index(True)]
    return torch.stack([as_tensor(torch, v, like) for v in column])


def collected(
    terms: Value, types: Sequence[TensorType], shapes: Sequence[tuple[Dim, ...]]
) -> list[Value]:
    """Return the fields of all tuples of a list, or its tensors as one field, each with those of
    the others in a new first dim; `types` are those of the fields, and `shapes` what they have
    where the list is empty."""
    attrs = {"shapes": tuple(shapes), "dtypes": tuple(t.dtype for t in types)}
    found = terms.builder.call(collect, (terms,), attrs)
    return [found[i] for i in range(len(types))]


collect: Final = Op(
    name="collect",
    doc="The fields of all tuples of a list, each with those of the others in a new first dim.",
    params=(
        operand("terms"),
        attribute("shapes", convert=kinds.tuple_of(kinds.shape)),
        attribute("dtypes", convert=kinds.tuple_of(kinds.dtype)),
    ),
    type_rule=_collect_type,
    shape=ShapeBehaviour.FACTORY,
    lowering=Library(_collect, is_fresh=True),
    grad=NoGradient("it is put into programs whose gradients have been taken", is_zero=False),
    torch_name=None,
    samples=lambda: (),
)
