"""The forms in which updates take gradients: rows of a table, factors of a product, or dense.

Read off the program after updates have been put in place. A gradient that is rows in part names the
line that reads the rest of the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, final

from ..analysis.bindings import definitions, uses
from ..dataclass import dataclass
from ..diagnostics.source import BUILTIN
from ..ir.dims import product
from ..ir.expr import Call, Expr, Function, RefRead, Tuple, TupleGet, Var, type_of
from ..ir.module import Module
from ..ir.types import TensorType, show
from ..operators.composite.descent import descend_in_place, overwrite_all
from ..passes.rewrites.low_rank_gradients import is_float_tensor
from ..passes.rewrites.row_gradients import STEPS, cotangent


@final
@dataclass(frozen=True, slots=True)
class GradientForm:
    """A parameter, by its place among those of its model, and the form of its gradient."""

    parameter: str
    type: str
    form: str
    has_rows: bool


def gradient_forms(module: Module) -> list[GradientForm]:
    """Return the forms of the gradients that updates of models take, in order of the parameters."""
    found: dict[tuple[str, str], GradientForm] = {}
    for function in module.functions.values():
        for form in _Forms(function).found():
            found.setdefault((form.parameter, form.type), form)
    return [found[key] for key in sorted(found)]


def explain_gradients(module: Module) -> list[str]:
    """Return a line for each parameter of an updated model; none where no gradient is rows."""
    forms = gradient_forms(module)
    if not any(f.has_rows for f in forms):
        return []
    first, second = (max(len(f.parameter) for f in forms), max(len(f.type) for f in forms))
    return [f"  {f.parameter:<{first}}  {f.type:<{second}}  {f.form}" for f in forms]


@final
class _Forms:
    """The updates in one function."""

    def __init__(self, function: Function) -> None:
        self._known: Mapping[Expr, Expr] = definitions(function)
        self._counts: Counter[Expr] = uses(function)
        self._sizes: Final = frozenset(p.name for p in function.type_params)

    def found(self) -> Iterator[GradientForm]:
        """Yield the forms of the gradients that updates take."""
        for value in self._known.values():
            match value:
                case Call(callee, (params, grads)) if callee is descend_in_place:
                    pairs = zip(self._fields(params), self._fields(grads), strict=True)
                    for param, grad in pairs:
                        yield from self._form(param, *self._of(grad))
                case Call(callee, (targets, values)) if callee is overwrite_all:
                    pairs = zip(self._fields(targets), self._fields(values), strict=True)
                    for param, rows in ((p, self._fields(v)) for p, v in pairs):
                        if rows:
                            yield from self._form(param, self._rows(rows[1]), True)
                case Call(callee, (param, grad, *_), attrs) if callee in STEPS:
                    is_table = bool(attrs.get("by_rows"))
                    yield from self._form(param, *self._of(grad, is_table=is_table))
                case _:
                    pass

    def _fields(self, pack: Expr) -> tuple[Expr, ...]:
        made = self._known.get(pack)
        return made.fields if isinstance(made, Tuple) else ()

    def _form(self, param: Expr, form: str, has_rows: bool) -> Iterator[GradientForm]:
        name = self._parameter(param)
        if name is not None:
            yield GradientForm(name, show(type_of(param)), form, has_rows)

    def _parameter(self, param: Expr) -> str | None:
        """Return the name of a parameter: its model, and its place in there; None for a moment, or
        what is no parameter."""
        path: list[int] = []
        while True:
            match self._known.get(param):
                case TupleGet(inside, index):
                    path.append(index)
                    param = inside
                case RefRead(ref) if path and path.pop() == 0:
                    model = self._model(ref)
                    return ".".join((model, *map(str, reversed(path))))
                case _:
                    return None

    def _model(self, ref: Expr) -> str:
        made = self._known.get(ref)
        while isinstance(made, TupleGet):
            ref = made.value
            made = self._known.get(ref)
        return ref.name if isinstance(ref, Var) else "model"

    def _of(self, grad: Expr, *, is_table: bool = False) -> tuple[str, bool]:
        """Return the form of a gradient, and whether it has rows of a table, as that of a parameter
        that is one has."""
        pair = self._fields(grad)
        if pair:
            _, second = pair
            is_product = isinstance(second, Var) and is_float_tensor(second)
            return ("dense, as two factors", False) if is_product else (self._rows(second), True)
        parts = cotangent(grad, self._known, self._counts)
        places = ", ".join(dict.fromkeys(map(self._place, parts.rest)))
        if not parts.rows:
            is_known = is_table and places
            return f"dense: rows are added up at {places}" if is_known else "dense", is_table
        if not parts.rest:
            return "dense: a table of few rows, or one that the update replaces as a whole", True
        return f"dense: the whole table is read at {places}", True

    def _rows(self, numbers: Expr) -> str:
        """Return how many rows there are, where names of sizes show it."""
        ty = type_of(numbers)
        assert isinstance(ty, TensorType)
        count = product(ty.shape)
        return f"{count} rows" if count.names() <= self._sizes else "any number of rows"

    def _place(self, atom: Expr) -> str:
        made = self._known.get(atom)
        span = atom.span if made is None else made.span
        return "another place" if span.file is BUILTIN else f"line {span.line}"
