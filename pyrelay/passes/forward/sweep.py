"""The forward sweep: the code of a function, with the tangents of its values beside it.

A tangent is kept per variable and leaf, as an atom of the new code; a leaf without one is zero. A
branch returns its value in a tuple with tangents, and what stands in tail position stays there, so
a loop stays a loop. The code of the function itself is copied once, with its effects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol, final

from ...ir.expr import (
    Binding,
    BindPattern,
    Call,
    Clause,
    Constructor,
    ConstructorPattern,
    Expr,
    Function,
    GlobalVar,
    If,
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
    type_of,
)
from ...ir.names import Names
from ...ir.op import Op
from ...ir.traverse import Steps, let
from ...ir.types import UNIT, AdtType, FnType, RefType, TupleType, Type
from ...operators.builder import Builder, Value
from ..deriving.bodies import Arm, Body, FunctionBody, Step, subpatterns
from ..deriving.copying import Copier
from ..deriving.cotangents.masks import Masks, bits, join_masks
from ..deriving.instantiation import call_instance, type_arguments
from .operators import push_operator

if TYPE_CHECKING:
    from ...diagnostics.diagnostic import Problem
    from ..deriving.cotangents.cells import Cells
    from ..deriving.workspace import Workspace
    from .instances import Instance
    from .transposed import Transposed


class Tools(Protocol):
    """The interface of a sweep to the derivation it is part of."""

    space: Workspace
    transposed: Transposed
    cells: Cells
    """Those that tangents flow through."""
    problems: list[Problem]

    def instance(self, name: str, varied: int) -> Steps[Instance]:
        """Return the instance of a function for a mask of its parameters."""
        ...


@final
class Sweep:
    """One sweep over one function."""

    def __init__(
        self,
        tools: Tools,
        source: FunctionBody,
        instance: Instance,
        masks: Masks,
        group: Mapping[str, Instance],
    ) -> None:
        self.tools: Final = tools
        self.leaves: Final = tools.space.leaves
        self._source: Final = source
        self._instance: Final = instance
        self._masks: Final = masks
        self._group: Final = group
        self._names: Final = Names()
        self._copier: Final = Copier(self._names)
        self._tangents: Final[dict[tuple[Var, int], Expr]] = {}
        self._touching: Final = tools.space.cell_use.touching(source, tools.cells)
        span = source.function.span
        self._run: Final = Var(self._names.fresh("run"), RefType(UNIT), span=span)

    def function(self) -> Steps[Function]:
        """Return the function that computes the value and the tangents."""
        function, instance = self._source.function, self._instance
        span = function.span.derived(f"derivative of {self._source.name}")
        params = [self._copier.fresh(p) for p in function.params]
        places = [
            (param, leaf, ty)
            for param in function.params
            for leaf, ty in enumerate(self.leaves.of(type_of(param)))
        ]
        for index in bits(instance.varied):
            param, leaf, ty = places[index]
            tangent = Var(self._names.fresh(f"d_{param.name}"), ty, span=span)
            self._tangents[param, leaf] = tangent
            params.append(tangent)
        params += (self._run,) if instance.works_on_cells else ()
        body = yield self._body(self._source.body, instance.moved)
        types, result = tuple(type_of(p) for p in params), type_of(body)
        return Function(
            tuple(params),
            body,
            result,
            function.type_params,
            instance.function,
            function.assumptions,
            ty=FnType(types, result, function.type_params),
            span=span,
        )

    # Tangents.

    def tangent(self, atom: Expr, leaf: int) -> Expr | None:
        """Return the tangent of a leaf of an atom of the source; None for zero."""
        return self._tangents.get((atom, leaf)) if isinstance(atom, Var) else None

    def tangents(self, atom: Expr) -> list[Expr | None]:
        """Return the tangents of all leaves of an atom."""
        return [self.tangent(atom, i) for i in range(self.leaves.width(type_of(atom)))]

    def keep(self, var: Var, tangents: Sequence[Expr | None]) -> None:
        """Let a variable of the source have these tangents."""
        for leaf, tangent in enumerate(tangents):
            if tangent is not None:
                self._tangents[var, leaf] = tangent

    def atom(self, expr: Expr) -> Expr:
        """Return the atom of the new code for one of the source."""
        return self._copier.atom(expr)

    def zero(self, builder: Builder, leaf: Type) -> Value:
        """Return the zero of a leaf."""
        return self.tools.space.cotangents.zero(builder, leaf)

    def _filled(self, builder: Builder, atoms: Sequence[Expr], mask: int) -> list[Value]:
        """Return the tangents of the leaves of atoms that are in a mask, with zeros."""
        found: list[Value] = []
        places = [(a, i, ty) for a in atoms for i, ty in enumerate(self.leaves.of(type_of(a)))]
        for index in bits(mask):
            atom, leaf, ty = places[index]
            tangent = self.tangent(atom, leaf)
            found.append(self.zero(builder, ty) if tangent is None else builder.value(tangent))
        return found

    # Bodies.

    def _body(self, body: Body, moved: int) -> Steps[Expr]:
        """Return a body whose result is a tuple: its own, and the tangents of the leaves in
        `moved`."""
        builder = Builder(body.result.span, self._names)
        return (yield self._ending(body, moved, builder))

    def _ending(self, body: Body, moved: int, builder: Builder) -> Steps[Expr]:
        for step in body.steps:
            builder.span = step.value.span
            if step.tail:
                tail = yield self._tail(step, moved, builder)
                if tail is not None:
                    return let(builder.bindings, tail)
            yield self._step(step, builder)
        result = [builder.value(self.atom(body.result))]
        result += self._filled(builder, (body.result,), moved)
        return builder.block(builder.tuple(result))

    def _tail(self, step: Step, moved: int, builder: Builder) -> Steps[Expr | None]:
        """Return a step in tail position as one that gives value and tangents; None where it gives
        others than are asked for."""
        if step.arms:
            return (yield self._branch(step, moved))
        if not isinstance(step.value, Call) or not isinstance(step.value.callee, GlobalVar):
            return None
        instance = yield self._called(step.value)
        if instance is None or instance.moved != moved:
            return None
        return self._call(step, step.value, instance, builder)

    def _step(self, step: Step, builder: Builder) -> Steps[None]:
        """Add the code of a step, and find the tangents of its variable."""
        builder.span = step.value.span
        moved = self._masks.get(step.var, 0)
        if not moved and step not in self._touching:
            yield self._copied(step, builder)
        elif step.expansion:
            for part in step.expansion:
                yield self._step(part, builder)
            if step.is_opaque:
                yield self._copied(step, builder)
        elif step.arms:
            whole = builder.bind((yield self._branch(step, moved)), "both")
            self._take(step.var, whole, moved, builder)
        elif isinstance(step.value, Call) and isinstance(step.value.callee, GlobalVar):
            instance = yield self._called(step.value)
            if instance is None:
                yield self._copied(step, builder)
            else:
                whole = builder.bind(self._call(step, step.value, instance, builder), "both")
                self._take(step.var, whole, instance.moved, builder)
        else:
            yield self._copied(step, builder)
            self._simple(step, builder)

    def _copied(self, step: Step, builder: Builder) -> Steps[None]:
        value = yield self._copier.copy(step.value)
        builder.bindings.append(Binding(self._copier.fresh(step.var), value))

    def _take(self, var: Var, whole: Value, moved: int, builder: Builder) -> None:
        """Take the value of a variable and the tangents in a mask out of the tuple of them."""
        value = TupleGet(whole.atom, 0, type_of(var), span=builder.span)
        builder.bindings.append(Binding(self._copier.fresh(var), value))
        for place, leaf in enumerate(bits(moved), start=1):
            self._tangents[var, leaf] = whole[place].atom

    def _simple(self, step: Step, builder: Builder) -> None:
        builder.span = step.value.span.derived(f"derivative of {self._source.name}")
        match step.value:
            case Call(Op()) as call:
                self.keep(step.var, self._operator(step.var, call, builder))
            case Call(Constructor()) as call:
                self.keep(step.var, self._constructed(call, builder))
            case Var() as alias:
                self.keep(step.var, self.tangents(alias))
            case Tuple(fields):
                self.keep(step.var, [t for f in fields for t in self.tangents(f)])
            case TupleGet(value, index):
                skipped = self.leaves.offset(type_of(value), index)
                width = self.leaves.width(type_of(step.var))
                self.keep(step.var, self.tangents(value)[skipped : skipped + width])
            case RefCreate() | RefRead() | RefWrite() if step in self._touching:
                self._cell(step.var, step.value, builder)
            case _:
                pass

    def _operator(self, var: Var, call: Call, builder: Builder) -> list[Expr | None]:
        args = tuple(builder.value(self.atom(a)) for a in call.args)
        given = [self.tangents(a) for a in call.args]
        out = builder.value(self.atom(var))
        transposed = self.tools.transposed
        return push_operator(transposed, self._report, call, out, args, given)

    def _report(self, problem: Problem) -> None:
        # A function is swept once for each way of using it.
        if problem not in self.tools.problems:
            self.tools.problems.append(problem)

    # Calls.

    def _called(self, call: Call) -> Steps[Instance | None]:
        """Return the instance of the callee; None where the call stays as it is."""
        assert isinstance(call.callee, GlobalVar), "the program is first-order"
        name = call.callee.name
        instance = self._group.get(name)
        if instance is None:
            varied = join_masks(self.leaves, call.args, self._masks)
            instance = yield self.tools.instance(name, varied)
        return None if instance.is_constant else instance

    def _call(self, step: Step, call: Call, instance: Instance, builder: Builder) -> Call:
        function = self.tools.space.store.functions[instance.source]
        type_args = type_arguments(function.type_params, call_instance(function, call))
        args = [self.atom(a) for a in call.args]
        args += (t.atom for t in self._filled(builder, call.args, instance.varied))
        args += (self._run,) if instance.works_on_cells else ()
        leaves = self.leaves.of(type_of(step.var))
        result = TupleType((type_of(step.var), *(leaves[i] for i in bits(instance.moved))))
        callee = GlobalVar(instance.function, span=call.span)
        return Call(callee, tuple(args), type_args=type_args, ty=result, span=call.span)

    # Data.

    def _constructed(self, call: Call, builder: Builder) -> list[Expr | None]:
        """Return the tangent of a value that a constructor makes."""
        made = type_of(call)
        assert isinstance(made, AdtType)
        assert isinstance(call.callee, Constructor)
        leaves = self.leaves.of(made)
        given = [t for a in call.args for t in self.tangents(a)]
        if not leaves or all(t is None for t in given):
            return [None] * len(leaves)
        return [self._data_tangent(builder, made, leaves[0], call.callee.name, call.args).atom]

    def _data_tangent(
        self, builder: Builder, made: AdtType, leaf: Type, name: str, args: Sequence[Expr]
    ) -> Value:
        """Return the tangent of `name(args)`, a value of the type `made` whose tangents are of the
        type `leaf`."""
        assert isinstance(leaf, AdtType)
        constructor = self.leaves.constructor(leaf, made, name)
        if constructor is None:
            return self.zero(builder, leaf)
        width = sum(self.leaves.width(type_of(a)) for a in args)
        fields = self._filled(builder, args, (1 << width) - 1)
        return builder.construct(leaf.name, constructor, fields, leaf)

    def _opened(
        self, builder: Builder, tangent: Expr, constructor: str, leaves: Sequence[Type]
    ) -> list[Expr | None]:
        """Return the fields of a tangent of data, `leaves` their types; zeros where it is zero."""
        ty, span = type_of(tangent), builder.span
        assert isinstance(ty, AdtType)
        fields = [Var(self._names.fresh("d"), leaf, span=span) for leaf in leaves]
        pattern = ConstructorPattern(
            ty.name, constructor, tuple(BindPattern(f, span=span) for f in fields), span=span
        )
        held, none = Builder(span, self._names), Builder(span, self._names)
        holding = held.tuple([held.value(f) for f in fields])
        zeros = none.tuple([self.zero(none, leaf) for leaf in leaves])
        clauses = (
            Clause(pattern, held.block(holding)),
            Clause(Wildcard(span=span), none.block(zeros)),
        )
        whole = builder.bind(Match(tangent, clauses, ty=holding.ty, span=span), "d")
        return [whole[i].atom for i in range(len(leaves))]

    # Branches.

    def _branch(self, step: Step, moved: int) -> Steps[Expr]:
        """Return a branch as one that gives value and tangents."""
        leaves = self.leaves.of(type_of(step.var))
        ty = TupleType((type_of(step.var), *(leaves[i] for i in bits(moved))))
        match step.value:
            case If(condition):
                first = yield self._body(step.arms[0].body, moved)
                second = yield self._body(step.arms[1].body, moved)
                return replace(
                    step.value, condition=self.atom(condition), then=first, otherwise=second, ty=ty
                )
            case Match(value):
                clauses: list[Clause] = []
                for arm in step.arms:
                    clause = yield self._clause(arm, value, moved)
                    clauses.append(clause)
                return replace(step.value, value=self.atom(value), clauses=tuple(clauses), ty=ty)
            case _:
                raise AssertionError("only branches have arms")

    def _clause(self, arm: Arm, value: Expr, moved: int) -> Steps[Clause]:
        assert arm.pattern is not None
        pattern = self._copier.pattern(arm.pattern)
        guard = None if arm.guard is None else (yield self._copier.copy(arm.guard))
        builder = Builder(arm.body.result.span, self._names)
        self._match(builder, arm.pattern, type_of(value), self.tangents(value))
        return Clause(pattern, (yield self._ending(arm.body, moved, builder)), guard)

    def _match(
        self, builder: Builder, pattern: Pattern, ty: Type, tangents: list[Expr | None]
    ) -> None:
        """Find the tangents of the variables of a pattern from those of the matched value.

        Patterns nest as deep as a user writes, so this walk may recurse.
        """
        if all(t is None for t in tangents):
            return
        match pattern:
            case BindPattern(var, inner):
                self.keep(var, tangents)
                if inner is not None:
                    self._match(builder, inner, ty, tangents)
            case TuplePattern():
                self._match_fields(builder, subpatterns(pattern, ty, self.leaves), tangents)
            case ConstructorPattern():
                (tangent,) = tangents
                assert tangent is not None
                inside = list(self._exact(subpatterns(pattern, ty, self.leaves)))
                leaves = [leaf for _, t in inside for leaf in self.leaves.of(t)]
                held = type_of(tangent)
                assert isinstance(held, AdtType)
                assert isinstance(ty, AdtType)
                constructor = self.leaves.constructor(held, ty, pattern.name)
                if constructor is not None and leaves:
                    opened = self._opened(builder, tangent, constructor, leaves)
                    self._match_fields(builder, inside, opened)
            case _:
                pass

    def _match_fields(
        self, builder: Builder, inside: list[tuple[Pattern, Type]], tangents: list[Expr | None]
    ) -> None:
        start = 0
        for part, part_type in inside:
            width = self.leaves.width(part_type)
            self._match(builder, part, part_type, tangents[start : start + width])
            start += width

    def _exact(self, inside: list[tuple[Pattern, Type]]) -> Iterator[tuple[Pattern, Type]]:
        """Return patterns with the types of the values they match, in terms of the sizes in scope,
        as their variables have them."""
        for part, part_type in inside:
            yield part, type_of(part.var) if isinstance(part, BindPattern) else part_type

    # Cells.

    def _cell(self, var: Var, value: RefCreate | RefRead | RefWrite, builder: Builder) -> None:
        """Repeat an operation on a cell on its shadow, which holds the tangent of its content."""
        match value:
            case RefCreate(content):
                if any(t is not None for t in self.tangents(content)):
                    self._write_shadow(self.atom(var), content, builder)
            case RefWrite(ref, content):
                self._write_shadow(self.atom(ref), content, builder)
            case RefRead(ref):
                shadows, content_type = self.tools.space.shadows, type_of(value)
                place, held = shadows.of(builder, self._run, self.atom(ref))
                tangent = builder.bind(RefRead(place.atom, held, span=builder.span), "d")
                box, name = shadows.boxed(content_type, builder.span)
                constructor = self.leaves.constructor(held, box, name)
                assert constructor is not None
                leaves = self.leaves.of(content_type)
                self.keep(var, self._opened(builder, tangent.atom, constructor, leaves))

    def _write_shadow(self, cell: Expr, content: Expr, builder: Builder) -> None:
        place, held = self.tools.space.shadows.of(builder, self._run, cell)
        box, name = self.tools.space.shadows.boxed(type_of(content), builder.span)
        if all(t is None for t in self.tangents(content)):
            tangent = self.zero(builder, held)
        else:
            tangent = self._data_tangent(builder, box, held, name, (content,))
        builder.bind(RefWrite(place.atom, tangent.atom, UNIT, span=builder.span))
