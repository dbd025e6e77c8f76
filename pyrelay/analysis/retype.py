"""Programs under other types: copies in which sizes and type variables are replaced.

Types stand in nodes, in bound variables, in attributes and in type arguments; this file knows all
the places.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol, final

from ..ir.dims import Dim
from ..ir.expr import Assumption, Call, Expr, Function, Var
from ..ir.nested import map_nested
from ..ir.op import Op
from ..ir.traverse import bound_vars, post_order, rebind, rewrite
from ..ir.types import Type
from .dim_availability import dims_in_attrs

if TYPE_CHECKING:
    from ..diagnostics.source import Span


def types_in(node: Expr) -> Iterator[Type | Dim]:
    """Return every type and dim that a node itself mentions, those of its bound variables
    included."""
    if node.ty is not None:
        yield node.ty
    yield from (v.ty for v in bound_vars(node) if v.ty is not None)
    if isinstance(node, Call):
        yield from node.type_args
        yield from dims_in_attrs(node.attrs)
    elif isinstance(node, Function):
        yield from (() if node.result is None else (node.result,))
        for assumption in node.assumptions:
            yield from (assumption.left, assumption.right)


class TypeChange(Protocol):
    """The replacement of types, such as a substitution."""

    @property
    def is_empty(self) -> bool:
        """Whether every type stays as it is."""
        ...

    def __call__(self, ty: Type) -> Type:
        """Return the replacement of a type."""
        ...

    def dim(self, dim: Dim) -> Dim:
        """Return the replacement of a dim."""
        ...


@final
class Retyping:
    """One copy under other types; every variable that the original binds is new."""

    def __init__(self, change: TypeChange, because: str = "", place: Span | None = None) -> None:
        """`because` is why the copy exists; `place` is where it stands, if not at the original."""
        self._change: Final = change
        self._is_empty: Final = change.is_empty
        self._because: Final = because
        self._place: Final = place
        self._types: Final[dict[Type, Type]] = {}
        self.vars: Final[dict[Var, Var]] = {}
        """The copies of the variables seen so far; what is put here beforehand is used."""

    def type(self, ty: Type | None) -> Type | None:
        """Return the replacement of a type."""
        if ty is None or self._is_empty:
            return ty
        found = self._types.get(ty)
        if found is None:
            found = self._types[ty] = self._change(ty)
        return found

    def attr(self, value: Any) -> Any:
        """Return the replacement of an attribute."""
        return map_nested(value, self._dim)

    def _dim(self, value: Any) -> Any:
        return self._change.dim(value) if isinstance(value, Dim) else value

    def _attrs(self, call: Call) -> dict[str, Any]:
        """Return the attributes of a call; a size that became a number is one in normal form."""
        found = {k: self.attr(v) for k, v in call.attrs.items()}
        for param in call.callee.attributes if isinstance(call.callee, Op) else ():
            if param.convert is not None and found[param.name] != call.attrs[param.name]:
                found[param.name] = param.convert(found[param.name])
        return found

    def bind(self, var: Var) -> Var:
        """Return the copy of a variable that the original binds."""
        copy = self.vars.get(var)
        if copy is None:
            copy = self.vars[var] = replace(var, ty=self.type(var.ty))
        return copy

    def copy(self, expr: Expr) -> Expr:
        """Return the copy of an expression."""
        for node in post_order(expr):
            for var in bound_vars(node):
                self.bind(var)
        return rewrite(expr, self._copied)

    def span(self, node: Expr) -> Span:
        """Return the place of the copy of a node."""
        span = node.span if self._place is None else self._place
        return span.derived(self._because) if self._because else span

    def node(self, node: Expr) -> Expr:
        """Return a node around the same children with its own types replaced; what it binds stays
        as it is."""
        node = replace(node, ty=self.type(node.ty), span=self.span(node))
        match node:
            case _ if self._is_empty:
                return node
            case Call() if node.attrs or node.type_args:
                attrs = self._attrs(node)
                args = tuple(
                    self._change.dim(a) if isinstance(a, Dim) else self._change(a)
                    for a in node.type_args
                )
                return replace(node, attrs=attrs, type_args=args)
            case Function():
                return replace(
                    node,
                    result=self.type(node.result),
                    assumptions=tuple(map(self._assumption, node.assumptions)),
                )
            case _:
                return node

    def _copied(self, node: Expr) -> Expr:
        if isinstance(node, Var):
            return self.vars.get(node, node)
        return rebind(self.node(node), self.vars.__getitem__)

    def _assumption(self, found: Assumption) -> Assumption:
        return replace(
            found, left=self._change.dim(found.left), right=self._change.dim(found.right)
        )
