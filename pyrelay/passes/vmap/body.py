"""The code of one function for a batch of elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol, assert_never, final

from ...diagnostics.catalogue.batching import BatchedCell, BatchedStructure, CannotBatch
from ...ir.expr import (
    BindPattern,
    Call,
    Clause,
    Constructor,
    ConstructorPattern,
    Expr,
    Flavour,
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
    is_atom,
    type_of,
)
from ...ir.op import Op
from ...ir.traverse import Steps
from ...ir.types import BOOL, AdtType, RefType, TupleType, Type, show
from ...operators.builder import Builder, Value
from ...operators.host.shadow import shadow
from ..batching import batched, rows
from ..batching.rows import RowsCall
from .arms import Arm, Arms, Fits, Holds, Test, subject
from .frame import Found, Frame
from .host import HOST_RULES
from .lanes import chosen, is_cheap
from .masks import MIXED, Mask, is_any, is_mixed, joined, rows_of
from .patterns import exclude_each_other, tests_batched
from .reasons import why_not

if TYPE_CHECKING:
    from ...diagnostics.diagnostic import Problem
    from .mixtures import Mixtures


class Instances(Protocol):
    """The interface of the code of one function to the code of the others."""

    def callee(self, name: str, masks: tuple[Mask, ...]) -> tuple[str, Mask]:
        """Return the function that computes a function for a batch, and what it returns batched, as
        far as is known."""
        ...

    def join(self, place: Expr, mask: Mask) -> Mask:
        """Return the mask of the value of branches, as far as it is known, which grows by
        `mask`."""
        ...

    def cell(self, ty: RefType, mask: Mask) -> Mask:
        """Return the mask of the contents of cells of a type, sizes aside, which grows by
        `mask`."""
        ...

    def has_batched_shadows(self, name: str) -> bool:
        """Return whether a function, or one that it calls, finds shadows of cells that hold a
        cotangent for each element, though nothing that it takes does."""
        ...

    def report(self, problem: Problem) -> None:
        """Take note of what cannot be batched."""
        ...


@final
class Body:
    """Writes the code of one function, once for each set of batched parameters."""

    def __init__(self, instances: Instances, batches: Mixtures) -> None:
        self._instances: Final = instances
        self._batches: Final = batches
        self._forms: Final = batches.forms

    # Bodies end in tails, so that a loop stays one.

    def tail(self, expr: Expr, frame: Frame, place: Expr) -> Steps[Expr]:
        """Return a body, or an arm, whose value is batched where those of `place` are."""
        expr = yield self._bindings(expr, frame)
        wanted = self._instances.join(place, self._forms.none(type_of(expr)))
        match expr:
            case If(condition) if not frame.find(condition)[1]:
                then = yield self.tail(expr.then, frame.inside(), place)
                otherwise = yield self.tail(expr.otherwise, frame.inside(), place)
                ty = self._forms.type(type_of(expr), wanted, frame.count)
                test = frame.find(condition)[0].atom
                made = replace(expr, condition=test, then=then, otherwise=otherwise, ty=ty)
                return _closed(frame.builder, made)
            case Match() if not (yield self._is_by_lanes(expr, frame)):
                made = yield self._plain_match(expr, frame, place)
                return _closed(frame.builder, made)
            case Call(GlobalVar() as callee):
                call, mask = self._global(expr, callee, frame)
                if self._instances.join(place, mask) == mask:
                    return _closed(frame.builder, call)
                value = frame.builder.bind(call, "r")
            case _:
                value, mask = yield self.value(expr, frame)
        wanted = self._instances.join(place, mask)
        return frame.builder.block(
            self._batches.widened(value, type_of(expr), mask, wanted, frame.count)
        )

    def _bindings(self, expr: Expr, frame: Frame) -> Steps[Expr]:
        """Write the bindings of a body; return what it ends in."""
        while isinstance(expr, LetBlock):
            for binding in expr.bindings:
                frame.bind(binding.var, (yield self.value(binding.value, frame)))
            expr = expr.body
        return expr

    # Values.

    def value(self, expr: Expr, frame: Frame) -> Steps[Found]:
        """Write a value into a frame."""
        frame.builder.span = expr.span
        match expr:
            case _ if is_atom(expr):
                return frame.find(expr)
            case Call(Op() as op):
                return self._operator(expr, op, frame)
            case Call(Constructor() as callee):
                return self._construct(expr, callee, frame)
            case Call(GlobalVar() as callee):
                call, mask = self._global(expr, callee, frame)
                return frame.builder.bind(call, "r"), mask
            case Tuple(fields):
                found = [frame.find(f) for f in fields]
                return frame.builder.tuple([v for v, _ in found]), tuple(m for _, m in found)
            case TupleGet(source, index):
                value, mask = frame.find(source)
                assert isinstance(mask, tuple)
                return value[index], mask[index]
            case If():
                return (yield self._if(expr, frame))
            case Match():
                return (yield self._match(expr, frame))
            case RefCreate() | RefRead() | RefWrite():
                return self._cell(expr, frame)
            case _:
                raise AssertionError(f"no first-order code: {type(expr).__name__}")

    def _operator(self, call: Call, op: Op, frame: Frame) -> Found:
        if op is shadow:
            return self._shadow(call, frame)
        ty, builder = type_of(call), frame.builder
        values: list[Value] = []
        masks: list[rows.Mask] = []
        for arg in call.args:
            value, mask = frame.find(arg)
            values.append(self._batches.uniform_of(value, type_of(arg), mask, frame.count))
            masks.append(rows_of(mask))
        if not any(map(is_any, masks)):
            atoms = tuple(v.atom for v in values)
            return builder.bind(replace(call, args=atoms), op.name), self._forms.none(ty)
        if op in HOST_RULES:
            value, is_batched = HOST_RULES[op](RowsCall(builder, call, values, masks, frame.count))
            return value, self._forms.full(ty) if is_batched else self._forms.none(ty)
        whole = batched(builder, call, values, masks, frame.count)
        if whole is None:
            self._instances.report(CannotBatch(call.span, *why_not(op)))
            return self._missing(ty, frame)
        return whole, _everything(ty)

    def _missing(self, ty: Type, frame: Frame) -> Found:
        """Return a value in the place of one that cannot be computed, which has been reported."""
        mask = self._forms.full(ty)
        var = Var("missing", self._forms.type(ty, mask, frame.count), span=frame.builder.span)
        return frame.builder.value(var), mask

    def _construct(self, call: Call, callee: Constructor, frame: Frame) -> Found:
        found = [frame.find(a) for a in call.args]
        ty = type_of(call)
        assert isinstance(ty, AdtType)
        forms, builder = self._forms, frame.builder
        if not any(is_any(m) for _, m in found):
            values = [v for v, _ in found]
            return builder.construct(callee.adt, callee.name, values, ty), False
        is_one = not any(is_mixed(m) for _, m in found)
        choose = forms.full if is_one else forms.differing
        types = forms.fields(ty, callee.name)
        values = [
            self._batches.widened(v, t, m, choose(t), frame.count)
            for (v, m), t in zip(found, types, strict=True)
        ]
        if not is_one:
            return self._batches.made(builder, ty, callee.name, values, frame.count), MIXED
        adt, name = forms.constructor(callee.adt, callee.name)
        made = forms.type(ty, mask=True, count=frame.count)
        return builder.construct(adt, name, values, made), True

    def _global(self, call: Call, callee: GlobalVar, frame: Frame) -> tuple[Call, Mask]:
        """Return a call of a function as one of the function for a batch."""
        found = [frame.find(a) for a in call.args]
        masks = tuple(m for _, m in found)
        atoms = tuple(v.atom for v, _ in found)
        is_same = not any(map(is_any, masks))
        if is_same and not self._instances.has_batched_shadows(callee.name):
            return replace(call, args=atoms), self._forms.none(type_of(call))
        name, mask = self._instances.callee(callee.name, masks)
        size = frame.builder.size(frame.count)
        ty = self._forms.type(type_of(call), mask, frame.count)
        made = Call(
            GlobalVar(name, span=callee.span),
            (size.atom, *atoms),
            type_args=(*call.type_args, frame.count),
            ty=ty,
            span=call.span,
        )
        return made, mask

    # Cells.

    def _cell(self, expr: RefCreate | RefRead | RefWrite, frame: Frame) -> Found:
        builder = frame.builder
        if not isinstance(expr, RefCreate) and frame.is_around_lanes(expr.ref):
            # A cell that all elements share may be read wherever some of them are.
            is_shared = isinstance(expr, RefRead) and not is_any(frame.find(expr.ref)[1])
            if not is_shared:
                self._instances.report(BatchedCell(expr.span, _IN_ARM))
        match expr:
            case RefCreate(content):
                value, mask = frame.find(content)
                ty = type_of(expr)
                assert isinstance(ty, RefType)
                wanted = self._instances.cell(ty, mask)
                held = self._batches.widened(value, ty.value, mask, wanted, frame.count)
                return builder.bind(replace(expr, value=held.atom, ty=RefType(held.ty))), wanted
            case RefRead(ref):
                value, mask = frame.find(ref)
                ty = self._forms.type(type_of(expr), mask, frame.count)
                return builder.bind(replace(expr, ref=value.atom, ty=ty)), mask
            case RefWrite(ref, content):
                cell, known = frame.find(ref)
                value, mask = frame.find(content)
                ty = type_of(ref)
                assert isinstance(ty, RefType)
                wanted = joined(self._instances.cell(ty, mask), known)
                if wanted == known:
                    held = self._batches.widened(value, ty.value, mask, wanted, frame.count)
                    written = replace(expr, ref=cell.atom, value=held.atom)
                    return builder.bind(written), ()
                self._instances.report(BatchedCell(expr.span, _SHARED))
                return builder.unit(), ()
            case _:
                assert_never(expr)

    def _shadow(self, call: Call, frame: Frame) -> Found:
        """Return the shadow of a cell, which holds a cotangent for each element if any is written
        to such a shadow."""
        ty = type_of(call)
        assert isinstance(ty, RefType)
        (run, _), (cell, in_cell), (zero, mask) = map(frame.find, call.args)
        own = self._forms.full(ty) if is_any(in_cell) else self._forms.none(ty)
        wanted = self._instances.cell(ty, own)
        held = self._batches.widened(zero, ty.value, mask, wanted, frame.count)
        return frame.builder.call(shadow, (run, cell, held)), wanted

    # Branches.

    def _if(self, expr: If, frame: Frame) -> Steps[Found]:
        test, mask = frame.find(expr.condition)
        if not mask:
            wanted = self._instances.join(expr, self._forms.none(type_of(expr)))
            then = yield self.tail(expr.then, frame.inside(), expr)
            otherwise = yield self.tail(expr.otherwise, frame.inside(), expr)
            ty = self._forms.type(type_of(expr), wanted, frame.count)
            made = replace(expr, condition=test.atom, then=then, otherwise=otherwise, ty=ty)
            return frame.builder.bind(made, "if"), wanted
        arms = (expr.then, expr.otherwise)
        ty = type_of(expr)
        if all(map(is_cheap, arms)):
            then = yield self._whole(expr.then, frame, ty)
            otherwise = yield self._whole(expr.otherwise, frame, ty)
            return chosen(frame.find(expr.condition)[0], then, otherwise), self._forms.full(ty)
        condition = subject(frame, (test, mask), BOOL)
        either = Arm((Test(condition),), expr.then), Arm((Test(condition, False),), expr.otherwise)
        return (yield self._by_lanes(either, frame, expr, is_first_taken=False))

    def _whole(self, arm: Expr, frame: Frame, ty: Type) -> Steps[Value]:
        """Write an arm for all elements of a frame; return its value, all of it batched."""
        value, mask = yield self._evaluated(arm, frame)
        return self._batches.widened(value, ty, mask, self._forms.full(ty), frame.count)

    def _evaluated(self, expr: Expr, frame: Frame) -> Steps[Found]:
        return (yield self.value((yield self._bindings(expr, frame)), frame))

    def _by_lanes(
        self, arms: Sequence[Arm], frame: Frame, expr: If | Match, *, is_first_taken: bool
    ) -> Steps[Found]:
        """Write arms that elements take for themselves."""
        ty = type_of(expr)
        if (why := self._forms.why_never_mixed(ty)) is not None:
            self._instances.report(BatchedStructure(expr.span, show(ty), why))
            return self._missing(ty, frame)
        writer = Arms(self._evaluated, self._batches, frame, ty)
        merged = yield writer.merged(arms, is_first_taken=is_first_taken)
        return merged, self._forms.differing(ty)

    # Matches.

    def _is_by_lanes(self, expr: Match, frame: Frame) -> Steps[bool]:
        """Return whether elements may take different clauses of a match."""
        _, mask = frame.find(expr.value)
        ty = type_of(expr.value)
        if any(tests_batched(c.pattern, ty, mask, self._forms) for c in expr.clauses):
            return True
        for clause in expr.clauses:
            if clause.guard is None:
                continue
            trial = frame.inside()
            self._pattern(clause.pattern, ty, mask, trial)
            _, differs = yield self._evaluated(clause.guard, trial)
            if is_any(differs):
                return True
        return False

    def _match(self, expr: Match, frame: Frame) -> Steps[Found]:
        if (yield self._is_by_lanes(expr, frame)):
            return (yield self._match_by_lanes(expr, frame))
        made = yield self._plain_match(expr, frame, expr)
        wanted = self._instances.join(expr, self._forms.none(type_of(expr)))
        return frame.builder.bind(made, "match"), wanted

    def _match_by_lanes(self, expr: Match, frame: Frame) -> Steps[Found]:
        """Write a match of which elements take different clauses."""
        value = subject(frame, frame.find(expr.value), type_of(expr.value))
        arms: list[Arm] = []
        for clause in expr.clauses:
            guards = () if clause.guard is None else (Holds(clause.guard),)
            arms.append(Arm((Fits(clause.pattern, value), *guards), clause.body))
        if expr.partial:
            what = "a match without a clause for every value"
            self._instances.report(CannotBatch(expr.span, what, _PARTIAL, "add `case _`"))
        is_first = not exclude_each_other(expr.clauses, self._forms.is_only_constructor)
        return (yield self._by_lanes(arms, frame, expr, is_first_taken=is_first))

    def _plain_match(self, expr: Match, frame: Frame, place: Expr) -> Steps[Match]:
        """Write a match of which all elements take one clause."""
        value, mask = frame.find(expr.value)
        clauses: list[Clause] = []
        for clause in expr.clauses:
            inner = frame.inside()
            pattern = self._pattern(clause.pattern, type_of(expr.value), mask, inner)
            guard = None
            if clause.guard is not None:
                guarding = inner.inside()
                found, _ = yield self._evaluated(clause.guard, guarding)
                guard = guarding.builder.block(found)
            clauses.append(Clause(pattern, (yield self.tail(clause.body, inner, place)), guard))
        wanted = self._instances.join(place, self._forms.none(type_of(expr)))
        ty = self._forms.type(type_of(expr), wanted, frame.count)
        return replace(expr, value=value.atom, clauses=tuple(clauses), ty=ty)

    def _pattern(self, pattern: Pattern, ty: Type, mask: Mask, frame: Frame) -> Pattern:
        """Return a pattern for values of which some are batched, its variables bound."""
        match pattern:
            case BindPattern(var, inner):
                batched_type = self._forms.type(type_of(var), mask, frame.count)
                new = Var(frame.builder.names.fresh(var.name), batched_type, span=var.span)
                frame.bind(var, (frame.builder.value(new), mask))
                below = None if inner is None else self._pattern(inner, ty, mask, frame)
                return BindPattern(new, below, span=pattern.span)
            case TuplePattern(fields):
                assert isinstance(ty, TupleType)
                assert isinstance(mask, tuple)
                parts = zip(fields, ty.fields, mask, strict=True)
                return replace(
                    pattern, fields=tuple(self._pattern(p, t, m, frame) for p, t, m in parts)
                )
            case ConstructorPattern(adt, name, fields):
                assert isinstance(ty, AdtType)
                types = self._forms.fields(ty, name)
                choose = self._forms.full if mask else self._forms.none
                inside = tuple(
                    self._pattern(p, t, choose(t), frame)
                    for p, t in zip(fields, types, strict=True)
                )
                if not mask:
                    return replace(pattern, fields=inside)
                adt, name = self._forms.constructor(adt, name)
                return ConstructorPattern(adt, name, inside, span=pattern.span)
            case _:
                return pattern


_SHARED: Final = "the cell is the same for all elements"
_IN_ARM: Final = "elements take different arms here"
_PARTIAL: Final = "elements take different clauses, and some may fit none"


def _everything(ty: Type) -> Mask:
    return tuple(map(_everything, ty.fields)) if isinstance(ty, TupleType) else True


def _closed(builder: Builder, tail: Expr) -> Expr:
    """Return everything built so far, ending in a tail."""
    if not builder.bindings:
        return tail
    return LetBlock(tuple(builder.bindings), tail, Flavour.PURE, ty=tail.ty, span=builder.span)
