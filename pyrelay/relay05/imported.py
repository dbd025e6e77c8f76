"""How an operator of Relay is read: its signature there, and its translation into our operators.

An `Imported` checks a call against Relay's signature and builds the expression that means the same.
Nothing is known of types when a text is read. Where the rank or dtype of an operand decides, the
call is kept as the operator `relay_call`, which inference expands once it knows them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, TypeAlias, final

from ..dataclass import dataclass
from ..diagnostics.misspelt import nearest
from ..diagnostics.source import Span
from ..diagnostics.wording import counted
from ..ir.dims import Dim
from ..ir.expr import (
    Binding,
    Call,
    Constant,
    Expr,
    Flavour,
    Function,
    LetBlock,
    Tuple,
    TupleGet,
    Var,
    is_atom,
)
from ..ir.op import Op, Stuck
from ..ir.types import DType, SizeType, TensorType, Type, TypeHole, int64
from ..operators.host import sizes
from ..operators.host.loop import relay_call
from .attributes import REQUIRED, Attribute, attribute_text, refuse


class BadSignature(Exception):  # noqa: N818  becomes a diagnostic at the call
    """A call does not fit the operator's signature in Relay; `name` is the attribute that it does
    not have, `near` one that it has."""

    def __init__(self, message: str, name: str | None = None, near: str | None = None) -> None:
        super().__init__(message)
        self.name: Final = name
        self.near: Final = near


@final
class Emit:
    """The expression that one call means, under construction.

    `type_of` gives the type of an operand; only the builds of calls that need types may ask.
    """

    def __init__(self, span: Span, type_of: Callable[[Expr], Type] | None = None) -> None:
        self.span: Final = span
        self._type_of: Final = type_of
        self._bindings: Final[list[Binding]] = []

    def shape(self, operand: Expr) -> tuple[Dim, ...]:
        """Return the shape of an operand. Raises Stuck while its rank is not known."""
        return self._tensor(operand).shape

    def rank(self, operand: Expr) -> int:
        """Return the rank of an operand. Raises Stuck while it is not known."""
        return len(self.shape(operand))

    def dtype(self, operand: Expr) -> DType:
        """Return the dtype of an operand. Raises Stuck while it is not known."""
        dtype = self._tensor(operand).dtype
        if not isinstance(dtype, DType):
            raise Stuck(dtype)
        return dtype

    def _tensor(self, operand: Expr) -> TensorType:
        assert self._type_of is not None, "the operator does not say that it needs types"
        ty = self._type_of(operand)
        match ty:
            case TypeHole():
                raise Stuck(ty)
            case SizeType():
                return TensorType((), int64)
            case TensorType():
                return ty
            case _:
                return refuse("takes tensors")

    def size(self, operand: Expr, dim: int) -> Call:
        """Return the size of a dim of a value."""
        return self.call(sizes.dim_size, operand, dim=dim)

    def call(self, op: Op, *args: Expr | None, **attrs: Any) -> Call:
        """Return a call; operands that are None, or missing at the end, are omitted."""
        given = [Tuple((), span=self.span) if a is None else a for a in args]
        given += [Tuple((), span=self.span)] * (len(op.operands) - len(given))
        return Call(op, tuple(given), attrs, span=self.span)

    def named(self, expr: Expr, hint: str = "t") -> Expr:
        """Return an atom for a value that is used more than once."""
        if is_atom(expr):
            return expr
        var = Var(hint, span=self.span)
        self._bindings.append(Binding(var, expr))
        return var

    def number(self, value: float, dtype: DType | None = None) -> Constant:
        """Return a number; without a dtype it takes the one it meets."""
        ty = None if dtype is None else TensorType((), dtype)
        return Constant(value, ty, span=self.span)

    def tuple(self, *fields: Expr) -> Tuple:
        """Return a tuple."""
        return Tuple(fields, span=self.span)

    def get(self, value: Expr, index: int) -> TupleGet:
        """Return a field of a tuple."""
        return TupleGet(value, index, span=self.span)

    def finished(self, result: Expr) -> Expr:
        """Return the expression, the values it names first."""
        if not self._bindings:
            return result
        return LetBlock(tuple(self._bindings), result, Flavour.PURE, span=self.span)


def always(_: Mapping[str, Any]) -> bool:
    """Return True: every call of an operator needs types."""
    return True


def counts_from_the_end(attrs: Mapping[str, Any]) -> bool:
    """Return whether the axis of a call is negative, so that the rank says which it is."""
    return (attrs["axis"] or 0) < 0


Build: TypeAlias = Callable[..., Expr]
"""From an `Emit`, the operands (None for one left out) and the attributes by name."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """An operator of Relay.

    Attributes: name: Its name there. operands: The names of its operands; the last `optional` ones
    may be left out. attributes: Its attributes. build: The translation of a call. needs_types:
    Whether a call with such attributes is built where types are known.
    """

    name: str
    operands: tuple[str, ...]
    build: Build
    attributes: Mapping[str, Attribute] = field(default_factory=dict[str, Attribute])
    optional: int = 0
    needs_types: Callable[[Mapping[str, Any]], bool] = lambda _: False

    def call(self, args: Sequence[Expr], attrs: Mapping[str, Any], span: Span) -> Expr:
        """Build the translation of a call. Raises BadSignature and Refused."""
        read = self._checked(args, attrs)
        if not self.needs_types(read):
            return self._built(Emit(span), args, read)
        kept = {"operator": self.name, "attributes": tuple(read.items())}
        return Call(relay_call, (Tuple(tuple(args), span=span),), kept, span=span)

    def expanded(self, emit: Emit, args: Sequence[Expr], attrs: Mapping[str, Any]) -> Expr:
        """Build the translation of a kept call. Raises BadSignature, Refused, and Stuck while a
        type that it needs is not known."""
        return self._built(emit, args, self._checked(args, attrs))

    def _built(self, emit: Emit, args: Sequence[Expr], attrs: Mapping[str, Any]) -> Expr:
        left_out = (None for _ in range(len(self.operands) - len(args)))
        return emit.finished(self.build(emit, *args, *left_out, **attrs))

    def _checked(self, args: Sequence[Expr], attrs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the attributes of a call in their normal forms, defaults filled in."""
        most, least = len(self.operands), len(self.operands) - self.optional
        if not least <= len(args) <= most:
            wanted = counted(most, "operand")
            if least < most:
                wanted = f"{least} to {wanted}"
            raise BadSignature(f"`{self.name}` takes {wanted}, not {len(args)}")
        unknown = [name for name in attrs if name not in self.attributes]
        if unknown:
            message = f"`{self.name}` has no attribute `{unknown[0]}`"
            raise BadSignature(message, unknown[0], nearest(unknown[0], self.attributes))
        given = {n: attrs.get(n, a.default) for n, a in self.attributes.items()}
        missing = [name for name, value in given.items() if value is REQUIRED]
        if missing:
            raise BadSignature(f"`{self.name}` needs its attribute `{missing[0]}`")
        return {n: a.kind(n, given[n]) for n, a in self.attributes.items()}

    def function(self, span: Span) -> Function:
        """Return the operator as a value: a function that calls it."""
        params = tuple(Var(name, span=span) for name in self.operands[: self.arity])
        return Function(params, self.call(params, {}, span), span=span)

    @property
    def arity(self) -> int:
        """The number of operands that every call has."""
        return len(self.operands) - self.optional

    @property
    def signature(self) -> str:
        """The signature, as a call is written."""
        parts = [*self.operands[: self.arity]]
        parts += [f"[{name}]" for name in self.operands[self.arity :]]
        for name, attribute in self.attributes.items():
            default = attribute.default
            parts.append(f"{name}={'...' if default is REQUIRED else attribute_text(default)}")
        return f"{self.name}({', '.join(parts)})"
