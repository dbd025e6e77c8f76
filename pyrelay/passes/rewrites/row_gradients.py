"""Gradients that are rows of a table, as these rows with their numbers.

The gradient of a table is zero but for the rows that a program reads. Each place that reads rows
adds to it: by `embedding_grad` a table of zeros with rows added at their numbers, by
`index_accumulate` and `scatter_add` rows at their numbers in the gradient so far. Where an update
or a script takes the gradient, all of these are one `embedding_grad` of all rows with all numbers,
of which the update takes the rows (`in_place`, `low_rank_gradients`). A table that is read as a
whole as well has a dense gradient.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Final, TypeAlias, final

from ...analysis.bindings import definitions, uses
from ...dataclass import dataclass
from ...ir.dims import ONE, Dim, sum_of
from ...ir.expr import (
    Binding,
    Call,
    Expr,
    Function,
    GlobalVar,
    Tuple,
    TupleGet,
    Var,
    type_of,
)
from ...ir.module import Module
from ...ir.traverse import map_bindings
from ...ir.types import DType, DTypeKind, SizeType, TensorType, TupleType, Type, int64
from ...ir.verify import Stage
from ...operators.builder import Builder, Value
from ...operators.composite.measure import norm
from ...operators.composite.optim import adam_step, momentum_step, sgd_step
from ...operators.composite.table_rows import summed_rows
from ...operators.primitive import math
from ...operators.primitive.arithmetic import add, divide, maximum, multiply, negative
from ...operators.primitive.create import full, zeros, zeros_like
from ...operators.primitive.embedding import embedding_grad
from ...operators.primitive.gathering import scatter_add
from ...operators.primitive.index import index_accumulate
from ...operators.primitive.view import expand, reshape
from ...operators.shared.precision import widened
from ..base import Context, Opaque, Pass, nothing_opaque
from .low_rank_gradients import gradients_at
from .table_rows import Rows, side_by_side

FEWEST: Final = 64
"""A table of at most so many rows has a dense gradient where its rows are read one by one: moving
it as a whole takes less time than to put the rows side by side."""

STEPS: Final = (sgd_step, momentum_step, adam_step)
"""Steps of optimisers; each takes the gradient as its second operand."""

JOINED: Final = (add, multiply, divide, negative, embedding_grad, index_accumulate, scatter_add)
"""The operators of gradients that are made one."""

_ROW: Final = (("int", 0),)


@final
@dataclass(frozen=True, slots=True)
class Cotangent:
    """A cotangent of a table as a sum: of rows, and of `rest`, which may be anything."""

    rows: tuple[Rows, ...]
    rest: tuple[Expr, ...]
    sums: tuple[Expr, ...] = ()
    """The sums that were taken apart for it."""


def cotangent(var: Expr, known: Mapping[Expr, Expr], counts: Counter[Expr]) -> Cotangent:
    """Return the terms of a cotangent; `known` are the values of the variables around, and `counts`
    how often each is used."""
    found: list[Rows] = []
    rest: list[Expr] = []
    sums: list[Expr] = []
    pending: list[tuple[Expr, tuple[Call, ...]]] = [(var, ())]
    while pending:
        atom, later = pending.pop()
        atom = _field(atom, known)
        value = known.get(atom)
        terms = _terms(value, known) if counts[atom] == 1 else None
        if terms is None:
            rest += [] if is_zero(value) else [atom]
            continue
        sums.append(atom)
        rows, summands, then = terms
        found += [replace(r, later=later) for r in rows]
        later = later if then is None else (*later, then)
        pending += [(summand, later) for summand in reversed(summands)]
    return Cotangent(tuple(reversed(found)), tuple(rest), tuple(sums))


def _field(atom: Expr, known: Mapping[Expr, Expr]) -> Expr:
    """Return the variable that is put into tuples out of which an atom is taken again; the atom
    itself if it is not."""
    found, path = atom, list[int]()
    while True:
        match known.get(found):
            case TupleGet(inside, index):
                path.append(index)
                found = inside
            case Tuple(fields) if path:
                found = fields[path.pop()]
                atom = atom if path else found
            case Var() as other:
                found = other
                atom = atom if path else found
            case _:
                return atom


_Terms = tuple[tuple[Rows, ...], tuple[Expr, ...], Call | None]
"""Rows, what they are added to, and the call that multiplies this by a number or reshapes it."""


def _terms(value: Expr | None, known: Mapping[Expr, Expr]) -> _Terms | None:
    """Return the terms of a sum of rows and tables; None for any other value."""
    if not isinstance(value, Call) or not isinstance(value.ty, TensorType):
        return None
    match value.callee, value.args:
        case callee, (rows, numbers) if callee is embedding_grad:
            return (Rows(rows, numbers),), (), None
        case callee, (table, _, _) if callee in (index_accumulate, scatter_add):
            rows = added_rows(value, known)
            return None if rows is None else ((rows,), (table,), None)
        case callee, (left, right) if callee is add and type_of(left) == type_of(right):
            return (), (left, right), None
        case callee, (table, *numbers) if callee in (multiply, divide, negative):
            is_scaled = table.ty == value.ty and all(_rank(n) == 0 for n in numbers)
            return ((), (table,), value) if is_scaled else None
        case callee, (elements,) if callee is reshape:
            return ((), (elements,), value) if _rank(elements) == 1 and value.ty.rank else None
        case _:
            return None


def added_rows(call: Call, known: Mapping[Expr, Expr]) -> Rows | None:
    """Return the rows that a call adds to its first operand, if it adds just rows."""
    is_indexed = call.callee is index_accumulate
    found = _indexed(call, known) if is_indexed else _scattered(call, known)
    table = type_of(call.args[0])
    if found is None or not isinstance(table, TensorType):
        return None
    numbers, shape, split = found
    is_whole = type_of(call.args[2]) == TensorType((*shape, *table.shape[1:]), table.dtype)
    return Rows(call.args[2], numbers, is_indexed, split) if is_whole else None


_Numbers = tuple[Expr, tuple[Dim, ...], bool]
"""The numbers of rows, the shape in which the rows stand, and whether they are split."""


def _indexed(call: Call, known: Mapping[Expr, Expr]) -> _Numbers | None:
    places, made = call.args[1], known.get(call.args[1])
    types = type_of(places)
    if call.attrs["spec"] != _ROW or not isinstance(types, TupleType):
        return None
    (ty,) = types.fields
    if isinstance(ty, SizeType):
        ty = TensorType((), int64)
    if not isinstance(ty, TensorType) or not _is_integer(ty):
        return None
    is_made = isinstance(made, Tuple)
    numbers = made.fields[0] if is_made else TupleGet(places, 0, ty, span=call.span)
    return numbers, ty.shape, False


def _is_integer(ty: TensorType) -> bool:
    return isinstance(ty.dtype, DType) and ty.dtype.kind is DTypeKind.INT


def _scattered(call: Call, known: Mapping[Expr, Expr]) -> _Numbers | None:
    """Return the numbers of rows, one for a row if each place of it has the same."""
    places = call.args[1]
    ty, made = type_of(places), known.get(places)
    assert isinstance(ty, TensorType)
    if call.attrs["dim"] not in (0, -ty.rank):
        return None
    if ty.rank == 1:
        return places, ty.shape, False
    source = made.args[0] if isinstance(made, Call) and made.callee is expand else places
    column = (ty.shape[0], *(ONE for _ in ty.shape[1:]))
    if type_of(source) == TensorType(column, ty.dtype):
        return source, ty.shape[:1], False
    return places, ty.shape[:1], True


def is_zero(value: Expr | None) -> bool:
    """Return whether a value is a tensor of zeros that is made."""
    if not isinstance(value, Call):
        return False
    return value.callee in (zeros, zeros_like) or (
        value.callee is full and value.attrs["fill_value"] == 0
    )


def _rank(atom: Expr) -> int | None:
    return atom.ty.rank if isinstance(atom.ty, TensorType) else None


@final
@dataclass(frozen=True, slots=True)
class GatherRows(Pass):
    """Return each gradient of a table as one, of all rows that are read of it."""

    name: ClassVar = "gather-rows"
    needs: ClassVar = Stage.DERIVED
    path: tuple[int, ...] | None = None
    """Where the gradients are in the result of the entry, if a script takes them as rows."""

    def run(self, module: Module, context: Context) -> Module:
        """Return the module after the pass."""
        return gather_rows(module, context.entry, self.path, context.opaque)


def gather_rows(
    module: Module,
    entry: str,
    path: tuple[int, ...] | None = None,
    opaque: Opaque = nothing_opaque,
) -> Module:
    """Return the module, in A-normal form and without transforms, with gradients of tables that
    updates take, or that the entry gives at a path, each as one `embedding_grad`."""
    if any(map(opaque, JOINED)):
        return module
    changed: dict[str, Function] = {}
    for name, function in module.functions.items():
        found = _replaced(function, path if name == entry else None)
        if found:
            changed[name] = _rewritten(function, found)
    return module.with_functions(changed) if changed else module


def _replaced(function: Function, path: tuple[int, ...] | None) -> dict[Var, tuple[Rows, ...]]:
    """Return the gradients, and norms of them, that are made of rows anew."""
    known = definitions(function)
    norms = _norms(known)
    counts = _uses_but_norms(function, norms)
    found: dict[Var, tuple[Rows, ...]] = {}
    sums: set[Expr] = set()
    for var in wanted(function, path):
        parts = cotangent(var, known, counts)
        if not are_fewer(parts, var.ty):
            continue
        sums.update((var, *parts.sums))
        value = known.get(var)
        if not isinstance(value, Call) or value.callee is not embedding_grad:
            found[var] = parts.rows
    for var, table in norms.items():
        if table in sums or _field(table, known) in sums:
            found[var] = cotangent(table, known, counts).rows
    return found


def _uses_but_norms(function: Function, norms: Mapping[Var, Var]) -> Counter[Expr]:
    """Return how often each variable is mentioned, other than for its norm."""
    counts = Counter(uses(function))
    counts.subtract(norms.values())
    return counts


def with_terms_as_rows(function: Function) -> Function:
    """Return a function where terms of sums that are rows alone are one `embedding_grad` each."""
    known, counts = definitions(function), uses(function)
    found: dict[Var, tuple[Rows, ...]] = {}
    for value in known.values():
        terms = value.args if isinstance(value, Call) and value.callee is add else ()
        for term in terms:
            made = known.get(term)
            is_one = isinstance(made, Call) and made.callee is embedding_grad
            parts = cotangent(term, known, counts)
            if isinstance(term, Var) and not is_one and are_fewer(parts, term.ty):
                found[term] = parts.rows
    return _rewritten(function, found) if found else function


def _norms(known: Mapping[Expr, Expr]) -> dict[Var, Var]:
    """Return the Euclidean norms of whole tensors, each with the tensor."""
    found: dict[Var, Var] = {}
    for var, value in known.items():
        match value:
            case Call(callee, (Var() as table,), attrs) if callee is norm:
                plain = (attrs["p"], attrs["dim"], attrs["dtype"]) == (2.0, None, None)
                if plain and not attrs["keepdim"] and isinstance(var, Var):
                    found[var] = table
            case _:
                pass
    return found


def wanted(function: Function, path: tuple[int, ...] | None) -> list[Var]:
    """Return the gradients that steps of optimisers take, and those that a function gives at a
    path of its result."""
    found: dict[Var, None] = {}
    for value in definitions(function).values():
        match value:
            case Call(callee, (_, Var() as grad, *_)) if callee in STEPS:
                found[grad] = None
            case _:
                pass
    return [*found, *(gradients_at(function, path) if path is not None else ())]


Result: TypeAlias = tuple[Var, tuple[int, ...]]
"""A field of the result of a call: the variable bound to the result, and the path to the field."""


def wanted_results(function: Function, path: tuple[int, ...] | None) -> frozenset[Result]:
    """Return the results of calls that gradients of tables are made of, and of rows alone beside:
    where they are rows as well, so is the gradient."""
    known = definitions(function)
    counts = _uses_but_norms(function, _norms(known))
    found: set[Result] = set()
    for var in wanted(function, path):
        if is_large(var.ty):
            found.update(results_of_sum(var, known, counts))
    return frozenset(found)


def results_of_sum(
    var: Expr, known: Mapping[Expr, Expr], counts: Counter[Expr]
) -> tuple[Result, ...]:
    """Return the results of calls that a sum has as terms beside rows; none if it has others."""
    parts = cotangent(var, known, counts)
    found = [result_of(a, known) if counts[a] == 1 else None for a in parts.rest]
    return tuple(r for r in found if r is not None) if None not in found else ()


def result_of(atom: Expr, known: Mapping[Expr, Expr]) -> Result | None:
    """Return the field of the result of a call that a variable is; None if it is none."""
    path: tuple[int, ...] = ()
    while isinstance(atom, Var):
        match known.get(atom):
            case TupleGet(inside, index):
                atom, path = inside, (index, *path)
            case Call(GlobalVar() | Var()):
                return atom, path
            case _:
                return None
    return None


def is_large(table: Type | None) -> bool:
    """Return whether a tensor has enough rows, as far as is known, that some of them are few."""
    if not isinstance(table, TensorType) or not table.rank:
        return False
    count = table.shape[0].constant
    return count is None or count > FEWEST


def are_fewer(parts: Cotangent, table: Type | None) -> bool:
    """Return whether a cotangent is rows alone, and fewer than those of the table as far as is
    known."""
    if not parts.rows or parts.rest or not is_large(table):
        return False
    assert isinstance(table, TensorType)
    count, all_rows = sum_of(r.count for r in parts.rows).constant, table.shape[0].constant
    return count is None or all_rows is None or count < all_rows


def _rewritten(function: Function, found: Mapping[Var, tuple[Rows, ...]]) -> Function:
    def change(binding: Binding) -> Sequence[Binding]:
        rows = found.get(binding.var)
        return (binding,) if rows is None else _made_of(rows, binding)

    return replace(function, body=map_bindings(function.body, change))


def _made_of(found: tuple[Rows, ...], binding: Binding) -> list[Binding]:
    """Return the bindings that take the place of a gradient's, or its norm's."""
    value, builder = binding.value, Builder(binding.value.span)
    match value:
        case Call(callee, (table,)) if callee is norm:
            made = _norm_of(*side_by_side(builder, found, _tensor(table)))
            return [*builder.bindings, Binding(binding.var, made.atom)]
        case _:
            table = _tensor(binding.var)
            operands = tuple(v.atom for v in side_by_side(builder, found, table))
            attrs = {"num_embeddings": table.shape[0]}
            call = Call(embedding_grad, operands, attrs, ty=table, span=value.span)
            return [*builder.bindings, replace(binding, value=call)]


def _tensor(atom: Expr) -> TensorType:
    ty = type_of(atom)
    assert isinstance(ty, TensorType)
    return ty


def _norm_of(rows: Value, numbers: Value) -> Value:
    """Return the Euclidean norm of a table of rows with their numbers."""
    # The products of all rows of one number with their sum add up to the square of the sum.
    whole = rows.builder.call(summed_rows, (rows, numbers))
    return math.sqrt(maximum((widened(rows) * widened(whole)).sum(), 0.0)).cast(rows.dtype)
