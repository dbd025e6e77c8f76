"""Groups recognised from kernel functions alone: what fusion carries must be what a function is."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import fields, replace

from pyrelay.ir.declaration.lowering import Contraction, Elementwise, Pointwise, inside
from pyrelay.ir.dims import Dim, product
from pyrelay.ir.expr import Call, Expr, Function, Var, is_unit, type_of
from pyrelay.ir.op import Op
from pyrelay.ir.traverse import children
from pyrelay.kernels.contraction_axes import Product
from pyrelay.kernels.groups import (
    Domain,
    Group,
    Kind,
    Output,
    Reduced,
    Scattered,
    Special,
    domains_of,
    lies_beside,
    space_of,
    special_of,
)
from pyrelay.kernels.reading import bindings_of, results_of, shape_of, straight_line
from pyrelay.operators.composite.descent import overwrite
from pyrelay.operators.composite.table_rows import add_rows, store_rows


def checked(group: Group) -> Group:
    """Return a group that fusion made, which is what its function is recognised as. Whether it may
    fail follows from the program around it."""
    found = replace(group_of(group.function), may_fail=group.may_fail)
    for field in fields(group):
        carried, wanted = getattr(group, field.name), getattr(found, field.name)
        assert carried == wanted, (field.name, carried, wanted)
    return group


WRITING = (overwrite, add_rows, store_rows)


class NoGroup(Exception):  # noqa: N818  the answer of a question
    """A function is no kernel of any kind; says why."""


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
            made = found.call.args[-1] if found.lowering.in_place else found.var
            if [o.value for o in outputs] != [made]:
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
            case Call(callee, (target, *_, stored)) if callee in WRITING:
                if target not in function.params:
                    raise NoGroup("only parameters are overwritten")
                found.append(Output(stored, None, function.params.index(target)))
            case _:
                pass
    results = results_of(function.body)
    found += (Output(r, i, None) for i, r in enumerate(results) if not is_unit(r))
    return tuple(found)


def _special(var: Var, value: Expr) -> Special | None:
    """Return what a binding is, if it is not given element by element. Raises NoGroup."""
    if not isinstance(value, Call) or not isinstance(value.callee, Op):
        return None
    found = special_of(var, value)
    if found is not None or value.callee is overwrite:
        return found
    match inside(value.callee.lowering):
        case Contraction():
            raise NoGroup(f"`{value.callee.name}` is no sum of products here")
        case Pointwise() | Elementwise():
            return None
        case _:
            raise NoGroup(f"`{value.callee.name}` is called, not fused")


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
