"""Results with the parameters of models, and their gradients, as records instead of tuples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast, final

from ...dataclass import dataclass
from ...ir.expr import Expr, Function, Tuple, Var
from ...ir.traverse import spine
from ...translate.calls.passed_models import annotated_definition
from ...translate.translator import Translation
from ...translate.types.number_places import Numbers, NumbersOfParts, Recorded, together
from ..values.structure import tensors
from .model import Model
from .model_layout import Home
from .records import Grads, Params, TensorRecord


@final
@dataclass(frozen=True, slots=True)
class Homes:
    """The arguments of a call, by name and all together, from which the model of a record in its
    result is found."""

    named: Mapping[str, Any]
    sources: Sequence[Any]

    def of(self, record: Recorded, tree: Any) -> Home | None:
        """Return the model that a record in the result belongs to; None where no argument is a
        model, or a record, whose parameters have these shapes."""
        if record.parameter is not None:
            source = self.named.get(record.parameter)
            return source.home if isinstance(source, TensorRecord) else None
        wanted, shapes = annotated_definition(record.of), _shapes(tree)
        for source in self.sources:
            if not isinstance(source, Model | TensorRecord):
                continue
            home = source.home
            records = source.tree if isinstance(source, TensorRecord) else source.params_tree()
            if home.blueprint.spec.definition is wanted and _shapes(records) == shapes:
                return home
        return None


def _shapes(tree: Any) -> list[tuple[int, ...]]:
    return [tuple(t.shape) for t in tensors(tree)]


def recorded(value: Any, records: Numbers, homes: Homes) -> Any:
    """Return a result, with `Params` and `Grads` in place of the tuples at the places of
    `records`."""
    match records:
        case Recorded():
            home = homes.of(records, value)
            kind = Grads if records.is_gradient else Params
            return value if home is None else kind(home, value)
        case NumbersOfParts(parts) if isinstance(value, tuple):
            fields = zip(cast("tuple[Any, ...]", value), parts, strict=True)
            return tuple([recorded(v, p, homes) for v, p in fields])
        case NumbersOfParts(parts) if callable(value):
            return _recording(value, parts[-1], homes)
        case _:
            return value


def passed_on(function: Function, translation: Translation) -> Numbers:
    """Return where the result of a function, which is not annotated, has the records that its
    parameters are, as they came."""
    values = translation.signature.values
    given = zip(function.params[len(function.params) - len(values) :], values, strict=True)
    records = {var: Recorded(p.params, p.name) for var, p in given if p.params is not None}
    if not records:
        return None
    blocks, end = spine(function.body)
    known = {b.var: b.value for block in blocks for b in block.bindings}

    def resolved(expr: Expr) -> Expr:
        while isinstance(expr, Var) and expr in known:
            expr = known[expr]
        return expr

    def place(expr: Expr) -> Numbers:
        return records.get(expr) if isinstance(expr, Var) else None

    whole = resolved(end)
    if isinstance(whole, Tuple):
        return together(place(resolved(field)) for field in whole.fields)
    return place(whole)


def _recording(function: Callable[..., Any], records: Numbers, homes: Homes) -> Callable[..., Any]:
    """Return a function result, such as a pullback, that takes and gives records."""

    def call(*args: Any) -> Any:
        given = [a.tree if isinstance(a, TensorRecord) else a for a in args]
        return recorded(function(*given), records, homes)

    return call
