"""Facts about names and about parts of their values, such as `x.left` and `x[0]`."""

from __future__ import annotations

import ast

from ..program.context import Context
from ..program.environment import Bound


def entry_of(cx: Context, node: ast.expr) -> Bound | None:
    """Return the facts about a name, or about a part of one; None if there are none. What is known
    of a part whose owner's class is not known has no variable."""
    path: list[str] = []
    step = part_of(node)
    while step is not None:
        node, key = step
        path.append(key)
        step = part_of(node)
    found = cx.named(node)
    for key in reversed(path):
        if not isinstance(found, Bound):
            return None
        found = (found.parts or {}).get(key) or (found.narrowed or {}).get(key)
    return found if isinstance(found, Bound) else None


def part_of(node: ast.expr) -> tuple[ast.expr, str] | None:
    """Return the owner of a part, and which part it is; None for what is no part."""
    match node:
        case ast.Attribute(value=owner, attr=name):
            return owner, name
        case ast.Subscript(value=owner, slice=ast.Constant(value=int(place))):
            return owner, f"[{place}]"
        case _:
            return None
