"""Names that no text has, for values that are translated already."""

from __future__ import annotations

import ast
from typing import final

from ..program.context import Context
from ..program.environment import Bound


@final
class _Hidden(str):
    """A name that is equal to itself alone, and shown as the expression that it stands for."""

    __slots__ = ()
    __eq__ = object.__eq__
    __hash__ = object.__hash__


def hidden_name(cx: Context, node: ast.expr, entry: Bound) -> ast.Name:
    """Return a new name, which stands for the value of an expression that is not translated
    again."""
    name = _Hidden(ast.unparse(node))
    cx.env.set(name, entry)
    return ast.copy_location(ast.Name(name, ast.Load()), node)
