"""How saved values are put together in the forward code and taken apart in the backward code."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from ...dataclass import dataclass
from ...ir.expr import Binding, BindPattern, ConstructorPattern, TupleGet, Var
from ...ir.types import AdtType, TupleType, Type
from ...operators.builder import Builder, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...diagnostics.source import Span
    from ..deriving.copying import Copier


@final
@dataclass(frozen=True, slots=True)
class ResidualLayout:
    """A residual is a constructor's value, a tuple, or, for one saved value, that value."""

    ty: Type
    constructor: str | None

    def pack(self, builder: Builder, values: Sequence[Value]) -> Value:
        """Return the residual of saved values."""
        if self.constructor is not None:
            assert isinstance(self.ty, AdtType)
            return builder.construct(self.ty.name, self.constructor, values, self.ty)
        return values[0] if len(values) == 1 else builder.tuple(values)

    def unpack(
        self, builder: Builder, residual: Value, saved: Sequence[Var], copier: Copier
    ) -> None:
        """Bind the parts of a tuple, or a single value."""
        assert self.constructor is None
        if len(saved) == 1:
            copier.env[saved[0]] = residual.atom
            return
        assert isinstance(self.ty, TupleType)
        for index, (var, ty) in enumerate(zip(saved, self.ty.fields, strict=True)):
            field = TupleGet(residual.atom, index, ty, span=builder.span)
            builder.bindings.append(Binding(copier.fresh(var, ty), field))

    def pattern(
        self, saved: Sequence[Var], types: Sequence[Type], copier: Copier, span: Span
    ) -> ConstructorPattern:
        """Return the pattern that binds what a constructor's value holds."""
        assert self.constructor is not None
        assert isinstance(self.ty, AdtType)
        fields = tuple(
            BindPattern(copier.fresh(v, t), span=span) for v, t in zip(saved, types, strict=True)
        )
        return ConstructorPattern(self.ty.name, self.constructor, fields, span=span)
