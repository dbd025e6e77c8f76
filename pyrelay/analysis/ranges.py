"""Which arithmetic on integers cannot leave 64 bits, so that running programs need not look.

Two things are known: a number that a test has found below another is not the highest, which is what
counters of loops rely on; and how many bits sizes, constants and remainders have at most.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

from ..dataclass import dataclass
from ..ir.expr import Call, Constant, Expr, Function, If, LetBlock, Match, Var
from ..ir.module import Module
from ..ir.op import Op
from ..ir.types import SizeType, TensorType, bool_
from ..operators.host.sizes import dim_size
from ..operators.primitive.arithmetic import add, floor_divide, mod, multiply, negative, subtract
from ..operators.primitive.compare import cast, greater, greater_equal, less, less_equal

_LIMIT: Final = 62
"""The bits of a number of which the double fits as well."""
_SIZE: Final = 48
"""The bits of the length of a dimension: no memory holds more."""
_FAR: Final = 8
"""How many branches outwards a test is looked for."""


def in_range(module: Module) -> frozenset[Call]:
    """Return the calls in a module in A-normal form that give integers of 64 bits from such
    integers whatever these are."""
    found: set[Call] = set()
    for function in module.functions.values():
        found |= _Walk().calls(function.body)
    return frozenset(found)


@final
@dataclass(frozen=True, slots=True)
class _Branch:
    """A fact of a branch: one atom is below another."""

    lower: Expr
    upper: Expr
    outer: _Branch | None


@final
class _Walk:
    """One walk over a function."""

    def __init__(self) -> None:
        self._tests: Final[dict[Expr, Call]] = {}
        self._bits: Final[dict[Expr, int]] = {}

    def calls(self, body: Expr) -> set[Call]:
        """Return the calls in the body of a function."""
        found: set[Call] = set()
        pending: list[tuple[Expr, _Branch | None]] = [(body, None)]
        while pending:
            expr, branch = pending.pop()
            while isinstance(expr, LetBlock):
                for binding in expr.bindings:
                    if self._is_in_range(binding.var, binding.value, branch):
                        assert isinstance(binding.value, Call)
                        found.add(binding.value)
                    pending += self._inside(binding.value, branch)
                expr = expr.body
            pending += self._inside(expr, branch)
        return found

    def _inside(self, expr: Expr, branch: _Branch | None) -> Iterator[tuple[Expr, _Branch | None]]:
        match expr:
            case Function(body=body):
                yield body, branch
            case If(condition, then, otherwise):
                yield then, self._narrowed(condition, branch, holds=True)
                yield otherwise, self._narrowed(condition, branch, holds=False)
            case Match(clauses=clauses):
                yield from ((body, branch) for clause in clauses for body in clause.scopes)
            case _:
                pass

    def _narrowed(self, condition: Expr, outer: _Branch | None, *, holds: bool) -> _Branch | None:
        test = self._tests.get(condition)
        if test is None:
            return outer
        left, right = test.args
        strict = {less: (left, right), greater: (right, left)}
        loose = {less_equal: (right, left), greater_equal: (left, right)}
        assert isinstance(test.callee, Op)
        pair = (strict if holds else loose).get(test.callee)
        return outer if pair is None else _Branch(*pair, outer)

    def _is_in_range(self, var: Var, value: Expr, branch: _Branch | None) -> bool:
        """Note the range of a variable; return whether its value stays in range."""
        if not isinstance(value, Call) or not isinstance(value.callee, Op):
            return False
        if value.callee in (less, less_equal, greater, greater_equal):
            self._tests[var] = value
        if not isinstance(var.ty, SizeType) and not _is_long(var):
            return False
        bits = self._bits_of(value)
        if bits <= _LIMIT:
            self._bits[var] = bits
        return bits <= _LIMIT or _counts(value, branch)

    def _bits_of(self, call: Call) -> int:
        """Return the most bits of the magnitude of a call's value; 64 if they are not known."""
        if call.callee is dim_size:
            return _SIZE
        if call.callee is cast:
            source = call.args[0].ty
            return 1 if isinstance(source, TensorType) and source.dtype == bool_ else 64
        known = [self._known(a) for a in call.args]
        match call.callee:
            case op if op is add or op is subtract:
                return max(known) + 1
            case op if op is multiply:
                return sum(known)
            case op if op is mod:
                return known[1]
            case op if op is floor_divide or op is negative:
                return known[0]
            case _:
                return 64

    def _known(self, atom: Expr) -> int:
        if isinstance(atom, Constant) and isinstance(atom.value, int):
            return atom.value.bit_length()
        return self._bits.get(atom, 64)


def _counts(call: Call, branch: _Branch | None) -> bool:
    """Return whether a call goes a step up from what is below another number, or down from what is
    above one."""
    if call.callee is not add and call.callee is not subtract:
        return False
    number, step = call.args
    if call.callee is add and isinstance(number, Constant):
        number, step = step, number
    if not isinstance(step, Constant) or not isinstance(step.value, int):
        return False
    by = step.value if call.callee is add else -step.value
    for _ in range(_FAR):
        if branch is None:
            return False
        own, other = (branch.lower, branch.upper) if by > 0 else (branch.upper, branch.lower)
        furthest = 2**32 if isinstance(other.ty, SizeType) else 1
        if own is number and abs(by) <= furthest:
            return True
        branch = branch.outer
    return False


def _is_long(var: Var) -> bool:
    ty = var.ty
    return isinstance(ty, TensorType) and not ty.shape and str(ty.dtype) == "int64"
