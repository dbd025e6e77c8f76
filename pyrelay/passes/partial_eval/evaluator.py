"""The evaluator: bodies in A-normal form, run as far as values are known.

It walks a body in order of evaluation. What is known is computed, the rest is emitted. A branch on
an unknown value becomes a branch of the residual program. Where its arms give different data, what
follows in the function is evaluated once for each arm, so that it is known which (continuations are
pushed into arms, a bounded number of times); else the arms are joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Protocol, final

from ...diagnostics.source import NOWHERE
from ...ir.block_builder import BlockBuilder
from ...ir.effect import Effects, own_effect
from ...ir.expr import (
    Binding,
    Call,
    Clause,
    Constant,
    Constructor,
    Expr,
    Flavour,
    Function,
    GlobalVar,
    If,
    LetBlock,
    Match,
    Pattern,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGet,
    TuplePattern,
    Var,
    Wildcard,
    is_atom,
    type_of,
)
from ...ir.op import Effect, Op
from ...ir.traverse import Steps, children, rebuild, spine
from ...ir.types import TupleType, Type
from .activation import Activation
from .branches import Arm, Branches, Result, Tail
from .cells import reference
from .joins import closing, held_after, in_tail_position, join
from .operators import Operators
from .patterns import Opened, Path, Projected, opened, projected, unknown_parts
from .residual import Facts, Residual
from .rows import of_rows
from .values import Known, Made, Unknown, Value, differ, made

MAX_FOLLOWING: Final = 10
"""How many bindings may follow a branch for them to be copied into its arms."""
MAX_PUSHED: Final = 500
"""How many bindings of a residual function may be copied into arms in all."""


class Calls(Protocol):
    """Evaluates calls of global functions."""

    def call(
        self, call: Call, args: Sequence[Value], around: Activation, code: BlockBuilder, tail: bool
    ) -> Steps[Result]:
        """Return the value of a call, or the residual call in tail position."""
        ...

    def mentioned(self, name: str) -> None:
        """Note that a function is used as a value."""
        ...


@final
class Evaluator:
    """Evaluates bodies; `calls` is set once, by what evaluates calls with it."""

    calls: Calls

    def __init__(self, residual: Residual, operators: Operators, effects: Effects) -> None:
        self.residual: Final = residual
        self.facts = Facts()
        self.pushed = 0
        """How many bindings of the residual function have been copied into arms of branches."""
        self.steps = 0
        """How many nodes have been evaluated."""
        self._operators: Final = operators
        self._effects: Final = effects

    # Bodies.

    def body(
        self, expr: Expr, around: Activation, code: BlockBuilder, *, tail: bool
    ) -> Steps[Result]:
        """Evaluate a body; emit what is left of it. In tail position a call or a branch may be its
        end."""
        blocks, end = spine(expr)
        items = [
            item
            for block in blocks
            for item in ((block,) if block.flavour is Flavour.REC else block.bindings)
        ]
        return (yield self._from(items, 0, end, around, code, tail))

    def _from(
        self,
        items: Sequence[Binding | LetBlock],
        start: int,
        end: Expr,
        around: Activation,
        code: BlockBuilder,
        tail: bool,
    ) -> Steps[Result]:
        """Evaluate a body from one of its bindings on."""
        for index in range(start, len(items)):
            item = items[index]
            if isinstance(item, LetBlock):
                yield self._functions(item.bindings, around, code)
                continue
            if isinstance(item.value, If | Match):
                found = yield self._branches(item.value, around, code)
                then = end if index + 1 == len(items) else items[index + 1]
                is_short = len(items) - index <= MAX_FOLLOWING
                if (
                    is_short
                    and isinstance(found, Branches)
                    and self._is_pushed(found, item.var, then)
                ):
                    return (yield self._pushed(found, items, index, end, around, code, tail))
                if isinstance(found, Branches):
                    found = yield self._joined(found, code)
            else:
                found = yield self.node(item.value, around, code, tail=False)
            assert not isinstance(found, Tail)
            self.assign(item.var, found, around, code)
        return (yield self._end(end, around, code, tail))

    def _end(self, end: Expr, around: Activation, code: BlockBuilder, tail: bool) -> Steps[Result]:
        if not isinstance(end, If | Match):
            return (yield self.node(end, around, code, tail=tail))
        found = yield self._branches(end, around, code, tail=tail)
        if not isinstance(found, Branches):
            return found
        return in_tail_position(self.residual, found) if tail else (yield self._joined(found, code))

    def assign(self, var: Var, value: Value, around: Activation, code: BlockBuilder) -> None:
        """Let a variable of a function have a value."""
        around.learn_from([(var, value)])
        ty = around.types.type(var.ty)
        assert ty is not None
        around.values[var] = self.residual.narrowed(value, ty, code)

    def atom(self, expr: Expr, around: Activation) -> Value:
        """Return the value of an atom, with what the branches around have shown of it."""
        if isinstance(expr, Var):
            value = around.values[expr]
        elif isinstance(expr, GlobalVar):
            self.calls.mentioned(expr.name)
            value = Unknown(around.types.node(expr))
        elif isinstance(expr, Constant):
            value = Known(expr)
        elif isinstance(expr, Constructor):
            value = Unknown(around.types.node(expr))
        else:
            value = made(expr, None, ())
        if isinstance(value, Unknown):
            return self.facts.learned.get(value.atom, value)
        return value

    # Nodes.

    def node(
        self, expr: Expr, around: Activation, code: BlockBuilder, *, tail: bool
    ) -> Steps[Result]:
        """Evaluate a node that is no branch."""
        self.steps += 1
        if is_atom(expr):
            return self.atom(expr, around)
        match expr:
            case Call(GlobalVar()):
                args = [self.atom(a, around) for a in expr.args]
                return (yield self.calls.call(expr, args, around, code, tail))
            case Function():
                return Unknown((yield self._function(expr, around, code)).atom)
            case Call(Constructor()) | Tuple():
                return self._construction(expr, around, code)
            case TupleGet(value, index):
                whole = self.atom(value, around)
                if isinstance(whole, Made):
                    return whole.fields[index]
                return self._emitted(expr, around, code)
            case RefCreate() | RefRead() | RefWrite():
                return self._reference(expr, around, code)
            case Call(Op()):
                return self._operator(expr, around, code)
            case Call():
                value = self._unknown_call(expr, around)
                return Tail(value) if tail else self.residual.bind("t", value, code)
            case _:
                return self._emitted(expr, around, code)

    def _construction(self, expr: Call | Tuple, around: Activation, code: BlockBuilder) -> Value:
        parts = expr.fields if isinstance(expr, Tuple) else expr.args
        fields = [self.atom(part, around) for part in parts]
        callee = expr.callee if isinstance(expr, Call) else None
        if isinstance(callee, Constructor):
            callee = around.types.node(callee)
        assert callee is None or isinstance(callee, Constructor)
        place = around.types.span(expr)
        return self.residual.construct(callee, fields, around.type(expr), place, code)

    def _operator(self, expr: Call, around: Activation, code: BlockBuilder) -> Value:
        call = self._with_atoms(expr, around)
        assert isinstance(call, Call)
        values = [self.atom(a, around) for a in expr.args]
        rows = of_rows(self.residual, call, values, code)
        if rows is not None:
            return rows
        found = self._operators.simplified(call, self.residual.definitions)
        if is_atom(found):
            known = self.residual.value(found)
            return self.facts.learned.get(found, known) if isinstance(known, Unknown) else known
        assert isinstance(call.callee, Op)
        if own_effect(call) & Effect.STATE:
            self.facts.cells.clear()
        return self.residual.bind(call.callee.name, found, code)

    def _with_atoms(self, expr: Expr, around: Activation) -> Expr:
        """Return a node with the atoms of the residual program."""
        atoms = [self.atom(c, around).atom for c in children(expr)]
        return rebuild(around.types.node(expr), atoms)

    def _emitted(self, expr: Expr, around: Activation, code: BlockBuilder) -> Value:
        return self.residual.bind("t", self._with_atoms(expr, around), code)

    def _unknown_call(self, expr: Call, around: Activation) -> Expr:
        """Return the call of a function that is not known: it may be any that escapes."""
        self.facts.cells.clear()
        return self._with_atoms(expr, around)

    def _reference(
        self, expr: RefCreate | RefRead | RefWrite, around: Activation, code: BlockBuilder
    ) -> Value:
        parts = [self.atom(c, around) for c in children(expr)]
        node = rebuild(around.types.node(expr), [p.atom for p in parts])
        assert isinstance(node, RefCreate | RefRead | RefWrite)
        return reference(self.residual, self.facts.cells, node, parts[-1], code)

    # Functions that stay functions.

    def _function(self, function: Function, around: Activation, code: BlockBuilder) -> Steps[Value]:
        """Emit a local function, its body evaluated for unknown arguments."""
        residual = yield self._residual_function(function, around)
        return self.residual.bind(function.name or "f", residual, code)

    def _residual_function(self, function: Function, around: Activation) -> Steps[Function]:
        before, self.facts = self.facts, Facts(dict(self.facts.learned), {}, self.facts.level + 1)
        inside = BlockBuilder()
        params = tuple(map(around.fresh, function.params))
        for old, new in zip(function.params, params, strict=True):
            around.values[old] = self.residual.value(new)
        node = around.types.node(replace(function, params=params))
        assert isinstance(node, Function)
        result = yield self.body(function.body, around, inside, tail=True)
        self.facts = before
        body = inside.close(closing(self.residual, result, around.type(function.body), inside))
        return replace(node, params=params, body=body)

    def _functions(
        self, bindings: Sequence[Binding], around: Activation, code: BlockBuilder
    ) -> Steps[None]:
        for binding in bindings:
            around.values[binding.var] = Unknown(around.fresh(binding.var))
        found: list[Binding] = []
        for binding in bindings:
            assert isinstance(binding.value, Function)
            function = yield self._residual_function(binding.value, around)
            var = around.values[binding.var].atom
            assert isinstance(var, Var)
            found.append(Binding(var, function))
        code.bind_rec(found)

    # Branches.

    def _branches(
        self, expr: If | Match, around: Activation, code: BlockBuilder, *, tail: bool = False
    ) -> Steps[Result | Branches]:
        """Evaluate a branch whose arm is known; else return its arms, evaluated."""
        if isinstance(expr, If):
            return (yield self._if(expr, around, code, tail))
        return (yield self._match(expr, around, code, tail))

    def _if(
        self, expr: If, around: Activation, code: BlockBuilder, tail: bool
    ) -> Steps[Result | Branches]:
        condition = self.atom(expr.condition, around)
        if isinstance(condition, Known):
            taken = expr.then if condition.atom.value else expr.otherwise
            return (yield self.body(taken, around, code, tail=tail))
        atom = condition.atom
        arms: list[Arm] = []
        for value, body in ((True, expr.then), (False, expr.otherwise)):
            learned = Known(Constant(value, atom.ty, span=atom.span))
            arm = yield self._arm(body, {atom: learned}, BlockBuilder(), around, tail)
            arms.append(arm)
        node = around.types.node(expr)

        def make(bodies: Sequence[Expr], ty: Type) -> Expr:
            assert isinstance(node, If)
            return replace(node, condition=atom, then=bodies[0], otherwise=bodies[1], ty=ty)

        return Branches(tuple(arms), make, around.type(expr), expr.span)

    def _arm(
        self,
        body: Expr,
        learned: dict[Expr, Value],
        code: BlockBuilder,
        around: Activation,
        tail: bool,
    ) -> Steps[Arm]:
        before, self.facts = self.facts, self.facts.inside()
        self.facts.learned.update(learned)
        result = yield self.body(body, around, code, tail=tail)
        arm = Arm(code, result, self.facts)
        self.facts = before
        return arm

    def _match(
        self, expr: Match, around: Activation, code: BlockBuilder, tail: bool
    ) -> Steps[Result | Branches]:
        value = self.atom(expr.value, around)
        clauses = projected(expr.clauses, value, self.facts.learned)
        if not clauses:  # no clause of a partial match is left: it fails where it stands
            return self._emitted(replace(expr, clauses=()), around, code)
        first = clauses[0]
        if first.is_sure and first.clause.guard is None:
            self._bind(first, around, code)
            return (yield self.body(first.clause.body, around, code, tail=tail))
        return (yield self._residual_match(expr, clauses, around, code, tail))

    def _residual_match(
        self,
        expr: Match,
        clauses: Sequence[Projected],
        around: Activation,
        code: BlockBuilder,
        tail: bool,
    ) -> Steps[Result | Branches]:
        """Evaluate a match on the unknown parts of a value."""
        parts = unknown_parts(clauses)
        arms: list[Arm] = []
        kept: list[Clause] = []
        for each in clauses:
            found = yield self._clause(each, list(parts), around, tail)
            if found is None:
                continue
            arm, clause = found
            arms.append(arm)
            kept.append(clause)
            if each.is_sure and clause.guard is None:
                break
        if len(arms) == 1 and clauses[-1].is_sure and kept[0].guard is None and not parts:
            return self._entered(arms[0], code)
        atoms = [v.atom for v in parts.values()]
        ty = TupleType(tuple(map(type_of, atoms)))
        whole: Expr = Tuple(tuple(atoms), ty, span=expr.span)
        if len(atoms) == 1:
            whole = atoms[0]
        elif atoms:
            whole = self.residual.bind("parts", whole, code).atom
        node = around.types.node(replace(expr, value=whole, clauses=()))

        def make(bodies: Sequence[Expr], ty: Type) -> Expr:
            assert isinstance(node, Match)
            arms = tuple(replace(c, body=b) for c, b in zip(kept, bodies, strict=True))
            return replace(node, clauses=arms, ty=ty)

        return Branches(tuple(arms), make, around.type(expr), expr.span)

    def _entered(self, arm: Arm, code: BlockBuilder) -> Result:
        """Continue with what is known in the one arm that is taken."""
        code.extend(arm.code)
        arm.facts.level -= 1
        self.facts = arm.facts
        return arm.result

    def _clause(
        self, each: Projected, paths: Sequence[Path], around: Activation, tail: bool
    ) -> Steps[tuple[Arm, Clause] | None]:
        """Evaluate a clause of a residual match; None if its guard cannot hold."""
        code, clause = BlockBuilder(), each.clause
        before, self.facts = self.facts, self.facts.inside()
        patterns: list[Pattern] = []
        for path in paths:
            if path not in each.rest:
                patterns.append(Wildcard(span=clause.pattern.span))
                continue
            value, pattern = each.rest[path]
            found = self._opened(pattern, value, around)
            patterns.append(found.pattern)
            if found.value is not None:
                self.facts.learned[value.atom] = found.value
        self._bind(each, around, code)
        guard = yield self._guard(clause, around, before)
        if guard is _NEVER:
            self.facts = before
            return None
        result = yield self.body(clause.body, around, code, tail=tail)
        arm = Arm(code, result, self.facts)
        self.facts = before
        span = clause.pattern.span
        if len(patterns) == 1:
            whole = patterns[0]
        else:
            whole = TuplePattern(tuple(patterns), span=span) if patterns else Wildcard(span=span)
        return arm, Clause(whole, clause.body, guard)

    def _bind(self, each: Projected, around: Activation, code: BlockBuilder) -> None:
        """Let the variables of a pattern have the known parts of the value that it matches."""
        around.learn_from(each.bound)
        for var, value in each.bound:
            found = value
            if isinstance(value, Unknown):
                found = self.facts.learned.get(value.atom, value)
            self.assign(var, found, around, code)

    def _opened(self, pattern: Pattern, value: Unknown, around: Activation) -> Opened:
        def bind(var: Var) -> Var:
            new = around.fresh(var)
            around.values[var] = self.residual.value(new)
            return new

        return opened(pattern, value.atom, type_of(value.atom), self.residual, bind)

    def _guard(self, clause: Clause, around: Activation, outside: Facts) -> Steps[Expr | None]:
        """Evaluate a guard; return what is left of it, `_NEVER` if it cannot hold."""
        if clause.guard is None:
            return None
        code = BlockBuilder()
        result = yield self.body(clause.guard, around, code, tail=False)
        assert not isinstance(result, Tail)
        effect = self._effects.of(clause.guard)
        if effect & Effect.STATE:
            outside.cells.clear()
            self.facts.cells.clear()
        if isinstance(result, Known) and effect is Effect.NONE:
            return None if result.atom.value else _NEVER
        self.facts.learned[result.atom] = Known(
            Constant(True, result.atom.ty, span=result.atom.span)
        )
        return code.close(result.atom)

    # After branches.

    def _is_pushed(self, found: Branches, var: Var, then: Expr | Binding) -> bool:
        """Return whether what follows a branch is worth evaluating for each arm: they give data
        that is known, and not alike, or decide the branch that comes next."""
        if self.pushed >= MAX_PUSHED:
            return False
        values = [a.value for a in found.arms if self.residual.diverges(a.value) is None]
        node = then.value if isinstance(then, Binding) else then
        if isinstance(node, If) and node.condition is var:
            return all(isinstance(v, Known) for v in values)
        return differ(values)

    def _pushed(
        self,
        found: Branches,
        items: Sequence[Binding | LetBlock],
        index: int,
        end: Expr,
        around: Activation,
        code: BlockBuilder,
        tail: bool,
    ) -> Steps[Result]:
        """Evaluate what follows a branch inside each of its arms."""
        self.pushed += (len(items) - index) * (len(found.arms) - 1)
        item = items[index]
        assert isinstance(item, Binding)
        arms: list[Arm] = []
        before = self.facts
        for arm in found.arms:
            self.facts = arm.facts
            self.assign(item.var, arm.value, around, arm.code)
            result = yield self._from(items, index + 1, end, around, arm.code, tail)
            arms.append(Arm(arm.code, result, self.facts))
        self.facts = before
        after = replace(found, arms=tuple(arms), ty=around.type(end))
        return in_tail_position(self.residual, after) if tail else (yield self._joined(after, code))

    def _joined(self, found: Branches, code: BlockBuilder) -> Steps[Value]:
        self.facts.cells = held_after(found, self.facts.cells)
        return (yield join(self.residual, found, code))


_NEVER: Final = Constant(False, span=NOWHERE)
"""Stands for a guard that cannot hold."""
