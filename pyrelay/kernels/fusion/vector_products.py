"""Products with a vector, and of vectors, as other loops: nothing of them is read twice, so tiles
of a product of matrices would be all but empty.

A sum over products with a row or a column is a reduction, whose domain has its dims in the order in
which the matrix lies in memory; products that nothing is summed of are elementwise. Fusion then
puts them together with what is around them, as it does with any other value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...ir.bounds import estimate
from ...ir.declaration.lowering import Contraction, inside
from ...ir.dims import ONE, product
from ...ir.expr import Call, Expr, Var, type_of
from ...ir.op import Op
from ...ir.types import TupleType
from ...operators.builder import Builder, Value
from ...operators.primitive import reduce, view
from ...operators.shared.precision import widened
from ..contraction_axes import Product, sorts_of
from ..groups import product_of
from ..reading import Reader, Unreadable, shape_of
from ..recording import Recording


def as_reduction(var: Var, call: Call, builder: Builder, views: Mapping[Var, Expr]) -> Value | None:
    """Return the value of a product with a vector in other operators; None for any other call.

    `views` are the definitions of variables that are views.
    """
    if not isinstance(call.callee, Op) or isinstance(type_of(call), TupleType):
        return None
    if not isinstance(inside(call.callee.lowering), Contraction):
        return None
    found = product_of(var, call)
    sorts = None if found is None else sorts_of(found)
    if found is None or sorts is None or isinstance(sorts, str):
        return None
    if sorts.summed.count != ONE and ONE not in (sorts.rows.count, sorts.columns.count):
        return None
    operands = [builder.value(a) for a in found.operands]
    if sorts.summed.count == ONE:
        order = found.result + sorts.summed.letters
        left, right = _sides(operands, found, order)
        return (left * right).reshape(*shape_of(type_of(call)))
    order = _order(found, views)
    left, right = (widened(side) for side in _sides(operands, found, order))
    products = left * right
    dims = tuple(order.index(c) for c in sorts.summed.letters)
    total = reduce.sum_(products, dim=dims, dtype=products.dtype)
    kept = [c for c in order if c in found.result]
    turned = _turned(total, [kept.index(c) for c in found.result])
    return turned.cast(operands[0].dtype)


def _sides(operands: Sequence[Value], found: Product, order: str) -> tuple[Value, Value]:
    left, right = map(_spread, operands, found.subscripts, (order, order))
    return left, right


def _order(found: Product, views: Mapping[Var, Expr]) -> str:
    """Return the letters of a product in the order in which the larger operand's elements lie."""
    sizes = [estimate(product(shape_of(type_of(a)))) for a in found.operands]
    largest = sizes.index(max(sizes))
    record = Recording(is_leaf=lambda var: var not in views)
    letters = found.subscripts[largest]
    at = {c: record.places.coordinate(f"{c}_", found.sizes[c]) for c in letters}
    try:
        Reader(views, record).element(found.operands[largest], tuple(at.values()))
        index = [d for _, dims in record.reads for d in dims]
    except Unreadable:
        index = list(at.values())

    def place(letter: str) -> int:
        return next((i for i, d in enumerate(index) if f"{letter}_" in d.names()), len(index))

    others = (c for c in found.sizes if c not in letters)
    return "".join((*others, *sorted(letters, key=place)))


def _spread(value: Value, letters: str, order: str) -> Value:
    """Return an operand with a dim for each letter of a product, in order, those it lacks of size
    1."""
    value = _turned(value, [letters.index(c) for c in order if c in letters])
    for place, letter in enumerate(order):
        if letter not in letters:
            value = value.unsqueeze(place)
    return value


def _turned(value: Value, dims: Sequence[int]) -> Value:
    return value if list(dims) == sorted(dims) else view.permute(value, dims=tuple(dims))
