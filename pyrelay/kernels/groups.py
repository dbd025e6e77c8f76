"""Groups: what a kernel function computes, as data that text is made from.

A *kernel function* is a closed global function without branches over operators that are said
element by element (`reading`), reductions, sums of products or one scatter, and `overwrite`.
Its parameters are what it reads; what it gives is stored. `group_of` finds out what kind of loop
it is; everything that differs between kinds is in the `Group`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias, final

from ..ir.declaration.lowering import (
    Contraction,
    Elementwise,
    MadeOf,
    Pointwise,
    Reduction,
    Scatter,
    inside,
)
from ..ir.dims import ONE, Dim, product
from ..ir.expr import Call, Expr, Function, Var, is_unit, type_of
from ..ir.op import Op
from ..ir.traverse import children
from ..ir.types import DType, TupleType
from ..operators.composite.descent import overwrite
from ..operators.shared.reducing import reduced_axes
from .contraction_axes import COLUMN, ROW, Structure, sorts_of
from .places import Places
from .reading import bindings_of, dtype_of, results_of, shape_of, straight_line

Space: TypeAlias = tuple[DType, Structure]
"""What sums of products in one kernel have in common: their dtype, and the places they are over."""


class Kind(Enum):
    """The loops that text is made of."""

    POINTWISE = "pointwise"
    """One pass over places; every output has an element for each."""
    ROWS = "rows"
    """A pass over a domain with reductions, all over the same dims of it."""
    CONTRACTION = "contraction"
    """Sums of products over the same places; outputs have an element for each of these."""
    SCATTER = "scatter"
    """Additions at places that are computed; one output."""
    UPDATES = "updates"
    """Passes over places that have nothing in common but the launch: one for each output."""


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

    @property
    def reduced_sizes(self) -> tuple[Dim, ...]:
        """The sizes of the dims that it goes along."""
        return tuple(self.domain.shape[i] for i in self.axes)


@final
@dataclass(frozen=True, slots=True)
class Product:
    """A sum of products: each operand and the result have a letter for each dim, and what is not
    in the result is summed. `sizes` gives the size for a letter."""

    var: Var
    call: Call
    operands: tuple[Expr, ...]
    subscripts: tuple[str, ...]
    result: str
    sizes: Mapping[str, Dim]

    @property
    def summed(self) -> str:
        """The letters that are summed over, in order of mention."""
        seen = dict.fromkeys("".join(self.subscripts))
        return "".join(letter for letter in seen if letter not in self.result)


@final
@dataclass(frozen=True, slots=True)
class Scattered:
    """A scatter: `var` starts as operand `base` of the call, or as zeros, and `lowering.body` gives
    where to add what, for each place of operand `over`."""

    var: Var
    call: Call
    lowering: Scatter


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
        """What is bound inside but not said element by element."""
        inner = [r.var for r in (*self.reductions, *self.beside)]
        inner += [p.var for p in self.products]
        inner += [] if self.scattered is None else [self.scattered.var]
        return frozenset(inner)


class NoGroup(Exception):  # noqa: N818  the answer of a question that fusion asks
    """A function is no kernel of any kind; says why."""


def stores(function: Function) -> bool:
    """Return whether a kernel function gives or overwrites anything."""
    return bool(_outputs(function))


def group_of(function: Function) -> Group:
    """Return the group that a function without branches is. Raises NoGroup."""
    outputs = _outputs(function)
    if not outputs:
        raise NoGroup("nothing is stored")
    bindings, _ = straight_line(function.body)
    special = [p for b in bindings if (p := _special(b.var, b.value)) is not None]
    reductions = tuple(p for p in special if isinstance(p, Reduced))
    others = [p for p in special if not isinstance(p, Reduced)]
    products = tuple(p for p in special if isinstance(p, Product))
    if len(others) > max(1, len(products)) or (others and reductions and not products):
        raise NoGroup("there are two loops in it")
    match others:
        case [Product(), *_]:
            return _contraction(function, outputs, products, reductions)
        case [Scattered() as found]:
            if [o.value for o in outputs] != [found.var]:
                raise NoGroup("a scatter gives one value and nothing else")
            return Group(Kind.SCATTER, function, outputs, scattered=found)
        case _ if reductions:
            return _rows(function, outputs, reductions)
        case _:
            counts = {product(shape_of(type_of(o.value))) for o in outputs}
            kind = Kind.POINTWISE if len(counts) == 1 else Kind.UPDATES
            return Group(kind, function, outputs)


def _outputs(function: Function) -> tuple[Output, ...]:
    """Return what a kernel function stores: overwritten parameters in order, then its results."""
    found: list[Output] = []
    for value in bindings_of(function.body).values():
        match value:
            case Call(callee, (target, stored)) if callee is overwrite:
                if target not in function.params:
                    raise NoGroup("only parameters are overwritten")
                found.append(Output(stored, None, function.params.index(target)))
            case _:
                pass
    results = results_of(function.body)
    found += (Output(r, i, None) for i, r in enumerate(results) if not is_unit(r))
    return tuple(found)


def _special(var: Var, value: Expr) -> Reduced | Product | Scattered | None:
    """Return what a binding is, if it is not said element by element. Raises NoGroup."""
    if not isinstance(value, Call) or not isinstance(value.callee, Op):
        return None
    match inside(value.callee.lowering):
        case Reduction():
            return reduced_of(var, value)
        case Contraction():
            found = product_of(var, value)
            if found is None:
                raise NoGroup(f"`{value.callee.name}` is no sum of products here")
            return found
        case Scatter() as lowering:
            return Scattered(var, value, lowering)
        case Pointwise() | Elementwise():
            return None
        case _ if value.callee is overwrite:
            return None
        case _:
            raise NoGroup(f"`{value.callee.name}` is called, not fused")


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


def _contraction(
    function: Function,
    outputs: tuple[Output, ...],
    products: tuple[Product, ...],
    reductions: Sequence[Reduced],
) -> Group:
    """Return a pass with sums of products, and with reductions of these or beside them. Raises
    NoGroup."""
    first = products[0]
    shape = shape_of(type_of(first.var))
    space = space_of(first)
    if len(products) > 1 and (space is None or any(space_of(p) != space for p in products)):
        raise NoGroup("there are two loops in it")
    if not reductions:
        _need_one_count(outputs, shape)
        return Group(Kind.CONTRACTION, function, outputs, products=products)
    inner = _depends(function, {p.var for p in products} | {r.var for r in reductions})
    for domain in () if space is None else domains_of(space, shape):
        beside = tuple(
            r
            for r in reductions
            if r.operand not in inner and any(lies_beside(r.domain, p, domain) for p in products)
        )
        across = tuple(r for r in reductions if r not in beside)
        if all(r.domain.merged == domain.merged for r in across):
            _need_covered(outputs, domain)
            return Group(Kind.CONTRACTION, function, outputs, domain, across, products, beside)
    raise NoGroup("its reductions go over different dims")


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
    kept, reduced = product(own.kept), product(tuple(own.shape[i] for i in own.reduced))
    return kept == product(domain.kept) and reduced == sorts.summed.count and kept != ONE


def _depends(function: Function, on: Collection[Var]) -> set[Expr]:
    """Return what is bound in a function and made of some of its variables, these included."""
    found: set[Expr] = set(on)
    for binding in straight_line(function.body)[0]:
        if not found.isdisjoint(children(binding.value)) or binding.value in found:
            found.add(binding.var)
    return found


def _rows(function: Function, outputs: tuple[Output, ...], reductions: Sequence[Reduced]) -> Group:
    """Return a pass with reductions; the domain is that of the first. Raises NoGroup."""
    domain = reductions[0].domain
    if any(r.domain.merged != domain.merged for r in reductions):
        raise NoGroup("its reductions go over different dims")
    _need_covered(outputs, domain)
    return Group(Kind.ROWS, function, outputs, domain=domain, reductions=tuple(reductions))


def _need_covered(outputs: Sequence[Output], domain: Domain) -> None:
    if not all(domain.covers(shape_of(type_of(o.value))) for o in outputs):
        raise NoGroup("an output has neither the places of the domain nor the kept ones")


def _need_one_count(outputs: Sequence[Output], shape: tuple[Dim, ...]) -> None:
    if any(product(shape_of(type_of(o.value))) != product(shape) for o in outputs):
        raise NoGroup("its outputs do not have the places of its loop")
