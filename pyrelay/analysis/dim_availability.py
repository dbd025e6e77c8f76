"""Which sizes a running program can determine, and which it needs.

At run time a dim in an attribute is read off a variable in scope whose type shows it: a tensor's
shape or a size, inside tuples and cells too. A dim that nothing shows is computed from its parts.
A pass that removes or moves variables must leave every needed dim covered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final, final

from ..ir.dims import Dim
from ..ir.equations import uncovered as uncovered
from ..ir.expr import Call, Expr, Function, Var, type_of
from ..ir.names import Names
from ..ir.nested import leaves
from ..ir.traverse import bound_vars, post_order
from ..ir.types import RefType, SizeType, TensorType, TupleType, Type, dim_names


def shown(ty: Type | None) -> Iterator[Dim]:
    """Return the dims, other than plain numbers, that a value of a type shows at run time."""
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
    """Return the dims in the attributes of a call."""
    return (v for v in leaves(tuple(attrs.values())) if isinstance(v, Dim))


def needed(node: Expr) -> Iterator[Dim]:
    """Return the dims, other than plain numbers, whose value a node itself needs."""
    if isinstance(node, Call) and node.attrs:
        yield from (d for d in dims_in_attrs(node.attrs) if d.constant is None)


def missing_sizes(functions: Iterable[Function], captures: Iterable[Var]) -> list[Dim]:
    """Return the sizes that functions need, and that neither they nor their captures show."""
    present = {d for v in captures for d in shown(v.ty)}
    wanted: dict[Dim, None] = {}
    for node in (n for f in functions for n in post_order(f)):
        wanted |= dict.fromkeys(needed(node))
        present.update(d for v in bound_vars(node) for d in shown(v.ty))
    return list(dict.fromkeys(part for d in wanted for part in uncovered(d, present)))


@final
class SizeNames:
    """New names for sizes that only a value knows: two values must never share one."""

    def __init__(self, functions: Iterable[Function]) -> None:
        self._functions: Final = tuple(functions)

    def fresh(self, hint: str) -> str:
        """Return a name that no type in the functions mentions."""
        return self._names.fresh(hint)

    @cached_property
    def _names(self) -> Names:
        """Found when it is asked for, which it seldom is."""
        return Names(name for function in self._functions for name in sizes_in(function))


def sizes_in(function: Function) -> Iterator[str]:
    """Return the names of the sizes in the types of a function's variables, repeats included."""
    for node in post_order(function):
        for var in bound_vars(node):
            yield from dim_names(type_of(var))
