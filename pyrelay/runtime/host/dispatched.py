"""A call of an operator that may have an implementation from outside: chosen while it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...ir.dims import Dim
from ...ir.expr import Call, type_of
from ...ir.types import int64
from ...lower_torch.terms import Form, Term, dtype_of, form_of, leaf
from ...lower_torch.trace import static_leaf

if TYPE_CHECKING:
    from .body import BodyWriter


def dispatched_call(writer: BodyWriter, call: Call, operands: Sequence[Term | None]) -> Term:
    """Return the value of a dispatched call: operands first, then the sizes in its attributes."""
    code = writer.code
    name, dispatched = writer.program.pool.dispatched(call)

    def size(dim: Dim) -> Term:
        return leaf(lambda: writer.size(dim), Form.NUMBER, int64)

    given = [static_leaf(code, None) if t is None else t for t in operands]
    inputs = (*given, *map(size, dispatched.sizes))
    ty = type_of(call)
    return Term(inputs, lambda *nodes: code.call(code.name(name), nodes), form_of(ty), dtype_of(ty))
