"""Terms that a recursion has kept, put side by side: what `passes.accumulate` ends with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ...ir.declaration import attribute_kinds as kinds
from ...ir.dims import Dim
from ...ir.op import Library, NoGradient, Op, RuleCall, ShapeBehaviour, attribute, operand
from ...ir.own_sizes import has_own_sizes, tensor_in
from ...ir.types import AdtType, TensorType, TupleType, Type
from ..shared.operands import as_tensor

if TYPE_CHECKING:
    from ..builder import Value


def _collect_type(call: RuleCall) -> Type:
    lists = call.type(0)
    made: list[Type] = []
    for ty in lists.fields if isinstance(lists, TupleType) else (lists,):
        pack = ty.args[0] if isinstance(ty, AdtType) and ty.args else None
        if not isinstance(pack, TupleType | TensorType):
            call.clash("`collect` takes lists of tensors or of tuples of tensors", 0)
        count = call.solver.fresh_dim("count")
        for field in pack.fields if isinstance(pack, TupleType) else (pack,):
            if has_own_sizes(field):
                inside = tensor_in(field, lambda count=count: count)
                made.append(TensorType((count, *inside.shape[1:]), inside.dtype))
            elif isinstance(field, TensorType):
                made.append(TensorType((count, *field.shape), field.dtype))
    return TupleType(tuple(made))


def _collect(torch: Any, device: Any, lists: Any, shapes: Any, dtypes: Any) -> Any:
    made: list[Any] = []
    known: dict[tuple[int, ...], tuple[Any, Any]] = {}
    """By the identities of the tensors of a column, the column, so that they live, and its result:
    the same tensors may be in several lists."""
    for terms, own_shapes, own_dtypes in zip(lists, shapes, dtypes, strict=True):
        columns = _columns(terms)
        if not columns:
            empty = zip(own_shapes, own_dtypes, strict=True)
            made += [torch.empty((0, *s), dtype=d, device=device) for s, d in empty]
            continue
        for column, shape, dtype in zip(columns, own_shapes, own_dtypes, strict=True):
            key = tuple(map(id, column))
            if key not in known:
                known[key] = column, _side_by_side(torch, device, column, shape, dtype)
            made.append(known[key][1])
    return tuple(made)


def _columns(terms: Any) -> list[tuple[Any, ...]]:
    """Return the fields of the terms of a list, each with those of all others; none if there are no
    terms."""
    found: list[Any] = []
    while len(terms) > 1:
        _, term, terms = terms
        found.append(term if isinstance(term, tuple) else (term,))
    return list(zip(*found, strict=True))


def _side_by_side(
    torch: Any, device: Any, column: Sequence[Any], shape: tuple[int, ...], dtype: Any
) -> Any:
    if isinstance(column[0], torch.Tensor) and column[0].dim() > len(shape):
        return torch.cat(column)
    numbers = [isinstance(v, torch.Tensor) for v in column]
    if True not in numbers:
        return torch.tensor(column, dtype=dtype, device=device)
    if False not in numbers:
        return torch.stack(column)
    like = column[numbers.index(True)]
    return torch.stack([as_tensor(torch, v, like) for v in column])


def collected(
    lists: Sequence[Value],
    types: Sequence[Sequence[TensorType]],
    shapes: Sequence[Sequence[tuple[Dim, ...]]],
) -> list[list[Value]]:
    """Return for each list the fields of its tuples, or its tensors as one field, each with those
    of the others in a new first dim; tensors with sizes of their own are joined in their first dim.
    `types` are those of the fields, or of the rows of these, and `shapes` what they have where the
    list is empty. What is in several lists is put side by side once."""
    builder = lists[0].builder
    attrs = {
        "shapes": tuple(map(tuple, shapes)),
        "dtypes": tuple(tuple(t.dtype for t in own) for own in types),
    }
    found = builder.call(collect, (builder.tuple(lists),), attrs)
    places = iter(range(sum(map(len, types))))
    return [[found[next(places)] for _ in own] for own in types]


collect: Final = Op(
    name="collect",
    doc="The fields of all tuples of each of some lists, with those of the others in a new first "
    "dim; tensors with sizes of their own are joined in their first dim.",
    params=(
        operand("lists"),
        attribute("shapes", convert=kinds.tuple_of(kinds.tuple_of(kinds.shape))),
        attribute("dtypes", convert=kinds.tuple_of(kinds.tuple_of(kinds.dtype))),
    ),
    type_rule=_collect_type,
    shape=ShapeBehaviour.FACTORY,
    lowering=Library(_collect, is_fresh=False),
    grad=NoGradient("it is put into programs whose gradients have been taken", is_zero=False),
    samples=lambda: (),
)
