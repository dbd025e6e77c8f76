"""Resolution of the names in a text: operators, constructors, data types, global functions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, final

from ...dataclass import dataclass
from ...diagnostics.catalogue.text import (
    AmbiguousConstructor,
    BadCall,
    OperatorNotCalled,
    UnknownConstructor,
    UnknownGlobal,
    UnknownOperator,
    UnsupportedOperator,
)
from ...diagnostics.diagnostic import CheckError
from ...diagnostics.misspelt import nearest
from ...diagnostics.source import Span
from ...diagnostics.uses import argument_place
from ...ir.calls.attributes import WrongAttribute, bind_attrs
from ...ir.expr import Call, Constructor, Expr, Function, GlobalVar, Tuple
from ...ir.module import AdtDef
from ...ir.op import Missing, Op, Role
from ...ir.types import UNIT
from ...relay05.attributes import Refused
from ...relay05.imported import BadSignature, Imported
from ...relay05.table import UNSUPPORTED
from ..lexis import TRANSFORMS
from .context import TextContext

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
LITERALS: Final = {"true": "True", "false": "False"}
"""The literals for the names that other languages give them."""


@final
@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The names that a text may use. `globals` is None where any global may be mentioned."""

    place: TextContext
    operators: Mapping[str, Op | Imported]
    owners: Mapping[str, tuple[str, ...]]
    adts: Mapping[str, AdtDef] | None
    globals: Collection[str] | None

    def global_var(self, token: Token, span: Span) -> GlobalVar:
        """Return the mention of a global function. Raises CheckError if there is none."""
        name = self.place.name(token)
        if self.globals is not None and name not in self.globals:
            near = nearest(name, self.globals, "@")
            raise CheckError(UnknownGlobal(self.place.of(token), str(token), near))
        return GlobalVar(name, span=span)

    def operator(self, name: str, token: Token) -> Op | Imported:
        """Return the operator that an infix sign stands for."""
        if name in self.operators:
            return self.operators[name]
        raise CheckError(UnknownOperator(self.place.of(token), name))

    def callee(self, token: Token, span: Span) -> Op | Imported | Constructor:
        """Return the operator or constructor of a name that is called."""
        name = self.place.name(token)
        if self.is_relay and name in UNSUPPORTED and name not in self.owners:
            where = self.place.of(token)
            raise CheckError(UnsupportedOperator(where, name, "has no counterpart in pyrelay"))
        if name in self.operators:
            return self.operators[name]
        if name in self.owners:
            return self.constructor(token, span)
        near = LITERALS.get(name) or nearest(name, [*self.operators, *self.owners, *TRANSFORMS])
        raise CheckError(UnknownOperator(self.place.of(token), name, near))

    def value(self, token: Token, span: Span) -> Constructor | Call | Function:
        """Return the value of a name alone: a constructor; in Relay's text also the value that it
        makes of nothing, or an operator as a function."""
        found = self.callee(token, span)
        match found:
            case Op():
                text = signature_text(found)
                raise CheckError(OperatorNotCalled(self.place.of(token), found.name, text))
            case Imported():
                return self._as_function(found, span)
            case Constructor():
                return self._alone(found)

    def _alone(self, found: Constructor) -> Constructor | Call:
        if not self.place.dialect.bare_constructors or self.adts is None:
            return found
        is_bare = not self.adts[found.adt].constructor(found.name).fields
        return Call(found, (), span=found.span) if is_bare else found

    def _as_function(self, op: Imported, span: Span) -> Function:
        try:
            return op.function(span)
        except BadSignature:
            raise CheckError(OperatorNotCalled(span, op.name, op.signature)) from None

    @property
    def is_relay(self) -> bool:
        """Whether the names of operators are Relay's."""
        return not self.place.dialect.weak_numbers

    def applied(
        self, op: Imported, args: Sequence[Expr], attrs: Mapping[str, Any], span: Span
    ) -> Expr:
        """Return the expression for a call of an operator of Relay. Raises CheckError."""
        try:
            given_attrs = {name: value for name, value in attrs.items() if name != "attrs_type_key"}
            return op.call(args, given_attrs, span)
        except BadSignature as error:
            places = None if error.name is None else argument_place(error.name, span)
            place = span if places is None else places[0]
            raise CheckError(BadCall(place, str(error), op.signature, error.near)) from None
        except Refused as error:
            problem = UnsupportedOperator(span, op.name, error.message, error.help)
            raise CheckError(problem) from None

    def constructor(self, token: Token, span: Span) -> Constructor:
        """Return the constructor of a name that no data type is named with."""
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
        """Return the constructor of a data type."""
        owner, own = self.place.name(adt), self.place.name(name)
        if self.adts is not None:
            known = [c.name for c in self.adts[owner].constructors] if owner in self.adts else []
            if own not in known:
                where = self.place.of(adt).to(self.place.of(name))
                raise CheckError(UnknownConstructor(where, f"{owner}::{own}", nearest(own, known)))
        return Constructor(owner, own, span=span)

    def refuse_attributes(self, call: Call) -> None:
        """Check that a call of a function or constructor has no attributes, which Relay alone lets
        it have, for the tools that wrote the text. Raises CheckError."""
        if self.is_relay:
            return
        for name in call.attrs:
            place = argument_place(name, call.span)
            message = f"a function has no attributes, such as `{name}`"
            raise CheckError(BadCall(place[0] if place else call.span, message, "@f(%x)"))

    def finished(self, call: Call, *, typed: bool) -> Call:
        """Return an operator call with omitted operands as units and, in a typed text, with all
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
        except WrongAttribute as wrong:
            raise CheckError(wrong_attribute(call, op, wrong)) from None
        return Call(op, args, attrs, call.type_args, span=call.span)

    def _refusal(self, op: Op, call: Call, message: str) -> CheckError:
        return CheckError(BadCall(call.span, message, signature_text(op)))


def omitted(span: Span, *, typed: bool) -> Expr:
    """Return the value of an operand that a text leaves out."""
    return Tuple((), UNIT if typed else None, span=span)


def wrong_attribute(call: Call, op: Op, wrong: WrongAttribute) -> BadCall:
    """Return the problem of an attribute, where it stands in the call if it does."""
    found = argument_place(wrong.name, call.span)
    if found is None:
        place = call.span
    else:
        name, value = found
        place = name if wrong.is_unknown else value
    return BadCall(place, str(wrong), signature_text(op), wrong.near)


def signature_text(op: Op) -> str:
    """Return the signature of an operator as it is called in text."""
    parts: list[str] = []
    for param in op.params:
        if param.default is Missing.REQUIRED:
            parts.append(param.name if param.role is Role.OPERAND else f"{param.name}=...")
        else:
            default = False if param.default is Missing.MODE else param.default
            parts.append(f"{param.name}={default}")
    return f"{op.name}({', '.join(parts)})"
