"""Bodies read symbolically: what the element of a value at a place is.

A `Reader` walks a straight-line function from the element that is asked for to what it is made of:
pointwise operands are broadcast, views and elementwise bodies say which elements of their operands
they want, and so on down to *leaves*, which a `Supplier` gives. What the elements are is the
supplier's business too: text of a kernel (`lower_triton`), or a record of what was read
(`recording`). A value at a place is computed once.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol, final

from ..ir.constant import nearest
from ..ir.declaration.elements import Elements, Place
from ..ir.declaration.lowering import Elementwise, Pointwise, View, inside
from ..ir.declaration.scalars import compute_dtype
from ..ir.dims import Dim
from ..ir.expr import (
    Binding,
    Call,
    Constant,
    Expr,
    TensorData,
    Tuple,
    TupleGet,
    Var,
    is_unit,
    type_of,
)
from ..ir.op import Op
from ..ir.traverse import Steps, run, spine
from ..ir.types import DType, SizeType, TensorType, TupleType, Type, int64, known_dtype
from ..operators.shared.moving import broadcast_index, reshaped
from .places import Places


def reshaped_operand(value: Expr) -> Expr | None:
    """Return the operand of a call that only gives it another shape; None for any other value."""
    match value:
        case Call(Op(lowering=View(element=element)), (operand,)) if element is reshaped:
            return operand
        case _:
            return None


class Supplier(Protocol):
    """The interpretation that a reader is given: the arithmetic, and the elements of leaves. Values
    that it makes are hashable; equal ones are the same value."""

    @property
    def places(self) -> Places:
        """The coordinates of the kernel."""
        ...

    def elements(self, dtype: DType, index: tuple[Dim, ...], /) -> Elements:
        """Return the arithmetic of one call, for the element at these coordinates; numbers in its
        body are of this dtype."""
        ...

    def holds(self, var: Var, /) -> bool:
        """Return whether a variable bound inside is a leaf: what a reduction or a sum of products
        gives, or what has been stored."""
        ...

    def read(
        self,
        var: Var | Constant,
        index: tuple[Dim, ...],
        mask: Any | None,
        otherwise: Any | None,
        /,
    ) -> Any:
        """Return the element of a leaf: of a parameter, of what `holds` says, or of a constant
        tensor.

        With `mask`, a bool value, nothing is read where it does not hold; the element is then
        `otherwise`, or anything where that is None. The element of a tuple is a tuple.
        """
        ...

    def computed(self, var: Var, index: tuple[Dim, ...], value: Any, /) -> Any:
        """Return the element of a variable bound inside, that was just computed, under a name."""
        ...

    def checked(self, elements: Elements, value: Any, mask: Any | None, /) -> Any:
        """Return the result of a body with these elements, checked: places that were computed
        exist, and no integer is divided by 0; only where `mask` holds, if that is given."""
        ...


@final
class Reader:
    """Reads elements of the variables of one straight-line function."""

    def __init__(self, bindings: Mapping[Var, Expr], supplier: Supplier) -> None:
        """`bindings` are the values of the variables that are bound inside."""
        self._bindings: Final = bindings
        self._supplier: Final = supplier
        self._places: Final = supplier.places
        self._known: Final[dict[tuple[Var, tuple[Dim, ...], Any], Any]] = {}
        self._masks: Final[dict[tuple[Any, Any], Any]] = {}

    def element(self, atom: Expr, index: Sequence[Dim], mask: Any | None = None) -> Any:
        """Return the element of a variable or constant at coordinates inside its shape.

        With `mask`, a bool value, the element may be anything where that does not hold, and the
        coordinates may lie anywhere there. Raises `Unreadable` for what is neither a leaf nor given
        element by element.
        """
        return run(self._element(atom, tuple(index), mask))

    @contextmanager
    def scope(self) -> Generator[None]:
        """Forget afterwards the values computed meanwhile: they were computed in a loop."""
        before = dict(self._known)
        yield
        self._known.clear()
        self._known.update(before)

    def operands(self, call: Call, mask: Any | None = None) -> list[Any]:
        """Return the operands of a call as an `Elementwise` body takes them."""
        assert isinstance(call.callee, Op)
        params = call.callee.operands
        return [
            () if is_unit(atom) and params[i].default is not None else self.source(atom, mask)
            for i, atom in enumerate(call.args)
        ]

    def source(self, atom: Expr, mask: Any | None = None) -> Any:
        """Return an atom as a `Source`, a tuple as a tuple of them, unit as None."""
        if is_unit(atom):
            return None
        ty = type_of(atom)
        if not isinstance(ty, TupleType):
            return Operand(self, atom, mask)
        return tuple(self.source(f, mask) for f in self._fields(atom))

    def _fields(self, atom: Expr) -> tuple[Expr, ...]:
        bound = self._bindings.get(atom) if isinstance(atom, Var) else atom
        if not isinstance(bound, Tuple):
            raise Unreadable(atom)
        return bound.fields

    def _element(self, atom: Expr, index: tuple[Dim, ...], mask: Any | None) -> Steps[Any]:
        index = tuple(map(self._places.simplified, index))
        match atom:
            case Constant(value) if not isinstance(value, TensorData | str):
                dtype = dtype_of(type_of(atom))
                return self._supplier.elements(dtype, index).const(nearest(value, dtype))
            case Constant():
                return self._supplier.read(atom, index, mask, None)
            case Var():
                key = (atom, index, mask)
                if key not in self._known:
                    self._known[key] = yield self._variable(atom, index, mask)
                return self._known[key]
            case _:
                raise Unreadable(atom)

    def _variable(self, var: Var, index: tuple[Dim, ...], mask: Any | None) -> Steps[Any]:
        ty = type_of(var)
        if isinstance(ty, SizeType):
            return self._supplier.elements(int64, index).number(ty.dim)
        bound = self._bindings.get(var)
        if bound is None or self._supplier.holds(var):
            return self._supplier.read(var, index, mask, None)
        match bound:
            case Call(Op()):
                value = yield self._call(bound, index, mask)
                return self._supplier.computed(var, index, value)
            case TupleGet(value, field):
                whole = self._bindings.get(value) if isinstance(value, Var) else value
                if isinstance(whole, Tuple):
                    return (yield self._element(whole.fields[field], index, mask))
                return (yield self._element(value, index, mask))[field]
            case Var() | Constant():
                return (yield self._element(bound, index, mask))
            case _:
                raise Unreadable(var)

    def _call(self, call: Call, index: tuple[Dim, ...], mask: Any | None) -> Steps[Any]:
        assert isinstance(call.callee, Op)
        attrs = call.attrs.values()
        match inside(call.callee.lowering):
            case Pointwise(body):
                values: list[Any] = []
                for atom in call.args:
                    if is_unit(atom):
                        values.append(None)
                        continue
                    at = broadcast_index(index, shape_of(type_of(atom)))
                    values.append((yield self._element(atom, at, mask)))
                dtype = compute_dtype([type_of(a) for a in call.args])
                elements = self._supplier.elements(dtype, index)
                return self._supplier.checked(elements, body(elements, *values, *attrs), mask)
            case Elementwise(body):
                first = first_of(type_of(call))
                elements = self._supplier.elements(dtype_of(first), index)
                place = Place(index, shape_of(first))
                found = body(elements, place, *self.operands(call, mask), *attrs)
                if found is None:
                    raise Unreadable(call)
                return self._supplier.checked(elements, found, mask)
            case _:
                raise Unreadable(call)

    def within(
        self, atom: Expr, index: Sequence[Dim], outer: Any | None, inside: Any, otherwise: Any
    ) -> Any:
        """Return the element of an atom where two bool values hold, else `otherwise`."""
        index = tuple(map(self._places.simplified, index))
        elements = self._supplier.elements(dtype_of(type_of(atom)), index)
        mask = self._both(elements, outer, inside)
        if isinstance(atom, Var) and self._is_leaf(atom):
            return self._supplier.read(atom, index, mask, otherwise)
        value = self.element(atom, index, mask)
        return elements.where(inside, value, otherwise)

    def _is_leaf(self, var: Var) -> bool:
        if isinstance(var.ty, SizeType):
            return False
        return var not in self._bindings or self._supplier.holds(var)

    def _both(self, elements: Elements, outer: Any | None, inside: Any) -> Any:
        if outer is None or outer is inside:
            return inside
        key = (outer, inside)
        if key not in self._masks:
            self._masks[key] = elements.logical_and(outer, inside)
        return self._masks[key]


@final
class Operand:
    """An operand of a body, element by element: an `elements.Source`."""

    def __init__(self, reader: Reader, atom: Expr, mask: Any | None) -> None:
        self._reader: Final = reader
        self._atom: Final = atom
        self._mask: Final = mask

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The sizes of the operand."""
        return shape_of(type_of(self._atom))

    @property
    def dtype(self) -> DType:
        """The dtype of its elements."""
        return dtype_of(type_of(self._atom))

    def __call__(self, *index: Dim) -> Any:
        """Return the element at coordinates that lie inside."""
        return self._reader.element(self._atom, index, self._mask)

    def within(self, index: Sequence[Dim], inside: Any, otherwise: Any) -> Any:
        """Return the element where `inside` holds, else `otherwise`."""
        return self._reader.within(self._atom, index, self._mask, inside, otherwise)


