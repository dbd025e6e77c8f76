"""Terms of sums, by their factors: parts from which many terms are added up at once.

The gradient of a layer's weight is a sum of products of two matrices, one product a call of the
layer. All of them are one product: of the left matrices side by side, and the right ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from ...dataclass import dataclass
from ...ir.dims import ONE, Dim
from ...ir.expr import Call, Expr, Var, is_atom, type_of
from ...ir.op import Op, View
from ...ir.own_sizes import closed, with_own_sizes
from ...ir.types import Substitution, TensorType, Type, int64
from ...operators.matrices.products import matmul
from ...operators.primitive.arithmetic import add
from ...operators.primitive.embedding import embedding_grad
from ...operators.primitive.index import extract, from_start, index_accumulate
from ...operators.primitive.reduce import sum_
from ...operators.primitive.view import flatten, transpose
from ..rewrites.row_gradients import added_rows
from ..rewrites.table_rows import Rows, side_by_side

if TYPE_CHECKING:
    from ...operators.builder import Builder, Value

Definitions: TypeAlias = Mapping[Expr, Expr]
Term: TypeAlias = "tuple[SumForm, tuple[Expr, ...]]"
"""The kind of a term, and its parts: variables, or fields of tuples."""

MOST_WHOLE: Final = 1
"""Terms of a higher rank that are nothing special are added as they come: keeping all of them
could take much more memory than their sum."""


SUMMING: Final = (add, matmul, sum_, embedding_grad, index_accumulate)
"""The operators of terms and of sums."""


class TermForm(Enum):
    """The parts of a term."""

    WHOLE = "itself"
    SUM = "a tensor, summed over dims"
    PRODUCT = "two matrices"
    ROWS = "rows of a table and their numbers"
    RAGGED = "rows of a table and their numbers, as many as there are"


class Side(Enum):
    """How a matrix of a product comes from its part."""

    VECTOR = "one row or column, from a vector"
    MATRIX = "as it is"
    TURNED = "transposed"


@final
@dataclass(frozen=True, slots=True)
class SumForm:
    """The common form of the terms of one sum; `how` completes the form."""

    form: TermForm
    types: tuple[TensorType, ...]
    """Of the parts; of ragged rows those of one row and its number."""
    how: tuple[Any, ...] = ()

    @property
    def fields(self) -> tuple[Type, ...]:
        """The types of the parts of a term in a list."""
        if self.form is not TermForm.RAGGED:
            return self.types
        count = "count of this term"
        whole = [TensorType((Dim.of(count), *t.shape), t.dtype) for t in self.types]
        return tuple(with_own_sizes(t, (count,)) for t in whole)

    @property
    def is_of_rows(self) -> bool:
        """Whether the terms are rows of a table."""
        return self.form in (TermForm.ROWS, TermForm.RAGGED)

    def packed(self, term: Term, builder: Builder) -> tuple[Value, ...]:
        """Return the parts of a term as the fields of it in a list of terms of this form."""
        form, parts = term
        values = tuple(builder.value(p) if is_atom(p) else builder.bind(p, "part") for p in parts)
        if self.form is not TermForm.RAGGED:
            return values
        ((_, count), (_, from_end)) = form.how
        table = TensorType((count, *self.types[0].shape), self.types[0].dtype)
        rows = Rows(values[0].atom, values[1].atom, from_end)
        # Copies: no part of a term may be a row of the table itself, which an update replaces.
        pairs = zip(side_by_side(builder, [rows], table), self.fields, strict=True)
        copies = [(extract(v, builder.unit(), spec=(("ellipsis",),)), ty) for v, ty in pairs]
        return tuple(builder.bind(closed(copy.atom, ty), "own") for copy, ty in copies)

    def under(self, sizes: Substitution) -> SumForm:
        """Return the kind with sizes replaced."""
        types = tuple(TensorType(tuple(map(sizes.dim, t.shape)), t.dtype) for t in self.types)
        if not self.is_of_rows:
            return SumForm(self.form, types, self.how)
        how = tuple((n, sizes.dim(v) if isinstance(v, Dim) else v) for n, v in self.how)
        return SumForm(self.form, types, how)

    def total(self, parts: Sequence[Value]) -> Value:
        """Return the sum of terms, from their parts side by side in a new first dim."""
        match self.form:
            case TermForm.WHOLE:
                return parts[0].sum((0,))
            case TermForm.SUM:
                return parts[0].sum((0, *(d + 1 for d in self.how)))
            case TermForm.ROWS | TermForm.RAGGED:
                ((_, count), (_, from_end)) = self.how
                numbers = from_start(parts[1], count) if from_end else parts[1]
                return embedding_grad(parts[0], numbers, num_embeddings=count)
            case TermForm.PRODUCT:
                left, right = (_rows(p, side) for p, side in zip(parts, self.how, strict=True))
                return left.transpose(0, 1) @ right


def term_of(term: Expr, defined: Definitions) -> Term | None:
    """Return the kind and the parts of a term; None if it is better added as it comes."""
    if isinstance(term, Call):
        return _added_rows(term, defined)
    if not isinstance(term, Var) or not isinstance(term.ty, TensorType):
        return None
    found = _special(defined.get(term), defined)
    if found is not None:
        return found
    return (SumForm(TermForm.WHOLE, (term.ty,)), (term,)) if term.ty.rank <= MOST_WHOLE else None


def _added_rows(call: Call, defined: Definitions) -> Term | None:
    """Return the rows that a call adds to a table, with their numbers."""
    found = added_rows(call, defined)
    if found is None or found.split or not isinstance(found.rows, Var):
        return None
    if not isinstance(type_of(found.numbers), TensorType):
        return None  # it is a size: the same row in each round
    return _rows_term(found.rows, found.numbers, _type(call).shape[0], from_end=True)


def common_forms(terms: Sequence[Term]) -> Iterator[SumForm]:
    """Yield the forms that all terms have, or can be given."""
    forms = list(dict.fromkeys(form for form, _ in terms))
    if len(forms) == 1:
        yield forms[0]
    ragged = dict.fromkeys(map(_ragged, forms))
    if len(ragged) == 1:
        yield from (form for form in ragged if form is not None)


def _ragged(form: SumForm) -> SumForm | None:
    """Return the form of rows of a table that are as many as there are; None for other terms."""
    if form.form is not TermForm.ROWS:
        return None
    rows, numbers = form.types
    row = TensorType(rows.shape[numbers.rank :], rows.dtype)
    how = (form.how[0], ("from_end", False))
    return SumForm(TermForm.RAGGED, (row, TensorType((), int64)), how)


def _rows_term(rows: Var, numbers: Expr, count: Dim, *, from_end: bool) -> Term:
    how = (("num_embeddings", count), ("from_end", from_end))
    return SumForm(TermForm.ROWS, (_type(rows), _type(numbers)), how), (rows, numbers)


def _special(value: Expr | None, defined: Definitions) -> Term | None:
    match value:
        case Call(callee, (Var() as left, Var() as right)) if callee is matmul:
            if _rank(left) != 2 or _rank(right) != 2:
                return None
            left, first = _left(left, defined)
            right, second = _right(right, defined)
            form = SumForm(TermForm.PRODUCT, (_type(left), _type(right)), (first, second))
            return form, (left, right)
        case Call(callee, (Var() as whole,)) if callee is sum_:
            return _sum(value, whole, defined)
        case Call(callee, (Var() as rows, Var() as numbers)) if callee is embedding_grad:
            if not isinstance(numbers.ty, TensorType):
                return None
            count = Dim.of(value.attrs["num_embeddings"])
            return _rows_term(rows, numbers, count, from_end=False)
        case _:
            return None


def _sum(value: Call, whole: Var, defined: Definitions) -> Term | None:
    dims, keeps, dtype = (value.attrs[n] for n in ("dim", "keepdim", "dtype"))
    if keeps or dtype is not None or dims is None:
        return None
    vector = _vector(whole, defined)
    if vector is not None and value.ty == vector.ty:
        return SumForm(TermForm.WHOLE, (_type(vector),)), (vector,)
    places = tuple(d % _rank(whole) for d in dims)
    return SumForm(TermForm.SUM, (_type(whole),), places), (whole,)


def _left(var: Var, defined: Definitions) -> tuple[Var, Side]:
    """Return the part that the left matrix of a product comes from: its columns are added up, so
    they are wanted as rows."""
    vector = _vector(var, defined) if _type(var).shape[1] == ONE else None
    if vector is not None:
        return vector, Side.VECTOR
    match defined.get(var):
        case Call(callee, (Var() as source, *_)) if callee is transpose:
            return source, Side.MATRIX
        case _:
            return var, Side.TURNED


def _right(var: Var, defined: Definitions) -> tuple[Var, Side]:
    vector = _vector(var, defined) if _type(var).shape[0] == ONE else None
    return (var, Side.MATRIX) if vector is None else (vector, Side.VECTOR)


def _vector(var: Var, defined: Definitions) -> Var | None:
    """Return the vector of which a matrix of one row or one column is a view."""
    count = _type(var).shape[0] * _type(var).shape[-1]
    source: Expr = var
    while isinstance(source, Var):
        if _type(source).shape == (count,):
            return source
        match defined.get(source):
            case Call(Op(lowering=View()), (inner, *_)) as view if _is_whole(view, inner):
                source = inner
            case _:
                return None
    return None


def _is_whole(view: Call, inner: Expr) -> bool:
    """Return whether a view of a vector or of one row or column shows all elements, in order."""
    shapes = [t.shape for t in (type_of(view), type_of(inner)) if isinstance(t, TensorType)]
    long = [[d for d in shape if d != ONE] for shape in shapes]
    return len(long) == 2 and len(long[0]) == 1 and long[0] == long[1]


def _rows(parts: Value, side: Side) -> Value:
    """Return matrices, one after the other in a new dim, as one with the rows of all."""
    if side is Side.VECTOR:
        return parts
    turned = parts.transpose(1, 2) if side is Side.TURNED else parts
    return flatten(turned, start_dim=0, end_dim=1)


def _rank(var: Var) -> int:
    return _type(var).rank


def _type(value: Expr) -> TensorType:
    ty: Type = type_of(value)
    assert isinstance(ty, TensorType)
    return ty
