"""Groups: the loops of kernel functions, as data that fusion makes and backends read.

A *kernel function* is a closed global function without branches over operators that have a meaning
element by element (`reading`), reductions, sums of products or one scatter, and `overwrite`. Its
parameters are what it reads, its results are stored. The `Group` has the kind of its loop, and
everything that differs between kinds.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TypeAlias, final

from ..dataclass import dataclass
from ..ir.declaration.lowering import Contraction, MadeOf, Reduction, Scatter, inside
from ..ir.dims import ONE, Dim, product
from ..ir.expr import Call, Expr, Function, Var, type_of
from ..ir.op import Op
from ..ir.types import DType, TupleType
from ..operators.shared.reducing import reduced_axes
from .contraction_axes import COLUMN, ROW, Product, Structure, sorts_of
from .places import Places
from .reading import dtype_of, shape_of

Space: TypeAlias = tuple[DType, Structure]
"""The signature of sums of products that share a kernel: their dtype, and the places they are
over."""


class Kind(Enum):
    """The loops that text is made of."""

    POINTWISE = "pointwise"
    """One pass over places; every output has an element for each."""
    ROWS = "rows"
    """A pass over a domain with reductions, all over the same dims of it."""
    CONTRACTION = "contraction"
    """Sums of products over the same places; outputs have an element for each of these."""
    SCATTER = "scatter"
    """Additions or stores at places that are computed; one output."""
    UPDATES = "updates"
    """Passes over places that have nothing in common but the launch: one for each output."""
    CALL = "call"
    """One call of an operator that a backend has code of its own for."""


@final
@dataclass(frozen=True, slots=True)
class Domain:
    """The places of a pass with reductions: a shape, and which of its dims are reduced.

    Values of the group have an element for each place (a shape with as many elements, row by row),
    or one for each place of the kept dims.
    """

    shape: tuple[Dim, ...]
    reduced: tuple[int, ...]

    @property
    def kept(self) -> tuple[Dim, ...]:
        """The sizes of the dims that are left."""
        return tuple(d for i, d in enumerate(self.shape) if i not in self.reduced)

    @property
    def along(self) -> tuple[Dim, ...]:
        """The sizes of the dims that are reduced."""
        return tuple(self.shape[i] for i in self.reduced)

    @property
    def merged(self) -> tuple[tuple[Dim, bool], ...]:
        """The same places with neighbouring dims of one sort made one: its size, and whether it is
        reduced. Two domains are one space if these are equal."""
        found: list[tuple[Dim, bool]] = []
        for axis, size in enumerate(self.shape):
            is_reduced = axis in self.reduced
            if size == ONE:
                continue
            if found and found[-1][1] is is_reduced:
                found[-1] = (found[-1][0] * size, is_reduced)
            else:
                found.append((size, is_reduced))
        return tuple(found)

    def is_whole(self, shape: Sequence[Dim]) -> bool:
        """Return whether a value of a shape has an element for each place, not for each kept
        one."""
        return product(tuple(shape)) == product(self.shape)

    def covers(self, shape: Sequence[Dim]) -> bool:
        """Return whether a value of a shape has an element for each place, or each kept one."""
        return product(tuple(shape)) in (product(self.shape), product(self.kept))

    def at(self, kept: Sequence[Dim], reduced: Sequence[Dim]) -> tuple[Dim, ...]:
        """Return the place with these coordinates of the kept dims, and of the reduced ones."""
        left, right = iter(kept), iter(reduced)
        return tuple(next(right if i in self.reduced else left) for i in range(len(self.shape)))

    def place(self, places: Places, index: Sequence[Dim], shape: Sequence[Dim]) -> tuple[Dim, ...]:
        """Return where a value of a shape has its element for the place `index` of the domain."""
        if self.is_whole(shape):
            return places.relocated(index, self.shape, shape)
        kept = tuple(c for i, c in enumerate(index) if i not in self.reduced)
        return places.relocated(kept, self.kept, shape)


@final
@dataclass(frozen=True, slots=True)
class Reduced:
    """One reduction: `var` is what `combine` (see `ir.declaration.lowering.Reduction`) gives of the
    elements of `operand` along the reduced dims; with `with_positions` it is a pair with the
    position."""

    var: Var
    call: Call
    combine: str
    operand: Expr
    axes: tuple[int, ...]
    with_positions: bool

    @property
    def domain(self) -> Domain:
        """The places that it goes over."""
        return Domain(shape_of(type_of(self.operand)), self.axes)


@final
@dataclass(frozen=True, slots=True)
class Scattered:
    """A scatter: `var` starts as operand `base` of the call, or as zeros, and `lowering.body` gives
    where to add what, for each place of operand `over`. In place it stores to operand `base`."""

    var: Var
    call: Call

    @property
    def lowering(self) -> Scatter:
        """The declaration of the scatter, that of its operator."""
        assert isinstance(self.call.callee, Op)
        found = inside(self.call.callee.lowering)
        assert isinstance(found, Scatter)
        return found

    @property
    def over(self) -> tuple[Dim, ...]:
        """The shape of what is added or stored."""
        return shape_of(type_of(self.call.args[self.lowering.over]))

    @property
    def start(self) -> Expr | None:
        """The operand that the result starts as; None if it starts as zeros, or if there is no
        result."""
        base = self.lowering.base
        return None if base is None or self.lowering.in_place else self.call.args[base]

    @property
    def total(self) -> Expr:
        """The tensor to which values are added, or in which they are stored."""
        if not self.lowering.in_place:
            return self.var
        assert self.lowering.base is not None
        return self.call.args[self.lowering.base]


Special: TypeAlias = Reduced | Product | Scattered
"""A value of a kernel that is not given element by element."""


@final
@dataclass(frozen=True, slots=True)
class Output:
    """A value that is stored: as the result of that number, or over parameter `overwrites`."""

    value: Expr
    result: int | None
    overwrites: int | None


@final
@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """A kernel function, and which loop it is. Only the fields of its kind are there."""

    kind: Kind
    function: Function
    outputs: tuple[Output, ...]
    domain: Domain | None = None
    reductions: tuple[Reduced, ...] = ()
    products: tuple[Product, ...] = ()
    beside: tuple[Reduced, ...] = ()
    """Reductions along what the sums of products are summed over, of what one operand is made of:
    they have an element for each of the kept places of the domain."""
    scattered: Scattered | None = None
    call: Call | None = None
    may_fail: bool = True
    """Whether a computed place may not exist, or an integer may be divided by 0."""

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The shape of the first output, whose places a pointwise pass goes over."""
        return shape_of(type_of(self.outputs[0].value))

    @property
    def overwritten(self) -> tuple[int, ...]:
        """The positions of the parameters that are written to."""
        return tuple(o.overwrites for o in self.outputs if o.overwrites is not None)

    @property
    def leaves(self) -> frozenset[Var]:
        """The variables bound inside that are not given element by element."""
        inner = [r.var for r in (*self.reductions, *self.beside)]
        inner += [p.var for p in self.products]
        inner += [] if self.scattered is None else [self.scattered.var]
        return frozenset(inner)