class Unreadable(Exception):  # noqa: N818  says where reading ends, which fusion asks
    """No element of this expression can be read by itself."""

    def __init__(self, expr: Expr) -> None:
        super().__init__(expr)
        self.expr: Final = expr


def straight_line(body: Expr) -> tuple[tuple[Binding, ...], Expr]:
    """Return the bindings of a body without branches, in order, and what it ends in."""
    blocks, end = spine(body)
    return tuple(b for block in blocks for b in block.bindings), end


def bindings_of(body: Expr) -> dict[Var, Expr]:
    """Return the values of the variables that a body without branches binds."""
    return {b.var: b.value for b in straight_line(body)[0]}


def results_of(body: Expr) -> tuple[Expr, ...]:
    """Return the atoms that a body in A-normal form gives, of which a tuple has several."""
    bindings, end = straight_line(body)
    known = {b.var: b.value for b in bindings}
    whole = known.get(end) if isinstance(end, Var) else end
    return whole.fields if isinstance(whole, Tuple) else (end,)


def types_of_results(ty: Type) -> tuple[Type, ...]:
    """Return the types of several results, which are a tuple, or of the one that there is."""
    return ty.fields if isinstance(ty, TupleType) else (ty,)


def first_of(ty: Type) -> Type:
    """Return the type of the first of several results, of one the type itself."""
    return types_of_results(ty)[0]


def shape_of(ty: Type) -> tuple[Dim, ...]:
    """Return the sizes of a tensor or integer."""
    if isinstance(ty, SizeType):
        return ()
    assert isinstance(ty, TensorType)
    return ty.shape


def dtype_of(ty: Type) -> DType:
    """Return the dtype of the elements of a tensor or integer."""
    if isinstance(ty, SizeType):
        return int64
    return known_dtype(ty)
