"""The functions that transforms stand for: `grad`, `value_and_grad` and `vjp` of one function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, final

from ...diagnostics.catalogue.gradient import NotAScalar
from ...ir.expr import Differentiation, Expr, Function, RefCreate, Rule, Var, type_of
from ...ir.names import Names
from ...ir.traverse import run
from ...ir.types import (
    UNIT,
    DType,
    FnType,
    RefType,
    TensorType,
    TupleType,
    Type,
    as_arguments,
    known_dtype,
    show,
)
from ...operators.builder import Builder, Value
from ..deriving.copying import Copier
from ..deriving.cotangents.adt_cotangents import Border
from ..deriving.cotangents.masks import bits
from ..deriving.deriver import Wanted, own_params, plain_name
from ..deriving.obstacles import obstacles_in
from ..deriving.store import function_like
from .derive import Derivation
from .finish import one_or_tuple

if TYPE_CHECKING:
    from ...diagnostics.diagnostic import Problem
    from ...diagnostics.source import Span
    from ..deriving.workspace import Workspace
    from .instances import Instance


@final
class ReverseMode:
    """Defines the functions that `grad`, `value_and_grad` and `vjp` stand for, each once."""

    def __init__(self, space: Workspace) -> None:
        derivation = Derivation(space)
        self.problems = derivation.problems
        self._derivation: Final = derivation
        self._store: Final = space.store
        self._border: Final = space.border
        self._known: Final[dict[Wanted, str]] = {}

    def obstacles(self, wanted: Wanted, place: Span) -> Iterator[Problem]:
        """Return the obstacle to differentiating a function in this way."""
        function = self._store.functions[wanted.function]
        own = own_params(function, wanted)
        for index in wanted.differentiation.indices:
            yield from obstacles_in(own[index], function, place)
        if wanted.rule is Rule.VJP:
            return
        assert isinstance(function.ty, FnType)
        result: Type = function.ty.result
        has_aux = wanted.differentiation.has_aux and isinstance(result, TupleType)
        loss = result.fields[0] if has_aux and isinstance(result, TupleType) else result
        if not is_scalar(loss):
            name = plain_name(function.name or wanted.function)
            yield NotAScalar(place, wanted.rule.value, name, function.span, show(loss))

    def transposed(self, function: str, wrt: tuple[int, ...]) -> str:
        """Define the transpose of a function in the parameters `wrt`, in which it is linear; return
        its name.

        It takes the parameters of the function and cotangents of the leaves of its result, and
        returns a tuple of the cotangents of the parameters `wrt`.
        """
        name = self._store.function_name(f"{function}_transposed")
        wanted = Wanted(Rule.VJP, function, 0, Differentiation(wrt, single=False))
        made = _Wrapper(self._derivation, self._border, wanted, name).transposed()
        self._store.functions[name] = made
        return name

    def pulled(self, function: str, wrt: tuple[int, ...]) -> str:
        """Define the derivative of a first-order function in some parameters as one function;
        return its name.

        It takes the parameters of the function and a cotangent of its result, and returns a tuple
        of the cotangents of the parameters `wrt`, in the user's own types.
        """
        name = self._store.function_name(f"{function}_pulled")
        wanted = Wanted(Rule.VJP, function, 0, Differentiation(wrt, single=False))
        made = _Wrapper(self._derivation, self._border, wanted, name).pulled()
        self._store.functions[name] = made
        return name

    def name(self, wanted: Wanted) -> str:
        """Return the name of the function that a transform stands for."""
        if wanted not in self._known:
            name = self._store.function_name(f"{wanted.function}_{wanted.rule.value}")
            self._store.functions[name] = _Wrapper(
                self._derivation, self._border, wanted, name
            ).function()
            self._known[wanted] = name
        return self._known[wanted]


@final
class _Wrapper:
    """Builds one such function."""

    def __init__(self, derivation: Derivation, border: Border, wanted: Wanted, name: str) -> None:
        self._derivation: Final = derivation
        self._leaves: Final = derivation.space.leaves
        self._border: Final = border
        self._wanted: Final = wanted
        self._wrt: Final = tuple(i + wanted.captures for i in wanted.differentiation.indices)
        self._name: Final = name
        self._function: Final = derivation.space.store.functions[wanted.function]
        span = self._function.span.derived(f"gradient of {wanted.function}")
        self._builder: Final = Builder(span, Names())
        copier = Copier(self._builder.names)
        self._params: Final = tuple(copier.fresh(p) for p in self._function.params)
        source = derivation.space.graph.source(wanted.function)
        self._value_type: Final = type_of(source.body.result)

    def function(self) -> Function:
        """Return the function."""
        wanted, builder = self._wanted, self._builder
        instance = run(self._derivation.instance(wanted.function, self._varied(), self._useful()))
        value, residual = self._forward(instance)
        if wanted.rule is Rule.VJP:
            pullback = self._pullback(instance, residual)
            result = builder.tuple((value, builder.bind(pullback, "pullback")))
        else:
            gradient = self._gradients(instance, residual, builder, self._one(instance))
            result = self._result(value, gradient)
        return self._made(self._params, result)

    def transposed(self) -> Function:
        """Return the function from the parameters, and cotangents of the leaves of the result, to
        the cotangents of the parameters in `wrt`."""
        builder, name = self._builder, self._wanted.function
        instance = run(self._derivation.instance(name, self._varied(), self._useful()))
        _, residual = self._forward(instance)
        leaves = self._leaves.of(self._value_type)
        given = [Var(builder.names.fresh("g"), leaf, span=builder.span) for leaf in leaves]
        result = self._gradients(instance, residual, builder, dict(enumerate(given)))
        return self._made((*self._params, *given), result)

    def pulled(self) -> Function:
        """Return the function from the parameters and a cotangent of the result to the cotangents
        of the parameters in `wrt`."""
        builder, name = self._builder, self._wanted.function
        instance = run(self._derivation.instance(name, self._varied(), self._useful()))
        _, residual = self._forward(instance)
        g = Var(builder.names.fresh("g"), self._value_type, span=builder.span)
        leaves = self._border.incoming(builder, builder.value(g), self._value_type)
        result = self._gradients(instance, residual, builder, dict(enumerate(leaves)))
        return self._made((*self._params, g), result)

    def _made(self, params: tuple[Var, ...], result: Value) -> Function:
        body = self._builder.block(result)
        return function_like(self._function, self._name, params, body, self._builder.span)

    def _result(self, value: Value, gradient: Value) -> Value:
        wanted, builder = self._wanted, self._builder
        if wanted.rule is Rule.VALUE_AND_GRAD:
            return builder.tuple((value, gradient))
        return builder.tuple((gradient, value[1])) if wanted.differentiation.has_aux else gradient

    def _varied(self) -> int:
        mask, shift = 0, 0
        for index, param in enumerate(self._params):
            width = self._leaves.width(type_of(param))
            if index in self._wrt:
                mask |= ((1 << width) - 1) << shift
            shift += width
        return mask

    def _useful(self) -> int:
        every = (1 << self._leaves.width(self._value_type)) - 1
        return every if self._wanted.rule is Rule.VJP else 1

    def _forward(self, instance: Instance) -> tuple[Value, Value | None]:
        """Return the value of the function and what its backward function takes first."""
        builder = self._builder
        args = [builder.value(p) for p in self._params]
        type_args = as_arguments(self._function.type_params)
        if instance.residual is None or not instance.active:
            name = instance.source
            return builder.apply(name, args, self._value_type, type_args), None
        if instance.trace is not None:
            args.append(builder.construct(instance.trace.name, instance.start, (), instance.trace))
        both_type = TupleType((self._value_type, instance.residual))
        both = builder.apply(instance.forward, args, both_type, type_args)
        return both[0], both[1]

    def _one(self, instance: Instance) -> dict[int, Expr]:
        """Return the cotangent 1 of the loss."""
        if not instance.useful:
            return {}
        (loss, *_) = self._leaves.of(self._value_type)
        return {0: self._builder.constant(1.0, known_dtype(loss)).atom}

    def _pullback(self, instance: Instance, residual: Value | None) -> Function:
        """Return the function from a cotangent of the value to the gradients."""
        span = self._builder.span
        builder = Builder(span, self._builder.names)
        param = Var(builder.names.fresh("g"), self._value_type, span=span)
        leaves = self._border.incoming(builder, builder.value(param), self._value_type)
        given = dict(enumerate(leaves))
        result = self._gradients(instance, residual, builder, given)
        ty = FnType((self._value_type,), result.ty)
        return Function(
            (param,), builder.block(result), result.ty, (), "pullback", ty=ty, span=span
        )

    def _gradients(
        self, instance: Instance, residual: Value | None, builder: Builder, given: dict[int, Expr]
    ) -> Value:
        """Return the gradients of the parameters in `wrt`, each in the type of the parameter."""
        leaves = self._backward(instance, residual, builder, given)
        found: list[Value] = []
        index = 0
        for position, param in enumerate(self._params):
            width = self._leaves.width(type_of(param))
            if position in self._wrt:
                own = iter([leaves.get(index + i) for i in range(width)])
                value = builder.value(param)
                found.append(self._border.gradient(builder, value, type_of(param), own))
            index += width
        return found[0] if self._wanted.differentiation.single else builder.tuple(found)

    def _backward(
        self, instance: Instance, residual: Value | None, builder: Builder, given: dict[int, Expr]
    ) -> dict[int, Expr]:
        """Return the cotangents of the leaves of all parameters that have one."""
        if not instance.active:
            return {}
        places = [leaf for p in self._params for leaf in self._leaves.of(type_of(p))]
        args = [] if residual is None else [builder.value(residual.atom)]
        args += [builder.value(self._params[i]) for i in instance.values]
        args += [builder.value(given[i]) for i in bits(instance.useful)]
        threaded = bits(instance.active & instance.threaded)
        zero = self._derivation.space.cotangents.zero
        args += [zero(builder, places[i]) for i in threaded]
        if instance.works_on_cells:
            run_cell = RefCreate(builder.unit().atom, RefType(UNIT), span=builder.span)
            args.append(builder.bind(run_cell, "run"))
        active = bits(instance.active)
        result = one_or_tuple([places[i] for i in active])
        type_args = as_arguments(self._function.type_params)
        whole = builder.apply(instance.backward, args, result, type_args)
        if len(active) == 1:
            return {active[0]: whole.atom}
        return {index: whole[i].atom for i, index in enumerate(active)}


def is_scalar(ty: Type) -> bool:
    """Return whether a type is that of one float."""
    return isinstance(ty, TensorType) and not ty.shape and isinstance(ty.dtype, DType)
