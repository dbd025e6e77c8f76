"""Which attributes of a call the text writes, and in which of two forms.

In a typed module a checked call has all attributes of its operator in normal form. The text leaves
out those at their default, and writes a constant dim as a plain number where the parameter's
`convert` makes a dim of it again. Everywhere else all attributes stand as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..ir.declaration.attribute_kinds import static
from ..ir.declaration.attributes import WrongAttribute, bind_attr, same
from ..ir.nested import map_nested
from ..ir.op import Missing, Op, Param


def written(op: Op, attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a checked call that its text must have.

    They are such that `bind_attrs` gives all attributes back; where it cannot, all are there.
    """
    if list(attrs) != [p.name for p in op.attributes]:
        return dict(attrs)
    shown: dict[str, Any] = {}
    for param in op.attributes:
        value = attrs[param.name]
        if not _is_bound(op, param, {param.name: value}, value):
            return dict(attrs)
        if param.default is not Missing.REQUIRED and _is_bound(op, param, {}, value):
            continue
        plain = map_nested(value, static)
        shown[param.name] = plain if _is_bound(op, param, {param.name: plain}, value) else value
    return shown


def _is_bound(op: Op, param: Param, attrs: Mapping[str, Any], value: Any) -> bool:
    """Return whether an attribute of a call with `attrs` becomes a value."""
    try:
        return same(bind_attr(op, param, attrs), value)
    except WrongAttribute:
        return False
