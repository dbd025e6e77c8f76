"""Function bodies as the gradient reads them: steps in order, with the bodies of their branches.

A body in A-normal form is a chain of let blocks; here it is one list of steps and an atom. What
stands in tail position becomes the last step. Wildcards in constructor patterns get variables, so
that every field whose cotangent must be made up has its sizes at hand.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Final, final

from ...analysis.dim_availability import SizeNames
from ...dataclass import dataclass
from ...ir.dims import Dim
from ...ir.expr import (
    Binding,
    BindPattern,
    Call,
    Clause,
    ConstructorPattern,
    Expr,
    Flavour,
    Function,
    GlobalVar,
    If,
    LetBlock,
    Match,
    Pattern,
    TuplePattern,
    Var,
    Wildcard,
    is_atom,
    type_of,
)
from ...ir.names import Names
from ...ir.op import Expansion, Op
from ...ir.traverse import Steps, pattern_vars, spine
from ...ir.types import AdtType, Substitution, TupleType, Type, dim_names
from ...operators.builder import Builder

if TYPE_CHECKING:
    from ..base import Opaque
    from .leaves import Leaves


@final
@dataclass(frozen=True, slots=True, eq=False)
class Arm:
    """A branch of an `If` (no pattern) or a clause of a `Match`."""

    pattern: Pattern | None
    guard: Expr | None
    body: Body


@final
@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One binding; `arms` are its branches, `tail` says that its value is the function's.

    `expansion` is other code for an operator call, which stands for it where it is differentiated;
    its last step binds the same variable. `is_opaque` says that the call itself still gives the
    value then: the operator has an implementation from outside.
    """

    var: Var
    value: Expr
    arms: tuple[Arm, ...]
    tail: bool
    expansion: tuple[Step, ...] = ()
    is_opaque: bool = False


@final
@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """Steps in order of evaluation, and the atom that is the result."""

    steps: tuple[Step, ...]
    result: Expr


@final
@dataclass(frozen=True, slots=True, eq=False)
class FunctionBody:
    """A first-order function, read: its body, and which step binds each variable."""

    name: str
    function: Function
    body: Body
    definitions: dict[Var, Step] = field(default_factory=dict[Var, Step])
    homes: dict[Var, Body] = field(default_factory=dict[Var, Body])
    """The body in which each variable is bound; patterns bind in the body of their arm."""
    sizes: SizeNames = field(default_factory=lambda: SizeNames(()))


