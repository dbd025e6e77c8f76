"""Code that goes through the float tensors of values, data included, in order.

A local function goes through the values of each data type, and through those inside it. What it
does at each float tensor is given; it takes values that stay the same, and a state that the next
tensor sees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias, final

from ...ir.derived_types.jacobians import OfTensor, replaced
from ...ir.expr import Binding, Function, Var
from ...ir.module import AdtDef, ConstructorDef
from ...ir.types import (
    UNIT,
    AdtType,
    FnType,
    TensorType,
    TupleType,
    Type,
    TypeVar,
    is_float,
)
from ...operators.builder import Builder, Value
from ..vmap.cases import match_of

if TYPE_CHECKING:
    from ...diagnostics.source import Span
    from ..deriving.store import Store

Visited: TypeAlias = tuple[Value, Sequence[Value]]
"""The result of a visit to a tensor, and the state after it."""
Visit: TypeAlias = Callable[[Value, TensorType, Sequence[Value], Sequence[Value]], Visited]
"""From a tensor, its type, the values that stay the same and the state to what is made of it."""


@final
class StructureMap:
    """One way through values. `target` gives the type of what is made of each float tensor; None
    if the state alone counts."""

    def __init__(
        self,
        store: Store,
        name: str,
        visit: Visit,
        target: OfTensor | None,
        *,
        backwards: bool = False,
    ) -> None:
        self._store: Final = store
        self._name: Final = name
        self._visit: Final = visit
        self._target: Final = target
        self._backwards: Final = backwards
        self._functions: Final[dict[AdtType, Var]] = {}
        self._bindings: Final[list[Binding]] = []

    def over(
        self, value: Value, ty: Type, fixed: Sequence[Value], state: Sequence[Value]
    ) -> Visited:
        """Return the image of a value, and the state behind its last tensor."""
        builder = value.builder
        match ty:
            case TensorType(_, dtype) if is_float(dtype):
                return self._visit(value, ty, fixed, state)
            case TupleType(fields):
                parts: list[Value] = []
                order = reversed(range(len(fields))) if self._backwards else range(len(fields))
                for i in order:
                    part, state = self.over(value[i], fields[i], fixed, state)
                    parts.append(part)
                if self._target is None:
                    return builder.unit(), state
                return builder.tuple(parts), state
            case AdtType():
                function = self._function(ty, builder, fixed, state)
                result = TupleType((self.made(ty), *(s.ty for s in state)))
                found = builder.apply(function, (value, *fixed, *state), result)
                return found[0], [found[1 + i] for i in range(len(state))]
            case TensorType() if self._target is not None:
                return builder.zeros(ty), state
            case _:
                return (builder.unit() if self._target is None else value), state

    def made(self, ty: Type) -> Type:
        """Return the type of the structure made of a value."""
        return UNIT if self._target is None else replaced(ty, self._target, self._store.adts)

    def written(self) -> Iterator[Binding]:
        """Yield the local functions that were called since the last time."""
        yield from self._bindings
        self._bindings.clear()

    def _function(
        self, ty: AdtType, builder: Builder, fixed: Sequence[Value], state: Sequence[Value]
    ) -> Var:
        """Return the function that goes through the values of a data type."""
        if ty in self._functions:
            return self._functions[ty]
        span, names = builder.span, builder.names
        given = [Var(names.fresh("x"), v.ty, span=span) for v in (*fixed, *state)]
        param = Var(names.fresh("value"), ty, span=span)
        result = TupleType((self.made(ty), *(s.ty for s in state)))
        fn = FnType((ty, *(v.ty for v in (*fixed, *state))), result)
        var = self._functions[ty] = Var(names.fresh(self._name), fn, span=span)
        definition = self._store.adts[ty.name]
        inside = Builder(span, names)
        places = [definition.field_types(ty, c.name) for c in definition.constructors]

        def case(number: int) -> Callable[[Builder, list[Value]], Value]:
            def code(inner: Builder, fields: list[Value]) -> Value:
                values = [inner.value(v) for v in given]
                kept, now = values[: len(fixed)], values[len(fixed) :]
                return self._through(ty, number, places[number], fields, kept, now, inner)

            return code

        cases = [(types, case(number)) for number, types in enumerate(places)]
        found = inside.bind(match_of(inside.value(param), definition, cases), "walked")
        body = inside.block(found)
        function = Function((param, *given), body, result, (), self._name, ty=fn, span=span)
        self._bindings.append(Binding(var, function))
        return var

    def _through(
        self,
        ty: AdtType,
        number: int,
        types: Sequence[Type],
        fields: Sequence[Value],
        fixed: Sequence[Value],
        state: Sequence[Value],
        inner: Builder,
    ) -> Value:
        """Return the images of the fields of a constructor, beside the state behind them."""
        parts: dict[int, Value] = {}
        order = range(len(fields))
        for i in reversed(order) if self._backwards else order:
            parts[i], state = self.over(fields[i], types[i], fixed, state)
        made = self.made(ty)
        whole = inner.unit()
        if isinstance(made, AdtType):
            name = self._store.adts[made.name].constructors[number].name
            whole = inner.construct(made.name, name, [parts[i] for i in order], made)
        elif self._target is not None:
            whole = inner.tuple([parts[i] for i in order])
        return inner.tuple((whole, *state))


@final
class Stacks:
    """Lists of tensors of one type, of a data type of their own."""

    def __init__(self, store: Store, span: Span) -> None:
        self._name: Final = store.data_name("Rows")
        element = TypeVar("A")
        self._more: Final = store.data_name("Row")
        self._none: Final = store.data_name("NoRow")
        fields = (element, AdtType(self._name, (element,)))
        constructors = (ConstructorDef(self._more, fields), ConstructorDef(self._none, ()))
        self._definition: Final = AdtDef(self._name, (element,), constructors, span)
        store.adts[self._name] = self._definition

    def of(self, ty: Type) -> AdtType:
        """Return the type of lists of tensors."""
        return AdtType(self._name, (ty,))

    def empty(self, builder: Builder, ty: Type) -> Value:
        """Return a list without tensors."""
        return builder.construct(self._name, self._none, (), self.of(ty))

    def pushed(self, stack: Value, tensor: Value) -> Value:
        """Return a list with a tensor in front."""
        return stack.builder.construct(self._name, self._more, (tensor, stack), stack.ty)

    def popped(self, stack: Value, ty: TensorType) -> tuple[Value, Value]:
        """Return the first tensor of a list, which has one, and the others."""
        builder = stack.builder
        cases = [
            ((ty, stack.ty), lambda inner, fields: inner.tuple(fields)),
            ((), lambda inner, _: inner.tuple((inner.zeros(ty), inner.value(stack.atom)))),
        ]
        found = builder.bind(match_of(stack, self._definition, cases), "popped")
        return found[0], found[1]