def special_of(var: Var, call: Call) -> Special | None:
    """Return the reduction, sum of products or scatter that a call of an operator is; None for any
    other call."""
    assert isinstance(call.callee, Op)
    match inside(call.callee.lowering):
        case Reduction():
            return reduced_of(var, call)
        case Contraction():
            return product_of(var, call)
        case Scatter():
            return Scattered(var, call)
        case _:
            return None


def reduced_of(var: Var, call: Call) -> Reduced:
    """Return the reduction that a call of one is."""
    assert isinstance(call.callee, Op)
    lowering = inside(call.callee.lowering)
    assert isinstance(lowering, Reduction)
    operand = call.args[0]
    dims = call.attrs["dim"]
    named = (dims,) if isinstance(dims, int) else dims
    axes = reduced_axes(named, len(shape_of(type_of(operand))))
    with_positions = isinstance(type_of(call), TupleType)
    return Reduced(var, call, lowering.combine, operand, tuple(sorted(axes)), with_positions)


def product_of(var: Var, call: Call) -> Product | None:
    """Return the sum of products that a call of a contraction is, if it is one."""
    assert isinstance(call.callee, Op)
    lowering = inside(call.callee.lowering)
    if not isinstance(lowering, Contraction) or lowering.fused is None:
        return None
    subscripts = lowering.fused
    assert not isinstance(subscripts, MadeOf)
    shapes = [shape_of(type_of(a)) for a in call.args]
    written = subscripts(tuple(map(len, shapes)), call.attrs)
    if written is None:
        return None
    operands, result = written.split("->")
    letters = tuple(operands.split(","))
    sizes: dict[str, Dim] = {}
    for names, shape in zip(letters, shapes, strict=True):
        for name, size in zip(names, shape, strict=True):
            # A dim of size 1 is broadcast against what the letter means elsewhere.
            if sizes.get(name, ONE) == ONE:
                sizes[name] = size
    return Product(var, call, call.args, letters, result, sizes)


def space_of(found: Product) -> Space | None:
    """Return the places that a sum of products is over, and its dtype: sums that agree in these may
    share a kernel. None where it is not one of matrices."""
    sorts = sorts_of(found)
    return None if isinstance(sorts, str) else (dtype_of(type_of(found.var)), sorts.structure)


def domains_of(space: Space, shape: Sequence[Dim]) -> tuple[Domain, Domain]:
    """Return the places of the result of a sum of products with its columns reduced, or its
    rows."""
    _, structure = space
    axes = {n: tuple(i for i, (m, _) in enumerate(structure) if m == n) for n in (COLUMN, ROW)}
    return Domain(tuple(shape), axes[COLUMN]), Domain(tuple(shape), axes[ROW])


def lies_beside(own: Domain, found: Product, domain: Domain) -> bool:
    """Return whether a reduction over `own` can be made in the loop of a sum of products of whose
    result the reduced dims of `domain` are not its own: it goes over as many places as the loop
    does, and keeps as many."""
    sorts = sorts_of(found)
    if isinstance(sorts, str) or sorts.batch.count != ONE:
        return False
    kept, reduced = product(own.kept), product(own.along)
    return kept == product(domain.kept) and reduced == sorts.summed.count and kept != ONE