@final
class Reader:
    """Reads one function."""

    def __init__(self, leaves: Leaves, opaque: Opaque) -> None:
        self._leaves: Final = leaves
        self._opaque: Final = opaque
        self._names: Final = Names()
        self._sizes = SizeNames(())
        self._definitions: Final[dict[Var, Step]] = {}
        self._homes: Final[dict[Var, Body]] = {}

    def read(self, name: str, function: Function) -> Steps[FunctionBody]:
        """Return the function as steps."""
        self._sizes = SizeNames((function,))
        body = yield self._body(function.body, tail=True)
        self._homes.update((p, body) for p in function.params)
        return FunctionBody(name, function, body, self._definitions, self._homes, self._sizes)

    def _body(self, expr: Expr, *, tail: bool) -> Steps[Body]:
        blocks, end = spine(expr)
        bindings = [b for block in blocks for b in _plain(block).bindings]
        steps: list[Step] = []
        for binding in bindings:
            last = binding is bindings[-1] and binding.var is end
            steps.append((yield self._step(binding.var, binding.value, tail=tail and last)))
        if not is_atom(end):
            var = Var("result", type_of(end), span=end.span)
            steps.append((yield self._step(var, end, tail=tail)))
            end = var
        body = Body(tuple(steps), end)
        for step in steps:
            self._homes[step.var] = body
            self._homes.update((s.var, body) for s in step.expansion)
        return body

    def _step(self, var: Var, value: Expr, *, tail: bool) -> Steps[Step]:
        arms: list[Arm] = []
        match value:
            case If(_, then, otherwise):
                first = yield self._body(then, tail=tail)
                second = yield self._body(otherwise, tail=tail)
                arms += (Arm(None, None, first), Arm(None, None, second))
            case Match(matched, clauses):
                for clause in clauses:
                    arm = yield self._arm(clause, type_of(matched), tail=tail)
                    arms.append(arm)
            case _:
                pass
        expansion = self._expansion(var, value)
        callee = value.callee if isinstance(value, Call) else None
        is_opaque = isinstance(callee, Op) and self._opaque(callee)
        step = Step(var, value, tuple(arms), tail, expansion, is_opaque)
        self._definitions.update((s.var, s) for s in (step, *expansion))
        return step

    def _expansion(self, var: Var, value: Expr) -> tuple[Step, ...]:
        """Return the code for an operator that is differentiated through other ones, if it is."""
        match value:
            case Call(Op(grad=Expansion(body)), args):
                builder = Builder(value.span, self._names)
                result = body(tuple(builder.value(a) for a in args), value.attrs)
                if not builder.bindings:
                    return ()  # what is made of nothing is not differentiated
                *first, last = builder.bindings
                assert last.var is result.atom, "an expansion ends in its result"
                steps: list[Step] = []
                for binding in (*first, Binding(var, last.value)):
                    inside = self._expansion(binding.var, binding.value)
                    steps += inside or (Step(binding.var, binding.value, (), False),)
                return tuple(steps)
            case _:
                return ()

    def _arm(self, clause: Clause, matched: Type, *, tail: bool) -> Steps[Arm]:
        pattern = self._named(clause.pattern, matched)
        body = yield self._body(clause.body, tail=tail)
        self._homes.update((v, body) for v in pattern_vars(pattern))
        return Arm(pattern, clause.guard, body)

    def _named(self, pattern: Pattern, ty: Type, *, inside: bool = False) -> Pattern:
        """Return the pattern with a variable for each wildcard field that has leaves."""
        match pattern:
            case Wildcard() if inside and self._leaves.width(ty):
                var = Var(self._names.fresh("field"), ty, span=pattern.span)
                return BindPattern(var, span=pattern.span)
            case BindPattern(var, inner) if inner is not None:
                return replace(pattern, inner=self._named(inner, type_of(var)))
            case TuplePattern(fields):
                assert isinstance(ty, TupleType)
                types = ty.fields
            case ConstructorPattern(_, name, fields):
                assert isinstance(ty, AdtType)
                types, inside = self._opened(ty, name), True
            case _:
                return pattern
        named = tuple(self._named(f, t, inside=inside) for f, t in zip(fields, types, strict=True))
        return replace(pattern, fields=named)

    def _opened(self, ty: AdtType, constructor: str) -> tuple[Type, ...]:
        """Return the types of the fields; sizes that the value alone knows get names of their
        own."""
        fields = self._leaves.fields(ty, constructor)
        known = dim_names(ty)
        hidden = sorted(set().union(*(dim_names(f) for f in fields)) - known)
        opened = Substitution({n: Dim.of(self._sizes.fresh(n)) for n in hidden}, {})
        return tuple(opened(f) for f in fields)


def _plain(block: LetBlock) -> LetBlock:
    assert block.flavour is not Flavour.REC, "the program is first-order"
    return block


def subpatterns(
    pattern: ConstructorPattern | TuplePattern, ty: Type, leaves: Leaves
) -> list[tuple[Pattern, Type]]:
    """Return the patterns directly inside one, with the types of the values they match."""
    if isinstance(pattern, TuplePattern):
        assert isinstance(ty, TupleType)
        return list(zip(pattern.fields, ty.fields, strict=True))
    assert isinstance(ty, AdtType)
    return list(zip(pattern.fields, leaves.fields(ty, pattern.name), strict=True))


def callee_name(expr: Expr) -> str | None:
    """Return the name of the global function that an expression calls, if it is such a call."""
    match expr:
        case Call(GlobalVar(name)):
            return name
        case _:
            return None
