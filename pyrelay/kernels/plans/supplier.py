"""The supplier of a kernel's reader: parameters as loads, arithmetic as terms.

`kernels.reading.Reader` asks it for the elements of parameters and of the results of loops. All
that it makes are terms, so that a backend decides what is written where when all is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, final

from ...dataclass import dataclass
from ...ir.declaration.elements import Elements
from ...ir.dims import ONE, ZERO, Dim
from ...ir.expr import Constant, Expr, Function, Var, type_of
from ...ir.types import DType
from ..calling import Form, Layout, Written
from ..groups import Output
from ..places import Places, linear
from ..reading import Reader, bindings_of, dtype_of, results_of, shape_of
from .arithmetic import TermArithmetic
from .terms import Access, Term, Terms, widened

STRIDE: Final = "$"
"""How the names of strides begin in a dim; the operand's position and the axis follow."""

Leaf = Callable[[Var, tuple[Dim, ...]], Any]
"""Return the element of a loop's result at a place."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Store:
    """A term that is stored: in what, which is called `name` in the text, and how far behind its
    first element."""

    target: Written
    name: str
    at: Dim
    term: Term


@final
class TermSupplier:
    """The parameters of a kernel function as terms (`kernels.reading.Supplier`).

    `leaves` are variables bound inside that loops give, and how their elements are read.
    """

    def __init__(self, function: Function, layout: Layout, leaves: Mapping[Var, Leaf]) -> None:
        self.terms: Final = Terms()
        self._places: Final = Places()
        self._layout: Final = layout
        self._positions: Final = {p: i for i, p in enumerate(function.params)}
        self._leaves: Final = leaves
        self._params: Final = function.params
        self._results: Final = len(results_of(function.body))
        self.reader: Final = Reader(bindings_of(function.body), self)

    @property
    def places(self) -> Places:
        """The coordinates of the kernel."""
        return self._places

    def elements(self, dtype: DType, index: tuple[Dim, ...], /) -> TermArithmetic:
        """Return the arithmetic of one call."""
        return TermArithmetic(self.terms, dtype, self._new_coordinate)

    def holds(self, var: Var, /) -> bool:
        """Return whether a loop gives a variable that is bound inside."""
        return var in self._leaves

    def read(
        self,
        var: Var | Constant,
        index: tuple[Dim, ...],
        mask: Any | None,
        otherwise: Any | None,
        /,
    ) -> Any:
        """Return the element of a parameter, or of what a loop gives."""
        assert isinstance(var, Var), "a constant tensor is a parameter of a kernel function"
        if var in self._leaves:
            value = self._leaves[var](var, index)
        else:
            value = self._parameter(var, index, mask)
        if mask is None or otherwise is None:
            return value
        return self.elements(dtype_of(type_of(var)), index).where(mask, value, otherwise)

    def _parameter(self, var: Var, index: tuple[Dim, ...], mask: Term | None) -> Term:
        position, ty = self._positions[var], type_of(var)
        dtype = dtype_of(ty)
        if self._layout.operands[position] is Form.NUMBER:
            return self.terms.make("value", dtype=widened(dtype), detail=position)
        at = self.places.simplified(self._offset(position, index, shape_of(ty)))
        masks = () if mask is None else (mask,)
        access = Access(position, at, dtype)
        return self.terms.make("load", *masks, dtype=widened(dtype), detail=access)

    def _offset(self, operand: int, index: Sequence[Dim], shape: Sequence[Dim]) -> Dim:
        """Return how far behind the first element of an operand the one at `index` lies."""
        if self._layout.operands[operand] is Form.CONTIGUOUS:
            return linear(index, shape)
        total = ZERO
        for axis, coordinate in enumerate(index):
            is_unit = self._layout.lies_along(operand, axis)
            step = ONE if is_unit else Dim.of(f"{STRIDE}{operand}.{axis}")
            total = total + coordinate * step
        return total

    def computed(self, var: Var, index: tuple[Dim, ...], value: Any, /) -> Any:
        """Return the element of a variable bound inside, under its name."""
        if isinstance(value, Term) and value.op not in ("const", "load", "value", "result"):
            self.terms.name(value, var.name, var.span)
        return value

    def element(self, atom: Expr, index: Sequence[Dim]) -> Term:
        """Return the stored element of a value at a place, as a term of a dtype."""
        value = self.reader.element(atom, index)
        assert isinstance(value, Term)
        dtype = dtype_of(type_of(atom))
        return value if value.dtype is not None else self.elements(dtype, ()).cast(value, dtype)

    def store(self, output: Output, index: Sequence[Dim]) -> Store:
        """Return how the element of an output at a place is stored: new storage holds the elements
        row by row."""
        return self.stored(output, index, self.element(output.value, index))

    def stored(self, output: Output, index: Sequence[Dim], term: Term) -> Store:
        """Return the store of a term at a place of an output, or of what it overwrites."""
        position = output.overwrites
        if position is None:
            assert output.result is not None
            ty = type_of(output.value)
            target = Written(output.result, dtype_of(ty), shape_of(ty))
            name = output.value.name if isinstance(output.value, Var) else "constant"
            at = linear(index, target.shape)
        else:
            ty = type_of(self._params[position])
            number = self._results + position
            target = Written(number, dtype_of(ty), shape_of(ty), overwrites=position)
            name = self._params[position].name
            at = self._offset(position, index, target.shape)
        return Store(target, f"{name}_out", self.places.simplified(at), term)

    def checked(
        self, elements: Elements, value: Any, mask: Any | None, /, stored_at: Dim = ZERO
    ) -> Any:
        """Return what a body made, checked for divisors that are 0, and for computed places where
        no access is: a load there, and a store, look whether the place exists."""
        assert isinstance(elements, TermArithmetic)
        if not elements.places and not elements.divisors:
            return value
        if isinstance(value, tuple):
            return tuple(self.checked(elements, field, mask) for field in value)
        accessed = self._accessed(value, stored_at)
        faults = [elements.is_outside(p, size) for p, size in elements.places if p not in accessed]
        faults += map(elements.is_zero, elements.divisors)
        for fault in faults:
            value = elements.checked(value, fault, mask)
        return value

    def _accessed(self, value: Term, stored_at: Dim) -> set[Term]:
        """Return the computed places at which a value loads and is stored."""
        loads = (t.detail for t in self.terms.needed([value]) if isinstance(t.detail, Access))
        offsets = (stored_at, *(access.offset for access in loads))
        return {self.terms.coordinates[n][0] for o in offsets for n in self.terms.found(o)}

    def _new_coordinate(
        self, elements: TermArithmetic, value: Term, size: Dim, from_end: bool
    ) -> Dim:
        if value.op == "size" and self.places.is_below(value.detail, size):
            return value.detail
        place = elements.wrapped(value, size) if from_end else value
        elements.places.append((place, size))
        if size == ONE:
            return ZERO
        name = f"?{place.number}"
        if name not in self.terms.coordinates:
            self.places.coordinate(name, size)
            self.terms.bind(name, place, size)
        return Dim.of(name)
