"""Updates of a part of a tensor, which stay calls where the tensor comes from elsewhere.

The host makes such an update in place where the program owns the tensor, at the cost of the part; a
kernel that gives the whole tensor costs the whole, in a loop each round. What the same function has
just computed has cost the whole anyway.
"""

from __future__ import annotations

from collections.abc import Collection

from ...ir.declaration.storage import overwritten_operand
from ...ir.expr import Call, Expr
from ...ir.op import Host, Op, View


def computes(value: Expr) -> bool:
    """Return whether a value is made anew, element by element."""
    return (
        isinstance(value, Call)
        and isinstance(value.callee, Op)
        and not isinstance(value.callee.lowering, View | Host)
    )


def updates_a_part(value: Expr, computed: Collection[Expr]) -> bool:
    """Return whether a value is a tensor with a part changed that comes from elsewhere: that is not
    among the variables whose values have been computed, other than by such an update."""
    if not isinstance(value, Call) or not isinstance(value.callee, Op):
        return False
    place = overwritten_operand(value.callee)
    return place is not None and value.args[place] not in computed
