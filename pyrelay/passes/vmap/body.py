"""The code of one function for a batch of elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol, assert_never, final

from ...diagnostics.catalogue.batching import BatchedCell, BatchedStructure, CannotBatch
from ...ir.dims import Dim
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
from ...ir.types import AdtType, RefType, TupleType, Type, show
from ...operators.builder import Builder, Value
from ...operators.primitive.compare import logical_and, logical_not
from ..batching import Mask, batched, is_any
from ..batching.rows import Rows
from .frame import Found, Frame
from .host import HOST_RULES
from .lanes import blank, chosen, if_any, is_cheap, is_plain, positions, scattered
from .patterns import tested, tests_batched
from .reasons import why_not

if TYPE_CHECKING:
    from ...diagnostics.diagnostic import Problem
    from ...diagnostics.source import Span
    from .data import Batches


def joined(left: Mask, right: Mask) -> Mask:
    """Return the mask of what is batched in one of two values of a type."""
    if isinstance(left, tuple):
        assert isinstance(right, tuple)
        return tuple(map(joined, left, right))
    return left or right


class Instances(Protocol):
    """The interface of the code of one function to the code of the others."""

    def callee(self, name: str, masks: tuple[Mask, ...]) -> tuple[str, Mask]:
        """Return the function that computes a function for a batch, and what it returns batched, as
        far as is known."""
        ...

    def join(self, place: Expr, mask: Mask) -> Mask:
        """Return what is batched of the value of branches, as far as is known, which grows by
        `mask`."""
        ...

    def cell(self, ty: RefType, mask: Mask) -> Mask:
        """Return what is batched in cells of a type, which grows by `mask`."""
        ...

    def report(self, problem: Problem) -> None:
        """Take note of what cannot be batched."""
        ...


@final
class Body:
    """Writes the code of one function, once for each set of batched parameters."""

    def __init__(self, instances: Instances, batches: Batches) -> None:
        self._instances: Final = instances
        self._batches: Final = batches

    # Bodies end in tails, so that a loop stays one.

    def tail(self, expr: Expr, frame: Frame, place: Expr) -> Steps[Expr]:
        """Return a body, or an arm, whose value is batched where those of `place` are."""
        expr = yield self._bindings(expr, frame)
        wanted = self._instances.join(place, self._batches.none(type_of(expr)))
        match expr:
            case If(condition) if not frame.find(condition)[1]:
                then = yield self.tail(expr.then, frame.inside(), place)
                otherwise = yield self.tail(expr.otherwise, frame.inside(), place)
                ty = self._batches.type(type_of(expr), wanted, frame.count)
                test = frame.find(condition)[0].atom
                made = replace(expr, condition=test, then=then, otherwise=otherwise, ty=ty)
                return _closed(frame.builder, made)
            case Match() if not self._is_by_lanes(expr, frame):
                made = yield self._plain_match(expr, frame, place)
                return _closed(frame.builder, made)
            case Call(GlobalVar() as callee):
                call, mask = self._global(expr, callee, frame)
                if self._instances.join(place, mask) == mask:
                    return _closed(frame.builder, call)
                value = frame.builder.bind(call, "r")
            case _:
                value, mask = yield self._value(expr, frame)
        wanted = self._instances.join(place, mask)
        return frame.builder.block(self._as(value, type_of(expr), mask, wanted, frame.count))

    def _bindings(self, expr: Expr, frame: Frame) -> Steps[Expr]:
        """Write the bindings of a body; return what it ends in."""
        while isinstance(expr, LetBlock):
            for binding in expr.bindings:
                frame.bind(binding.var, (yield self._value(binding.value, frame)))
            expr = expr.body
        return expr

    def _as(self, value: Value, ty: Type, mask: Mask, wanted: Mask, count: Dim) -> Value:
        """Return a value with more of it batched."""
        if mask == wanted:
            return value
        if isinstance(ty, TupleType):
            assert isinstance(mask, tuple)
            assert isinstance(wanted, tuple)
            each = enumerate(zip(ty.fields, mask, wanted, strict=True))
            return value.builder.tuple(
                [self._as(value[i], t, m, w, count) for i, (t, m, w) in each]
            )
        return self._batches.repeated(value, ty, mask, count)

    # Values.

    def _value(self, expr: Expr, frame: Frame) -> Steps[Found]:
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
        found = [frame.find(a) for a in call.args]
        values, masks = [v for v, _ in found], [m for _, m in found]
        ty, builder = type_of(call), frame.builder
        if not any(map(is_any, masks)):
            atoms = tuple(v.atom for v in values)
            return builder.bind(replace(call, args=atoms), op.name), self._batches.none(ty)
        if op in HOST_RULES:
            value, is_batched = HOST_RULES[op](Rows(builder, call, values, masks, frame.count))
            return value, self._batches.full(ty) if is_batched else self._batches.none(ty)
        whole = batched(builder, call, values, masks, frame.count)
        if whole is None:
            self._instances.report(CannotBatch(call.span, *why_not(op)))
            return self._missing(ty, frame)
        return whole, _everything(ty)

    def _missing(self, ty: Type, frame: Frame) -> Found:
        """Return a value in the place of one that cannot be computed, which has been reported."""
        mask = self._batches.full(ty)
        var = Var("missing", self._batches.type(ty, mask, frame.count), span=frame.builder.span)
        return frame.builder.value(var), mask

    def _construct(self, call: Call, callee: Constructor, frame: Frame) -> Found:
        found = [frame.find(a) for a in call.args]
        ty = type_of(call)
        assert isinstance(ty, AdtType)
        if not any(is_any(m) for _, m in found):
            values = [v for v, _ in found]
            return frame.builder.construct(callee.adt, callee.name, values, ty), False
        wanted = self._batches.fields(ty, callee.name)
        values = [
            self._as(v, t, m, self._batches.full(t), frame.count)
            for (v, m), t in zip(found, wanted, strict=True)
        ]
        adt, name = self._batches.constructor(callee.adt, callee.name)
        made = self._batches.type(ty, mask=True, count=frame.count)
        return frame.builder.construct(adt, name, values, made), True

    def _global(self, call: Call, callee: GlobalVar, frame: Frame) -> tuple[Call, Mask]:
        """Return a call of a function as one of the function for a batch."""
        found = [frame.find(a) for a in call.args]
        masks = tuple(m for _, m in found)
        atoms = tuple(v.atom for v, _ in found)
        if not any(map(is_any, masks)):
            return replace(call, args=atoms), self._batches.none(type_of(call))
        name, mask = self._instances.callee(callee.name, masks)
        size = frame.builder.size(frame.count)
        ty = self._batches.type(type_of(call), mask, frame.count)
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
            self._instances.report(BatchedCell(expr.span, _IN_ARM))
        match expr:
            case RefCreate(content):
                value, mask = frame.find(content)
                ty = type_of(expr)
                assert isinstance(ty, RefType)
                wanted = self._instances.cell(ty, mask)
                held = self._as(value, ty.value, mask, wanted, frame.count)
                return builder.bind(replace(expr, value=held.atom, ty=RefType(held.ty))), wanted
            case RefRead(ref):
                value, mask = frame.find(ref)
                ty = self._batches.type(type_of(expr), mask, frame.count)
                return builder.bind(replace(expr, ref=value.atom, ty=ty)), mask
            case RefWrite(ref, content):
                cell, known = frame.find(ref)
                value, mask = frame.find(content)
                ty = type_of(ref)
                assert isinstance(ty, RefType)
                wanted = joined(self._instances.cell(ty, mask), known)
                if wanted == known:
                    held = self._as(value, ty.value, mask, wanted, frame.count)
                    written = replace(expr, ref=cell.atom, value=held.atom)
                    return builder.bind(written), ()
                self._instances.report(BatchedCell(expr.span, _SHARED))
                return builder.unit(), ()
            case _:
                assert_never(expr)

    # Branches.

    def _if(self, expr: If, frame: Frame) -> Steps[Found]:
        test, mask = frame.find(expr.condition)
        if not mask:
            wanted = self._instances.join(expr, self._batches.none(type_of(expr)))
            then = yield self.tail(expr.then, frame.inside(), expr)
            otherwise = yield self.tail(expr.otherwise, frame.inside(), expr)
            ty = self._batches.type(type_of(expr), wanted, frame.count)
            made = replace(expr, condition=test.atom, then=then, otherwise=otherwise, ty=ty)
            return frame.builder.bind(made, "if"), wanted
        arms = (expr.then, expr.otherwise)
        ty = type_of(expr)
        if all(map(is_cheap, arms)):
            then = yield self._whole(expr.then, frame, ty)
            otherwise = yield self._whole(expr.otherwise, frame, ty)
            return chosen(frame.find(expr.condition)[0], then, otherwise), self._batches.full(ty)
        cases = [(test, expr.then, ()), (logical_not(test), expr.otherwise, ())]
        return (yield self._by_lanes(cases, frame, ty, expr.span))

    def _whole(self, arm: Expr, frame: Frame, ty: Type) -> Steps[Value]:
        """Write an arm for all elements of a frame; return its value, all of it batched."""
        value, mask = yield self._value((yield self._bindings(arm, frame)), frame)
        return self._as(value, ty, mask, self._batches.full(ty), frame.count)

    def _by_lanes(
        self,
        cases: Sequence[tuple[Value, Expr, Sequence[tuple[Var, Found]]]],
        frame: Frame,
        ty: Type,
        span: Span,
    ) -> Steps[Found]:
        """Write arms, each for the elements for which a test holds: of the tests one holds for each
        element. What an arm binds comes with it."""
        if not is_plain(ty):
            self._instances.report(BatchedStructure(span, show(ty)))
            return self._missing(ty, frame)
        builder, full = frame.builder, self._batches.full(ty)
        merged = blank(builder, self._batches.type(ty, full, frame.count))
        for test, arm, bound in cases:
            builder.span = span
            for var, found in bound:
                frame.bind(var, found)
            places = positions(builder.value(test.atom))
            inner = frame.inside(places.shape[0], places)
            part = yield self._whole(arm, inner, ty)
            outside = (inner.builder.value(v.atom) for v in (merged, places))
            whole = scattered(next(outside), part, next(outside))
            code = inner.builder.block(whole)
            merged = if_any(builder, places.shape[0], code, merged)
        return merged, full

    # Matches.

    def _is_by_lanes(self, expr: Match, frame: Frame) -> bool:
        """Return whether elements may take different clauses of a match."""
        _, mask = frame.find(expr.value)
        ty = type_of(expr.value)
        return any(tests_batched(c.pattern, ty, mask, self._batches) for c in expr.clauses)

    def _match(self, expr: Match, frame: Frame) -> Steps[Found]:
        if self._is_by_lanes(expr, frame):
            return (yield self._lanes_of_match(expr, frame))
        made = yield self._plain_match(expr, frame, expr)
        wanted = self._instances.join(expr, self._batches.none(type_of(expr)))
        return frame.builder.bind(made, "match"), wanted

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
                found, is_batched = yield self._value(
                    (yield self._bindings(clause.guard, guarding)), guarding
                )
                if is_any(is_batched):
                    what = "a guard that differs between elements"
                    self._instances.report(
                        CannotBatch(clause.guard.span, what, _GUARD, "test in the arm, with `if`")
                    )
                guard = guarding.builder.block(found)
            clauses.append(Clause(pattern, (yield self.tail(clause.body, inner, place)), guard))
        wanted = self._instances.join(place, self._batches.none(type_of(expr)))
        ty = self._batches.type(type_of(expr), wanted, frame.count)
        return replace(expr, value=value.atom, clauses=tuple(clauses), ty=ty)

    def _pattern(self, pattern: Pattern, ty: Type, mask: Mask, frame: Frame) -> Pattern:
        """Return a pattern for values of which some are batched, its variables bound."""
        match pattern:
            case BindPattern(var, inner):
                batched_type = self._batches.type(ty, mask, frame.count)
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
                types = self._batches.fields(ty, name)
                choose = self._batches.full if mask else self._batches.none
                inside = tuple(
                    self._pattern(p, t, choose(t), frame)
                    for p, t in zip(fields, types, strict=True)
                )
                if not mask:
                    return replace(pattern, fields=inside)
                adt, name = self._batches.constructor(adt, name)
                return ConstructorPattern(adt, name, inside, span=pattern.span)
            case _:
                return pattern

    def _lanes_of_match(self, expr: Match, frame: Frame) -> Steps[Found]:
        """Write a match by numbers that differ between elements: the first clause that fits."""
        value = frame.find(expr.value)
        ty = type_of(expr.value)
        left: Value | None = None
        cases: list[tuple[Value, Expr, Sequence[tuple[Var, Found]]]] = []
        for clause in expr.clauses:
            test, bound = tested(clause.pattern, value, frame, ty)
            if clause.guard is not None or test is None:
                what = "this match by numbers that differ between elements"
                self._instances.report(CannotBatch(clause.pattern.span, what, _MATCH, _IF))
                return self._missing(type_of(expr), frame)
            here = test if left is None else logical_and(left, test)
            cases.append((here, clause.body, bound))
            rest = logical_not(test)
            left = rest if left is None else logical_and(left, rest)
        return (yield self._by_lanes(cases, frame, type_of(expr), expr.span))


_SHARED: Final = "the cell is the same for all elements"
_IN_ARM: Final = "elements take different arms here"
_GUARD: Final = "a guard chooses one clause for the whole batch"
_MATCH: Final = "only numbers, and tuples of them, choose a clause for each element"
_IF: Final = "test the numbers with `if`"


def _everything(ty: Type) -> Mask:
    return tuple(map(_everything, ty.fields)) if isinstance(ty, TupleType) else True


def _closed(builder: Builder, tail: Expr) -> Expr:
    """Return everything built so far, ending in a tail."""
    if not builder.bindings:
        return tail
    return LetBlock(tuple(builder.bindings), tail, Flavour.PURE, ty=tail.ty, span=builder.span)
