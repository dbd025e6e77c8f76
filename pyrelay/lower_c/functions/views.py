"""Views in C functions: tensors whose elements lie in the memory of another one.

A view whose elements lie row by row is an address, and so is a row of a tensor. Any other is read
by kernels where it lies, at strides that are passed to them; it is copied where something else
needs it, and where it is small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, final

from ...dataclass import dataclass
from ...ir.dims import ONE, ZERO, Dim, product
from ...ir.expr import Call, Expr, Function, LetBlock, Tuple, Var, type_of
from ...ir.op import Op, View
from ...ir.traverse import children, post_order
from ...ir.types import TensorType
from ...kernels.operands import LEAST_UNIT
from ...kernels.places import linear
from ...kernels.reading import Reader, Unreadable, straight_line
from ...kernels.recording import Recording
from ...operators.primitive.index import index
from .c_types import number_dtype


@final
@dataclass(frozen=True, slots=True)
class Lying:
    """Where the elements of a view lie: how far its first one is behind that of the tensor it is a
    view of, and how far those along each dim lie apart."""

    offset: Dim
    strides: tuple[Dim, ...]
    shape: tuple[Dim, ...]

    @property
    def is_row_by_row(self) -> bool:
        """Return whether the elements lie row by row."""
        step = ONE
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size != ONE and stride != step:
                return False
            step = step * size
        return True

    @property
    def unit(self) -> int | None:
        """Return the dim along which elements lie one behind the other, if there is one that is
        worth a kernel of its own."""
        pairs = zip(self.strides, self.shape, strict=True)
        found = [axis for axis, (step, size) in enumerate(pairs) if step == ONE and _is_long(size)]
        return found[-1] if found else None

    @property
    def is_worth_a_copy(self) -> bool:
        """Return whether the view has few elements, with none to be read one behind the other:
        kernels that read it row by row make up for the copy."""
        count = product(self.shape).constant
        return self.unit is None and count is not None and count <= _SMALL


_SMALL: Final = 1024


def _is_long(size: Dim) -> bool:
    return size.constant is None or size.constant >= LEAST_UNIT


@final
@dataclass(frozen=True, slots=True)
class Strided:
    """A view that is read where it lies: the address of its first element, and the call that makes
    it."""

    address: str
    lying: Lying
    call: Call


_COORDINATE: Final = "at_"
"""How the names of the coordinates of a view begin."""


def lying_of(expr: Expr) -> Lying | None:
    """Return where the elements of a view of one tensor that lies row by row are, if they are
    evenly apart; None for what is no view."""
    ty = type_of(expr)
    if not isinstance(expr, Call) or not isinstance(ty, TensorType) or not ty.shape:
        return None
    if not isinstance(expr.callee, Op) or not isinstance(expr.callee.lowering, View):
        return None
    source = expr.args[0] if len(expr.args) == 1 else None
    if not isinstance(source, Var) or not isinstance(type_of(source), TensorType):
        return None
    if number_dtype(type_of(source)) is not None:
        return None  # a number has no address
    record = Recording(is_leaf=lambda var: var is source)
    result = Var("result", ty, span=expr.span)
    at = record.places.index(_COORDINATE, ty.shape)
    try:
        Reader({result: expr}, record).element(result, at)
    except Unreadable:
        return None
    if len(record.reads) != 1 or any(not always for always in record.reads.values()):
        return None
    ((_, place),) = record.reads
    shape = type_of(source)
    assert isinstance(shape, TensorType)
    return _apart(record.places.simplified(linear(place, shape.shape)), at, ty.shape)


def _apart(place: Dim, at: Sequence[Dim], shape: tuple[Dim, ...]) -> Lying | None:
    """Return how far elements are apart whose places are linear in the coordinates `at`."""
    names = {name for dim in at for name in dim.names()}
    strides: list[Dim] = []
    for coordinate in at:
        if coordinate == ZERO:
            strides.append(ZERO)
            continue
        (name,) = coordinate.names()
        step = place.rename({name: coordinate + 1}) - place
        if step.names() & names:
            return None
        strides.append(step)
        place = place.rename({name: ZERO})
    return None if place.names() & names else Lying(place, tuple(strides), shape)


def is_alias(expr: Expr) -> bool:
    """Return whether a value has the address of the tensor that it is a view of, or one behind."""
    lying = lying_of(expr)
    return lying is not None and lying.is_row_by_row


@final
@dataclass(frozen=True, slots=True)
class Row:
    """The elements of a tensor at some integers along its first dims, as a function of its
    parameters gives them: `value` is the variable that it returns."""

    source: Var
    indices: tuple[Expr, ...]
    value: Var


def row_of(function: Function) -> Row | None:
    """Return the row that a function gives, if it does nothing else."""
    bindings, end = straight_line(function.body)
    values = {b.var: b.value for b in bindings}
    made = values.pop(end, None) if isinstance(end, Var) else None
    if not isinstance(end, Var) or not isinstance(made, Call) or made.callee is not index:
        return None
    source, listed = made.args
    places = values.pop(listed, None) if isinstance(listed, Var) else None
    if values or not isinstance(places, Tuple) or source not in function.params:
        return None
    (spec,) = made.attrs.values()
    whole = tuple(("int", number) for number in range(len(places.fields)))
    ty = type_of(end)
    if spec != whole or not isinstance(ty, TensorType) or not ty.shape:
        return None
    if any(number_dtype(type_of(field)) is None for field in places.fields):
        return None
    assert isinstance(source, Var)
    return Row(source, places.fields, end)


def read_where_they_lie(function: Function, is_kernel: Callable[[Call], bool]) -> frozenset[Var]:
    """Return the variables bound in a function that kernels and views read, and nothing else."""
    bound: set[Var] = set()
    others: set[Expr] = set()
    for node in post_order(function.body):
        if isinstance(node, LetBlock):
            bound.update(b.var for b in node.bindings)
        is_reading = isinstance(node, Call) and (is_kernel(node) or lying_of(node) is not None)
        if not is_reading:
            others.update(children(node))
    return frozenset(bound - others)
