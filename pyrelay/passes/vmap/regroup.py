"""A batch of batches as one batch, and back: the pairs of an outer and an inner element."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from ...ir.dims import Dim, DimVar
from ...ir.expr import Function, Var
from ...ir.names import Names
from ...ir.types import AdtType, FnType, SizeType, TensorType, TupleType, Type
from ...operators.builder import Builder, Value
from ..deriving.leaves import skeleton

if TYPE_CHECKING:
    from ...diagnostics.source import Span
    from ..deriving.store import Store
    from .data import Batches


@final
class Regrouping:
    """Joins and splits the batch dims of values of one structure. Functions on data are defined
    once each."""

    def __init__(self, store: Store, batches: Batches) -> None:
        self._store: Final = store
        self._batches: Final = batches
        self._functions: Final[dict[tuple[str, AdtType], str]] = {}

    def flat(self, value: Value, ty: Type, outer: Dim, inner: Dim) -> Value:
        """Return `outer` batches of `inner` values of a type as one batch, a batch after the
        other."""
        match ty:
            case TupleType(fields):
                parts = [self.flat(value[i], t, outer, inner) for i, t in enumerate(fields)]
                return value.builder.tuple(parts)
            case TensorType():
                return value.reshape(outer * inner, *value.shape[2:])
            case AdtType() if self._batches.holds_tensors(ty):
                return self._applied("flat", value, ty, outer, inner)
            case _:
                return value

    def split(self, value: Value, ty: Type, outer: Dim, inner: Dim) -> Value:
        """Return one batch of values of a type as `outer` batches of `inner`."""
        match ty:
            case TupleType(fields):
                parts = [self.split(value[i], t, outer, inner) for i, t in enumerate(fields)]
                return value.builder.tuple(parts)
            case TensorType():
                return value.reshape(outer, inner, *value.shape[1:])
            case AdtType() if self._batches.holds_tensors(ty):
                return self._applied("split", value, ty, outer, inner)
            case _:
                return value

    def _applied(self, kind: str, value: Value, ty: AdtType, outer: Dim, inner: Dim) -> Value:
        builder = value.builder
        general, dims = skeleton(ty)
        _, result = self._types(kind, ty, outer, inner)
        args = (builder.size(outer), builder.size(inner), value)
        name = self._function(kind, general, builder.span)
        return builder.apply(name, args, result, (*dims, outer, inner))

    def _types(self, kind: str, ty: AdtType, outer: Dim, inner: Dim) -> tuple[Type, Type]:
        """Return the types of data before and after."""
        inside = self._batches.inside
        pair = inside(inside(ty, inner), outer), inside(ty, outer * inner)
        return pair if kind == "flat" else (pair[1], pair[0])

    def _function(self, kind: str, general: AdtType, span: Span) -> str:
        key = (kind, general)
        if key in self._functions:
            return self._functions[key]
        name = self._functions[key] = self._store.function_name(f"{general.name}_{kind}")
        builder = Builder(span, Names())
        outer, inner = Dim.of("outer"), Dim.of("inner")
        source, result = self._types(kind, general, outer, inner)
        sizes = Var("outer", SizeType(outer), span=span), Var("inner", SizeType(inner), span=span)
        param = Var("value", source, span=span)

        def change(part: Value, ty: Type) -> Value:
            regroup = self.flat if kind == "flat" else self.split
            return regroup(part, ty, outer, inner)

        body = self._batches.mapped(builder, param, general, source, result, change)
        dims = (*skeleton(general)[1], outer, inner)
        type_params = tuple(DimVar(n) for d in dims for n in sorted(d.names()))
        params = (*sizes, param)
        ty = FnType(tuple(p.ty for p in params if p.ty is not None), result, type_params)
        self._store.functions[name] = Function(
            params, body, result, type_params, name, ty=ty, span=span
        )
        return name
