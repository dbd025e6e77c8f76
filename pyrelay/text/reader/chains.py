"""Infix chains of the text form: `%a + %b * 2` as calls of operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from lark import Token

from ...dataclass import dataclass
from ...diagnostics.source import Span
from ...ir.expr import Call, Constant, Expr
from ...ir.op import Op
from ...ir.traverse import Steps
from ...ir.types import SizeType, Type
from ...relay05.imported import Imported
from . import literals as read_literals
from .context import Syntax, tree_of, word_of
from .precedence import fold_chain
from .vocabulary import INFIX, NEGATIVE, Vocabulary


@final
@dataclass(frozen=True, slots=True)
class _Operand:
    """A part of a chain and where it stands."""

    expr: Expr
    span: Span


@final
class ChainReader:
    """Reads chains; `expr` reads an operand, `finish` completes a call of an operator."""

    def __init__(
        self,
        words: Vocabulary,
        expr: Callable[[Syntax, Type | None], Steps[Expr]],
        finish: Callable[[Call, Type | None], Call],
    ) -> None:
        self._words: Final = words
        self._place: Final = words.place
        self._expr: Final = expr
        self._finish: Final = finish

    def read(self, tree: Syntax) -> Steps[Expr]:
        """Return the expression of a chain."""
        chain: list[_Operand | Token] = []
        for item in tree.children:
            if isinstance(item, Token):
                chain.append(item)
                continue
            part = tree_of(item)
            if part.data == "number" and _ends_in_minus(chain):
                chain.append(self._negative_number(chain.pop(), part))
                continue
            expr = yield self._expr(part, None)
            chain.append(_Operand(expr, self._place.of(part)))
        return fold_chain(chain, self._joined, self._negated).expr

    def _joined(self, sign: Token, left: _Operand, right: _Operand) -> _Operand:
        span = left.span.to(right.span)
        args = (left.expr, right.expr)
        return _Operand(self._applied(INFIX[sign], sign, args, span), span)

    def _negated(self, sign: Token, operand: _Operand) -> _Operand:
        span = self._place.of(sign).to(operand.span)
        value = operand.expr
        if not isinstance(value, Constant) or not isinstance(value.value, int | float):
            return _Operand(self._applied(NEGATIVE, sign, (value,), span), span)
        ty = SizeType(-value.ty.dim) if isinstance(value.ty, SizeType) else value.ty
        written = value.span.file is not self._place.file
        made = Constant(-value.value, ty, span=value.span if written else span)
        return _Operand(made, span)

    def _negative_number(self, minus: _Operand | Token, tree: Syntax) -> _Operand:
        """Return a number with its sign, which its dtype depends on."""
        assert isinstance(minus, Token)
        value, ty = read_literals.number(self._place, word_of(tree), negative=True)
        written = tree.children[-1]
        here = self._place.of(minus).to(self._place.of(tree))
        span = here if written is None else self._place.of(tree, written)
        return _Operand(Constant(value, ty, span=span), here)

    def _applied(self, name: str, sign: Token, args: tuple[Expr, ...], span: Span) -> Expr:
        op = self._words.operator(name, sign)
        match op:
            case Imported():
                return self._words.applied(op, args, {}, span)
            case Op():
                return self._finish(Call(op, args, span=span), None)


def _ends_in_minus(chain: list[_Operand | Token]) -> bool:
    """Return whether the last sign of a chain belongs to what follows it."""
    if not chain or not isinstance(chain[-1], Token) or chain[-1].type != "MINUS":
        return False
    return len(chain) == 1 or isinstance(chain[-2], Token)
