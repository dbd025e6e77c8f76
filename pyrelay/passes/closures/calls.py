"""Making and calling function values in the body of one instance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, final

from ...analysis.dim_availability import shown, uncovered
from ...analysis.free_names import FreeNames, names_in
from ...diagnostics.source import Span
from ...ir.block_builder import BlockBuilder
from ...ir.dims import Dim
from ...ir.expr import (
    Binding,
    Call,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    Rule,
    Transform,
    Var,
    type_of,
)
from ...ir.types import AdtType, FnType, Substitution, Type
from ...operators.builder import Builder
from .closures import (
    Closure,
    ConstructorTarget,
    DataTarget,
    GlobalTarget,
    Instance,
    LocalTarget,
    NotFirstOrder,
    Target,
    TransformTarget,
    Value,
)
from .units import change

if TYPE_CHECKING:
    from .program import FirstOrderProgram


@final
class Caller:
    """The operations on function values in one instance."""

    def __init__(self, program: FirstOrderProgram, instance: Instance) -> None:
        self._program: Final = program
        self._instance: Final = instance

    # Known functions.

    def of_global(self, name: str, ty: FnType, span: Span) -> Closure:
        """Return a global function, used as a value of a type, as a known function."""
        return self._program.targets.of_global(name, ty, span)

    def as_global(self, closure: Closure, span: Span) -> Expr:
        """Return a known function as a mention of a global one of the new program."""
        return self._program.as_global(closure, span)

    def of_constructor(self, name: str, ty: FnType) -> Closure:
        """Return a constructor, used as a value of a type, as a known function."""
        return self._program.targets.of_constructor(name, ty)

    def transformed(self, transform: Transform, value: Value, ty: Type) -> Closure:
        """Return a transform of a function as a known function of type `ty`."""
        if transform.rule is Rule.VJP:
            raise NotFirstOrder("a pullback is a function: expand it first", transform.span)
        if transform.rules:
            why = (
                "it has a derivative of its own, and what it captures is known to its callers alone"
            )
            raise NotFirstOrder(why, transform.span)
        inner = self._known(value)
        assert isinstance(ty, FnType)
        target = self._program.targets.of_transform(transform, inner, ty)
        return Closure(target, inner.dims, inner.leaves)

    def close(self, bindings: Sequence[Binding], code: BlockBuilder) -> None:
        """Let the variables of a group of local functions stand for them as known functions."""
        instance = self._instance
        functions = {b.var: b.value for b in bindings if isinstance(b.value, Function)}
        summaries = [self._program.summary(f) for f in functions.values()]
        outside = dict.fromkeys(v for s in summaries for v in s.free if v not in functions)
        captures = tuple((var, instance.values[var]) for var in outside)
        leaves = [leaf for _, value in captures for leaf in _leaves(value)]
        wanted = [instance.change.dim(d) for s in summaries for d in s.wanted]
        leaves += self._size_values(wanted, leaves, code)
        sizes = self._sizes(summaries, captures, leaves)
        members = self._program.targets.of_locals(
            instance, functions, captures, tuple(leaves), sizes
        )
        dims = tuple(Dim.of(s) for s in sizes)
        for var, target in members.items():
            instance.values[var] = Closure(target, dims, tuple(leaves))

    def _size_values(
        self, wanted: Sequence[Dim], leaves: Sequence[Var], code: BlockBuilder
    ) -> list[Var]:
        """Bind the sizes that functions need and cannot read off their captures."""
        given = [d for leaf in leaves for d in shown(type_of(leaf))]
        missing = dict.fromkeys(part for dim in wanted for part in uncovered(dim, given))
        found: list[Var] = []
        for dim in missing:
            if dim.name in self._instance.sizes:
                builder = Builder(self._instance.span)
                value = builder.size(dim).atom
                assert isinstance(value, Var)
                (binding,) = builder.bindings
                found.append(code.bind(value, binding.value))
        return found

    def _sizes(
        self,
        summaries: Sequence[FreeNames],
        captures: Sequence[tuple[Var, Value]],
        leaves: Sequence[Var],
    ) -> tuple[str, ...]:
        """Return the names of the instance's sizes that local functions and captures mention."""
        instance = self._instance
        mentioned = [instance.change.dim(Dim.of(n)) for s in summaries for n in s.sizes]
        parts: list[Type | Dim] = [type_of(leaf) for leaf in leaves]
        parts += (d for _, value in captures if isinstance(value, Closure) for d in value.dims)
        if any(s.has_type_variables for s in summaries):
            parts += instance.change.types.values()
        known = dict.fromkeys(names_in(parts))
        known |= dict.fromkeys(n for n in names_in(mentioned) if n in instance.sizes)
        return tuple(known)

    def _known(self, value: Value) -> Closure:
        """Return a function value as a known function: that behind a piece of data, if it is
        one."""
        if isinstance(value, Closure):
            return value
        return self._program.targets.of_data(value)

    # Data.

    def as_data(self, value: Value, code: BlockBuilder, span: Span) -> Expr:
        """Return a value as an atom; a known function becomes a piece of data."""
        if not isinstance(value, Closure):
            return value
        if isinstance(value.target, DataTarget):
            return value.leaves[0]
        ty, name = self._program.constructor(value.target)
        made = self.construct(name, value.leaves, ty, span)
        return code.bind(Var(_plain(value.target), ty, span=span), made)

    def construct(self, name: str, args: tuple[Expr, ...], ty: AdtType, span: Span) -> Call:
        """Return a value made by a constructor."""
        fields = FnType(tuple(type_of(a) for a in args), ty)
        callee = Constructor(ty.name, name, fields, span=span)
        return Call(callee, args, type_args=ty.args, ty=ty, span=span)

    # Calls.

    def call_global(
        self,
        name: str,
        type_args: Sequence[Type | Dim],
        values: Sequence[Value],
        ty: Type,
        span: Span,
        code: BlockBuilder,
    ) -> Expr:
        """Return a call of a global function of the source."""
        unit = self._program.global_unit(name)
        request = self._program.units.request(
            unit, type_args, (), values, lambda v: self.as_data(v, code, span)
        )
        callee = GlobalVar(request.instance.name, span=span)
        return Call(callee, request.args, type_args=request.type_args, ty=ty, span=span)

    def call(
        self, value: Value, values: Sequence[Value], ty: Type, span: Span, code: BlockBuilder
    ) -> Expr:
        """Return a call of a function value."""
        known = self._known(value)
        target = known.target
        match target:
            case GlobalTarget(name=name, type_args=type_args):
                inside = _inside(target, known.dims)
                args = tuple(change(inside, a) for a in type_args)
                return self.call_global(name, args, values, ty, span, code)
            case LocalTarget():
                request = self._program.units.request(
                    self._program.local_unit(target),
                    known.dims,
                    known.leaves,
                    values,
                    lambda v: self.as_data(v, code, span),
                )
                callee = GlobalVar(request.instance.name, span=span)
                return Call(callee, request.args, type_args=request.type_args, ty=ty, span=span)
            case _:
                args = tuple(self.as_data(v, code, span) for v in values)
                return self._call_data(known, args, ty, span, code)

    def _call_data(
        self, known: Closure, args: tuple[Expr, ...], ty: Type, span: Span, code: BlockBuilder
    ) -> Expr:
        target = known.target
        if isinstance(target, ConstructorTarget):
            assert isinstance(ty, AdtType)
            return self.construct(target.name, args, ty, span)
        if isinstance(target, DataTarget):
            callee = GlobalVar(self._program.apply(target.data), span=span)
            return Call(callee, (*known.leaves, *args), ty=ty, span=span)
        callee = self._callee(known, span, code)
        return Call(callee, (*known.leaves, *args), ty=ty, span=span)

    def _callee(self, known: Closure, span: Span, code: BlockBuilder) -> Expr:
        """Return a known function, its captures as leading parameters, as an atom to transform; or
        bind the transform of such an atom."""
        chain: list[TransformTarget] = []
        target = known.target
        while isinstance(target, TransformTarget):
            chain.append(target)
            target = target.inner
        made: Expr = self._program.as_global(Closure(target, known.dims, known.leaves), span)
        for transform in reversed(chain):
            made = self._transform(transform, made, known, code)
        return made

    def _transform(
        self, target: TransformTarget, function: Expr, known: Closure, code: BlockBuilder
    ) -> Expr:
        source = target.transform
        count = len(known.leaves)
        inside = _inside(target, known.dims)
        signature = inside(target.type)
        assert isinstance(signature, FnType)
        own = self._program.table.convert_signature(signature)
        ty = FnType((*(type_of(leaf) for leaf in known.leaves), *own.params), own.result)
        made = replace(source, function=function, captures=source.captures + count, ty=ty)
        return code.bind(Var(_plain(target), ty, span=source.span), made)


def _plain(target: Target) -> str:
    return target.name.rpartition(".")[2]


def _leaves(value: Value) -> tuple[Var, ...]:
    atoms = value.leaves if isinstance(value, Closure) else (value,)
    return tuple(a for a in atoms if isinstance(a, Var))


def _inside(target: Target, dims: Sequence[Dim]) -> Substitution:
    """Return the substitution of a target's sizes by those of one closure."""
    return Substitution(dict(zip(target.sizes, dims, strict=True)), {})
