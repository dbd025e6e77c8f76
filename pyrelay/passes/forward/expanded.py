"""The functions that `jvp` stands for: of two tuples, the arguments and their tangents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, final

from ...ir.expr import Expr, Function, RefCreate, Var, type_of
from ...ir.names import Names
from ...ir.traverse import run
from ...ir.types import UNIT, FnType, RefType, TupleType, Type, as_arguments
from ...operators.builder import Builder, Value
from ..deriving.copying import Copier
from ..deriving.cotangents.masks import bits
from ..deriving.deriver import Wanted, own_params
from ..deriving.obstacles import obstacles_in
from ..grad import ReverseMode
from .derive import Derivation
from .transposed import Transposed

if TYPE_CHECKING:
    from ...diagnostics.diagnostic import Problem
    from ...diagnostics.source import Span
    from ..deriving.workspace import Workspace
    from .instances import Instance


@final
class ForwardMode:
    """Defines the functions that `jvp` stands for, each once."""

    def __init__(self, space: Workspace) -> None:
        self._space: Final = space
        reverse = ReverseMode(space)
        self.problems = reverse.problems
        self._derivation: Final = Derivation(space, Transposed(space, reverse), self.problems)
        self._known: Final[dict[Wanted, str]] = {}

    def obstacles(self, wanted: Wanted, place: Span) -> Iterator[Problem]:
        """Return the obstacle to differentiating a function in this way."""
        function = self._space.store.functions[wanted.function]
        own = own_params(function, wanted)
        for index in wanted.differentiation.indices:
            yield from obstacles_in(own[index], function, place)

    def name(self, wanted: Wanted) -> str:
        """Return the name of the function that a transform stands for."""
        if wanted not in self._known:
            name = self._space.store.function_name(f"{wanted.function}_{wanted.rule.value}")
            made = _Wrapper(self._space, self._derivation, wanted, name).function()
            self._space.store.functions[name] = made
            self._known[wanted] = name
        return self._known[wanted]


@final
class _Wrapper:
    """Builds one such function."""

    def __init__(self, space: Workspace, derivation: Derivation, wanted: Wanted, name: str) -> None:
        self._space: Final = space
        self._derivation: Final = derivation
        self._wanted: Final = wanted
        self._name: Final = name
        self._function: Final = space.store.functions[wanted.function]
        self._value_type: Final = type_of(space.graph.source(wanted.function).body.result)
        self._wrt: Final = tuple(i + wanted.captures for i in wanted.differentiation.indices)
        span = self._function.span.derived(f"derivative of {wanted.function}")
        self._builder: Final = Builder(span, Names())

    def function(self) -> Function:
        """Return the function of captures, a tuple of arguments, and a tuple of tangents."""
        builder, function = self._builder, self._function
        names, span = builder.names, builder.span
        copier = Copier(names)
        captured = tuple(copier.fresh(p) for p in function.params[: self._wanted.captures])
        own = own_params(function, self._wanted)
        primals = Var(names.fresh("primals"), TupleType(_types(own)), span=span)
        moved = tuple(function.params[i] for i in self._wrt)
        tangents = Var(names.fresh("tangents"), TupleType(_types(moved)), span=span)
        args = [builder.value(v) for v in captured]
        args += [builder.value(primals)[i] for i in range(len(own))]
        given = dict(zip(self._wrt, range(len(moved)), strict=True))
        places: list[Expr | None] = []
        for index, arg in enumerate(args):
            width = self._space.leaves.width(arg.ty)
            if index in given:
                tangent = builder.value(tangents)[given[index]]
                places += self._space.border.incoming(builder, tangent, arg.ty)
            else:
                places += [None] * width
        result = self._result(args, places)
        params = (*captured, primals, tangents)
        types = _types(params)
        return Function(
            params,
            builder.block(result),
            result.ty,
            function.type_params,
            self._name,
            function.assumptions,
            ty=FnType(types, result.ty, function.type_params),
            span=span,
        )

    def _result(self, args: list[Value], places: list[Expr | None]) -> Value:
        """Return the value, its tangent in the value's own type, and what comes beside it."""
        builder = self._builder
        varied = sum(1 << i for i, tangent in enumerate(places) if tangent is not None)
        instance = run(self._derivation.instance(self._wanted.function, varied))
        value, leaves = self._applied(instance, args, places)
        if not self._wanted.differentiation.has_aux:
            tangent = self._space.border.gradient(builder, value, value.ty, iter(leaves))
            return builder.tuple((value, tangent))
        loss = value[0]
        tangent = self._space.border.gradient(builder, loss, loss.ty, iter(leaves))
        return builder.tuple((loss, tangent, value[1]))

    def _applied(
        self, instance: Instance, args: list[Value], places: list[Expr | None]
    ) -> tuple[Value, list[Expr | None]]:
        """Return the value of the function, and the tangents of all its leaves."""
        builder, space = self._builder, self._space
        type_args = as_arguments(self._function.type_params)
        leaves = space.leaves.of(self._value_type)
        if instance.is_constant:
            value = builder.apply(instance.source, args, self._value_type, type_args)
            return value, [None] * len(leaves)
        types = [leaf for a in args for leaf in space.leaves.of(a.ty)]
        for index in bits(instance.varied):
            tangent = places[index]
            zero = space.cotangents.zero
            args.append(zero(builder, types[index]) if tangent is None else builder.value(tangent))
        if instance.works_on_cells:
            run_cell = RefCreate(builder.unit().atom, RefType(UNIT), span=builder.span)
            args.append(builder.bind(run_cell, "run"))
        moved = bits(instance.moved)
        ty = TupleType((self._value_type, *(leaves[i] for i in moved)))
        whole = builder.apply(instance.function, args, ty, type_args)
        found: list[Expr | None] = [None] * len(leaves)
        for place, leaf in enumerate(moved, start=1):
            found[leaf] = whole[place].atom
        return whole[0], found


def _types(params: tuple[Var, ...]) -> tuple[Type, ...]:
    return tuple(type_of(p) for p in params)
