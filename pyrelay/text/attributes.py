"""Which attributes of a call the text writes, and in which of two forms; options of transforms.

In a typed module a checked call has all attributes of its operator in normal form. The text leaves
out those at their default, and writes a constant dim as a plain number where the parameter's
`convert` makes a dim of it again. Everywhere else all attributes stand as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, cast

from ..ir.calls.attributes import WrongAttribute, bind_attr, same
from ..ir.declaration.attribute_kinds import static
from ..ir.expr import Transform
from ..ir.nested import map_nested
from ..ir.op import Missing, Op, Param
from .lexis import string_text
from .types import items_text


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


def transform_text(transform: Transform) -> str:
    """Return a transform with its options, those that are not the default."""
    options = transform.options
    given = {f.name: (getattr(options, f.name), f.default) for f in fields(options)}
    given["captures"], given["policy"] = (transform.captures, 0), (transform.policy, ())
    shown = [f"{n}={_option_text(v)}" for n, (v, default) in given.items() if v != default]
    return f"{transform.rule.value}{{{', '.join(shown)}}}"


def _option_text(value: object) -> str:
    """Return an option of a transform: None, a bool or a number, or a tuple of such."""
    if isinstance(value, tuple):
        return items_text([_option_text(v) for v in cast("tuple[object, ...]", value)])
    return string_text(value) if isinstance(value, str) else str(value)
