"""What the names in a text refer to: operators, constructors, data types, global functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from ...diagnostics.catalogue.text import (
    AmbiguousConstructor,
    BadCall,
    OperatorNotCalled,
    UnknownConstructor,
    UnknownGlobal,
    UnknownOperator,
)
from ...diagnostics.diagnostic import CheckError
from ...diagnostics.source import Span
from ..build import bind_attrs
from ..expr import Call, Constructor, Expr, GlobalVar, Tuple
from ..module import AdtDef
from ..op import Missing, Op, Role
from ..types import UNIT
from .lexis import TRANSFORMS
from .place import Place, nearest

if TYPE_CHECKING:
    from lark import Token

INFIX: Final = {
    "+": "add",
    "-": "subtract",
    "*": "multiply",
    "/": "divide",
    "==": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
NEGATIVE: Final = "negative"


@final
@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The names that a text may use. `globals` is None where any global may be mentioned."""

    place: Place
    operators: Mapping[str, Op]
    owners: Mapping[str, tuple[str, ...]]
    adts: Mapping[str, AdtDef] | None
    globals: Mapping[str, Token] | None

    def global_var(self, token: Token, span: Span) -> GlobalVar:
        """Give the mention of a global function. Raises CheckError if there is none."""
        name = self.place.name(token)
        if self.globals is not None and name not in self.globals:
            near = nearest(name, self.globals, "@")
            raise CheckError(UnknownGlobal(self.place.of(token), str(token), near))
        return GlobalVar(name, span=span)

    def operator(self, name: str, token: Token) -> Op:
        """Give the operator that an infix sign stands for."""
        if name in self.operators:
            return self.operators[name]
        raise CheckError(UnknownOperator(self.place.of(token), name))

    def callee(self, token: Token, span: Span) -> Op | Constructor:
        """Give the operator or constructor of a name that is called."""
        name = self.place.name(token)
        if name in self.operators:
            return self.operators[name]
        if name in self.owners:
            return self.constructor(token, span)
        near = nearest(name, [*self.operators, *self.owners, *TRANSFORMS])
        raise CheckError(UnknownOperator(self.place.of(token), name, near))

    def value(self, token: Token, span: Span) -> Constructor:
        """Give the constructor that a name alone is."""
        found = self.callee(token, span)
        if isinstance(found, Op):
            text = signature_text(found)
            raise CheckError(OperatorNotCalled(self.place.of(token), found.name, text))
        return found

    def constructor(self, token: Token, span: Span) -> Constructor:
        """Give the constructor of a name that no data type is named with."""
        name = self.place.name(token)
        owners = self.owners.get(name, ())
        match owners:
            case (owner,):
                return Constructor(owner, name, span=span)
            case ():
                near = nearest(name, self.owners)
                raise CheckError(UnknownConstructor(self.place.of(token), name, near))
            case _:
                raise CheckError(AmbiguousConstructor(self.place.of(token), name, owners))

    def qualified(self, adt: Token, name: Token, span: Span) -> Constructor:
        """Give the constructor of a data type."""
        owner, own = self.place.name(adt), self.place.name(name)
        if self.adts is not None:
            known = [c.name for c in self.adts[owner].constructors] if owner in self.adts else []
            if own not in known:
                where = self.place.of(adt).to(self.place.of(name))
                raise CheckError(UnknownConstructor(where, f"{owner}::{own}", nearest(own, known)))
        return Constructor(owner, own, span=span)

    def finished(self, call: Call, *, typed: bool) -> Call:
        """Give an operator call with omitted operands as units and, in a typed text, with all
        attributes. Raises CheckError where the signature does not allow the call."""
        op = call.callee
        assert isinstance(op, Op)
        missing = list(op.operands)[len(call.args) :]
        if len(call.args) > len(op.operands):
            most = "1 operand" if len(op.operands) == 1 else f"{len(op.operands)} operands"
            raise self._refusal(op, call, f"`{op.name}` takes {most}, not {len(call.args)}")
        if any(p.default is not None for p in missing):
            raise self._refusal(op, call, f"`{op.name}` needs its operand `{missing[0].name}`")
        args = call.args + tuple(omitted(call.span, typed=typed) for _ in missing)
        try:
            attrs = bind_attrs(op, call.attrs) if typed else call.attrs
        except (TypeError, ValueError) as error:
            raise self._refusal(op, call, str(error)) from error
        return Call(op, args, attrs, call.type_args, span=call.span)

    def _refusal(self, op: Op, call: Call, message: str) -> CheckError:
        return CheckError(BadCall(call.span, message, signature_text(op)))


def omitted(span: Span, *, typed: bool) -> Expr:
    """Give what stands for an operand that a text leaves out."""
    return Tuple((), UNIT if typed else None, span=span)


def signature_text(op: Op) -> str:
    """Give the signature of an operator as it is called in text."""
    parts: list[str] = []
    for param in op.params:
        if param.default is Missing.REQUIRED:
            parts.append(param.name if param.role is Role.OPERAND else f"{param.name}=...")
        else:
            default = False if param.default is Missing.MODE else param.default
            parts.append(f"{param.name}={default}")
    return f"{op.name}({', '.join(parts)})"
