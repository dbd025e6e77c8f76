"""Folding: what can be known before the program runs, is.

A walk in order of evaluation: operators on constants are evaluated (by an evaluator that is
passed in, since the compiler itself runs nothing), branches that are decided are taken, fields of
known tuples and constructors are read, copies are forgotten, and the laws of `algebra` applied.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Final, final

from ...dataclass import dataclass
from ...ir.block_builder import BlockBuilder
from ...ir.effect import own_effect
from ...ir.expr import (
    Binding,
    BindPattern,
    Call,
    Clause,
    Constant,
    Constructor,
    ConstructorPattern,
    Expr,
    If,
    Match,
    Tuple,
    TupleGet,
    TuplePattern,
    Var,
    is_atom,
)
from ...ir.module import Module
from ...ir.op import Effect, Op
from ...ir.rewriter import Rewriter
from ...ir.traverse import Steps, children, rebuild
from ...ir.types import SizeType
from ...ir.verify import Stage
from ..base import Context, Evaluate, Opaque, Pass, nothing_opaque
from .algebra import simplified
from .case_of_known_constructor import decide
from .constants import evaluated


def fold(
    module: Module, evaluate: Evaluate | None = None, opaque: Opaque = nothing_opaque
) -> Module:
    """Return a module in A-normal form with what is known folded; itself if nothing is.

    Without `evaluate`, operators on constants stay; those that are `opaque` stay in any case.
    """
    return module.map_functions(lambda f: _Folder(module, evaluate, opaque).walked(f))


@final
@dataclass(frozen=True, slots=True)
class Fold(Pass):
    """Evaluate calls, branches and matches whose operands are known."""

    name: ClassVar = "fold"
    needs: ClassVar = Stage.ANF

    def run(self, module: Module, context: Context) -> Module:
        """Return the module after the pass."""
        return fold(module, context.evaluate, context.opaque)


@final
class _Folder(Rewriter):
    """One walk over a function."""

    def __init__(self, module: Module, evaluate: Evaluate | None, opaque: Opaque) -> None:
        super().__init__(module)
        self._evaluate: Final = evaluate
        self._opaque: Final = opaque
        self._known: Final[dict[Expr, Expr]] = {}

    def binding(self, binding: Binding, code: BlockBuilder) -> Steps[None]:
        """Add a binding, unless its value turns out to be an atom."""
        value = yield self.node(binding.value, code)
        if is_atom(value):
            self.let(binding.var, value, code)
            return
        self._known[binding.var] = value
        code.bind(binding.var, value)

    def atom(self, atom: Expr) -> Expr:
        """Return the replacement of an atom: a size that its type determines is that number."""
        found = super().atom(atom)
        ty = found.ty
        if isinstance(found, Var) and isinstance(ty, SizeType) and ty.dim.constant is not None:
            return Constant(ty.dim.constant, ty, span=found.span)
        return found

    def node(self, expr: Expr, code: BlockBuilder) -> Steps[Expr]:
        """Return the folded form of a node."""
        match expr:
            case If():
                return (yield self._if(expr, code))
            case Match():
                return (yield self._match(expr, code))
            case Call(Op()):
                return self._operator(expr)
            case TupleGet():
                return self._field(expr)
            case _:
                return (yield super().node(expr, code))

    # Operators.

    def _operator(self, expr: Call) -> Expr:
        call = rebuild(expr, tuple(map(self.atom, children(expr))))
        assert isinstance(call, Call)
        ty = call.ty
        if own_effect(call) is not Effect.NONE:
            return call
        if isinstance(ty, SizeType) and ty.dim.constant is not None:
            return Constant(ty.dim.constant, ty, span=call.span)
        assert isinstance(call.callee, Op)
        if self._opaque(call.callee):
            return call
        simpler = simplified(call, self._known)
        if simpler is not None:
            return simpler
        return evaluated(call, self._evaluate, self._known) or call

    def _field(self, expr: TupleGet) -> Expr:
        value = self.atom(expr.value)
        known = self._known.get(value)
        if isinstance(known, Tuple):
            return known.fields[expr.index]
        return rebuild(expr, (value,))

    # Branches.

    def _if(self, expr: If, code: BlockBuilder) -> Steps[Expr]:
        condition = self.atom(expr.condition)
        if isinstance(condition, Constant):
            return (yield self.splice(expr.then if condition.value else expr.otherwise, code))
        then = yield self._under(condition, value=True, body=expr.then)
        otherwise = yield self._under(condition, value=False, body=expr.otherwise)
        if then is otherwise and is_atom(then):
            return then
        if _is_truth(then, value=True) and _is_truth(otherwise, value=False):
            return condition
        return rebuild(expr, (condition, then, otherwise))

    def _under(self, condition: Expr, *, value: bool, body: Expr) -> Steps[Expr]:
        """Return a branch, in which the condition is known."""
        before = self.atoms.get(condition)
        self.atoms[condition] = Constant(value, condition.ty, span=condition.span)
        result = yield self.body(body)
        if before is None:
            del self.atoms[condition]
        else:
            self.atoms[condition] = before
        return result

    def _match(self, expr: Match, code: BlockBuilder) -> Steps[Expr]:
        value = self.atom(expr.value)
        decided = decide(expr.clauses, value, self._known)
        if decided.bound is not None:
            for var, atom in decided.bound:
                self.let(var, atom, code)
            return (yield self.splice(decided.clauses[0].body, code))
        clauses = decided.clauses or expr.clauses
        inside: list[Expr] = [value]
        for clause in clauses:
            inside += yield self._clause_of(value, clause)
        kept = expr if len(clauses) == len(expr.clauses) else replace(expr, clauses=clauses)
        return _with_guards_decided(rebuild(kept, inside))

    def _clause_of(self, value: Expr, clause: Clause) -> Steps[list[Expr]]:
        """Return a clause, in which it is known how the value was made."""
        made = _made(clause, value)
        before = self._known.get(value)
        if made is not None:
            self._known[value] = made
        result = yield self.clause(clause)
        if before is not None:
            self._known[value] = before
        elif made is not None:
            del self._known[value]
        return result


def _with_guards_decided(expr: Expr) -> Expr:
    """Return a match without guards that are known, and without clauses whose guard is False."""
    assert isinstance(expr, Match)
    clauses: list[Clause] = []
    for clause in expr.clauses:
        if isinstance(clause.guard, Constant):
            if clause.guard.value:
                clauses.append(replace(clause, guard=None))
        else:
            clauses.append(clause)
    if not clauses or clauses == list(expr.clauses):
        return expr
    return replace(expr, clauses=tuple(clauses))


def _made(clause: Clause, value: Expr) -> Expr | None:
    """Return how a value was made if a clause of one level matches it."""
    pattern = clause.pattern
    if not isinstance(value, Var) or not isinstance(pattern, ConstructorPattern | TuplePattern):
        return None
    fields = [f.var for f in pattern.fields if isinstance(f, BindPattern) and f.inner is None]
    if len(fields) != len(pattern.fields):
        return None
    if isinstance(pattern, TuplePattern):
        return Tuple(tuple(fields), value.ty, span=value.span)
    callee = Constructor(pattern.adt, pattern.name, span=value.span)
    return Call(callee, tuple(fields), ty=value.ty, span=value.span)


def _is_truth(expr: Expr, *, value: bool) -> bool:
    return isinstance(expr, Constant) and expr.value is value
