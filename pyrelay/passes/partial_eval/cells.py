"""References under partial evaluation: what they hold, as far as that is known.

All writes stay. A read of what is known is that value, so the writes may turn out dead.
"""

from __future__ import annotations

from ...ir.block_builder import BlockBuilder
from ...ir.expr import Expr, RefCreate, RefRead, RefWrite, Tuple
from .residual import Residual
from .values import Value, made


def reference(
    residual: Residual,
    cells: dict[Expr, Value],
    node: RefCreate | RefRead | RefWrite,
    content: Value,
    code: BlockBuilder,
) -> Value:
    """Return the value of a node on references; `cells` is what they hold, before and after.
    `content` is what is written, or what a new one holds first."""
    match node:
        case RefRead(cell):
            if cell not in cells:
                cells[cell] = residual.bind("read", node, code)
            return cells[cell]
        case RefWrite(cell):
            for other in [c for c in cells if not _are_apart(residual, c, cell)]:
                del cells[other]
            cells[cell] = content
            residual.bind("_", node, code)
            return made(Tuple((), node.ty, span=node.span), None, ())
        case RefCreate():
            new = residual.bind("ref", node, code)
            cells[new.atom] = content
            return new


def _are_apart(residual: Residual, left: Expr, right: Expr) -> bool:
    """Return whether two references are certainly not the same: both are made here."""
    return all(isinstance(residual.definitions.get(c), RefCreate) for c in (left, right))
