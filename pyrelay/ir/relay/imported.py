"""How an operator of Relay is read: its signature there, and what it is in our operators.

An `Imported` checks a call against Relay's signature and builds the expression that means the same.
Nothing is known of types when a text is read, so a build uses only what the text says: where the
rank or dtype of an operand would decide, it writes code that is right for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, TypeAlias, final

from ...diagnostics.misspelt import nearest
from ...diagnostics.source import Span
from ...diagnostics.wording import counted
from ..expr import (
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
from ..op import Missing, Op
from ..types import DTYPES, DType, TensorType

REQUIRED: Final = Missing.REQUIRED


class Refused(Exception):  # noqa: N818  becomes a diagnostic at the call
    """What a call asks for has no meaning here: the message goes on after the operator's name."""

    def __init__(self, message: str, help: str | None = None) -> None:  # noqa: A002
        super().__init__(message)
        self.message = message
        self.help = help


class BadSignature(Exception):  # noqa: N818  becomes a diagnostic at the call
    """A call does not fit the operator's signature in Relay; `name` is the attribute that it does
    not have, `near` one that it has."""

    def __init__(self, message: str, name: str | None = None, near: str | None = None) -> None:
        super().__init__(message)
        self.name: Final = name
        self.near: Final = near


@final
class Emit:
    """The expression that one call means, under construction."""

    def __init__(self, span: Span) -> None:
        self.span: Final = span
        self._bindings: Final[list[Binding]] = []

    def call(self, op: Op, *args: Expr | None, **attrs: Any) -> Call:
        """Give a call; operands that are None, or missing at the end, are omitted."""
        given = [Tuple((), span=self.span) if a is None else a for a in args]
        given += [Tuple((), span=self.span)] * (len(op.operands) - len(given))
        return Call(op, tuple(given), attrs, span=self.span)

    def named(self, expr: Expr, hint: str = "t") -> Expr:
        """Give an atom for a value that is used more than once."""
        if is_atom(expr):
            return expr
        var = Var(hint, span=self.span)
        self._bindings.append(Binding(var, expr))
        return var

    def number(self, value: float, dtype: DType | None = None) -> Constant:
        """Give a number; without a dtype it takes the one it meets."""
        ty = None if dtype is None else TensorType((), dtype)
        return Constant(value, ty, span=self.span)

    def tuple(self, *fields: Expr) -> Tuple:
        """Give a tuple."""
        return Tuple(fields, span=self.span)

    def get(self, value: Expr, index: int) -> TupleGet:
        """Give a field of a tuple."""
        return TupleGet(value, index, span=self.span)

    def finished(self, result: Expr) -> Expr:
        """Give the expression, the values it names first."""
        if not self._bindings:
            return result
        return LetBlock(tuple(self._bindings), result, Flavour.PURE, span=self.span)


Build: TypeAlias = Callable[..., Expr]
"""From an `Emit`, the operands (None for one left out) and the attributes by name."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """An operator of Relay.

    Attributes:
        name: Its name there.
        operands: The names of its operands; the last `optional` ones may be left out.
        attributes: Its attributes with their defaults.
        build: What a call of it is here.
    """

    name: str
    operands: tuple[str, ...]
    build: Build
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    optional: int = 0

    def call(self, args: Sequence[Expr], attrs: Mapping[str, Any], span: Span) -> Expr:
        """Give what a call means. Raises BadSignature and Refused."""
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
        given = {**self.attributes, **attrs}
        missing = [name for name, value in given.items() if value is REQUIRED]
        if missing:
            raise BadSignature(f"`{self.name}` needs its attribute `{missing[0]}`")
        emit = Emit(span)
        operands = (*args, *(None for _ in range(most - len(args))))
        return emit.finished(self.build(emit, *operands, **given))

    def function(self, span: Span) -> Function:
        """Give the operator as a value: a function that calls it."""
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
        for name, default in self.attributes.items():
            parts.append(f"{name}={'...' if default is REQUIRED else _text(default)}")
        return f"{self.name}({', '.join(parts)})"


def refuse(message: str, help: str | None = None) -> NoReturn:  # noqa: A002
    """Stop: a call asks for something that is not supported."""
    raise Refused(message, help)


def dtype_of(name: Any) -> DType | None:
    """Give the dtype of an attribute such as `dtype="float32"`; None for an empty one."""
    if name in (None, ""):
        return None
    known = {**DTYPES, "int": DTYPES["int32"], "float": DTYPES["float32"]}
    if isinstance(name, DType):
        return name
    if not isinstance(name, str) or name not in known:
        refuse(f"has the dtype `{name}`, which is not supported")
    return known[name]


def integers(value: Any, name: str) -> tuple[int, ...]:
    """Give an attribute that is one integer or several, as a tuple."""
    items = value if isinstance(value, tuple) else (value,)
    if not all(isinstance(i, int) and not isinstance(i, bool) for i in items):
        refuse(f"needs integers as `{name}`")
    return items


def integer(value: Any, name: str) -> int:
    """Give an attribute that is one integer."""
    items = integers(value, name)
    if len(items) != 1:
        refuse(f"needs one integer as `{name}`")
    return items[0]


def only(value: Any, allowed: Any, name: str) -> None:
    """Refuse an attribute that is not what alone is supported."""
    if value != allowed and value not in ("", None):
        refuse(f"is supported with `{name}={_text(allowed)}` only")


def _text(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple):
        return f"[{', '.join(map(_text, value))}]"
    return str(value)
