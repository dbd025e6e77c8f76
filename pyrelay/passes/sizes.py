"""Which sizes a running program can tell, and which it needs.

At run time a dim in an attribute is read off a variable in scope whose type shows it: a tensor's
shape or a size, inside tuples and cells too. A dim that nothing shows is computed from its parts.
A pass that removes or moves variables must leave every needed dim covered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..ir.dims import Dim, DimOp
from ..ir.expr import Call, Expr
from ..ir.nested import leaves
from ..ir.types import RefType, SizeType, TensorType, TupleType, Type


def shown(ty: Type | None) -> Iterator[Dim]:
    """Give the dims, other than plain numbers, that a value of a type shows at run time."""
    pending: list[Type] = [] if ty is None else [ty]
    while pending:
        current = pending.pop()
        match current:
            case TensorType(shape):
                yield from (d for d in shape if d.constant is None)
            case SizeType(dim):
                yield from () if dim.constant is not None else (dim,)
            case TupleType(fields):
                pending += reversed(fields)
            case RefType(value):
                pending.append(value)
            case _:
                pass


def dims_in_attrs(attrs: Mapping[str, Any]) -> Iterator[Dim]:
    """Give the dims in the attributes of a call."""
    return (v for v in leaves(tuple(attrs.values())) if isinstance(v, Dim))


def needed(node: Expr) -> Iterator[Dim]:
    """Give the dims, other than plain numbers, whose value a node itself needs."""
    if isinstance(node, Call) and node.attrs:
        yield from (d for d in dims_in_attrs(node.attrs) if d.constant is None)


def uncovered(dim: Dim, known: Iterable[Dim]) -> Iterator[Dim]:
    """Give the parts of a dim, each one atom, that dims already known do not tell."""
    known = frozenset(known)
    pending = [dim]
    while pending:
        current = pending.pop()
        if current in known:
            continue
        for monomial, _ in current.terms:
            for atom in monomial:
                part = Dim.atom(atom)
                if part in known:
                    continue
                if isinstance(atom, DimOp):
                    pending += (atom.left, atom.right)
                else:
                    yield part
