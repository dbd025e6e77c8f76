"""Parameters of transformed functions: `relay.grad(f)` takes those of `f`."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Final, final

from ...dataclass import dataclass
from ...ir.expr import Expr
from ...ir.intrinsics import Intrinsic
from ..names.static import called_meaning, static_meaning
from ..program.context import Context
from ..source.definition import Definition, DerivedFunction, bottom
from .arguments import Callee, Slot
from .functions import defaults_of, parameter_names

_TUPLES: Final = (Intrinsic.JVP, Intrinsic.HVP)
"""Transforms whose functions take two tuples: primals and tangents."""

_ALIKE: Final = (
    Intrinsic.GRAD,
    Intrinsic.VALUE_AND_GRAD,
    Intrinsic.VJP,
    Intrinsic.VMAP,
    Intrinsic.HESSIAN,
    Intrinsic.JACFWD,
    Intrinsic.JACREV,
    Intrinsic.LINEARIZE,
    Intrinsic.CHECKPOINT,
    Intrinsic.AUTOCAST,
)
"""Transforms whose functions take the parameters of the function that they transform."""


@final
@dataclass(frozen=True, slots=True)
class Taken:
    """The parameters by name, in order, the defaults of some, and static ones beside them."""

    names: tuple[str, ...]
    defaults: Mapping[str, Expr]
    statics: tuple[str, ...] = ()

    def callee(self, node: ast.expr) -> Callee:
        """Return the function, written as `node`, as one that arguments are matched with."""
        slots = [Slot(n, n not in self.defaults) for n in self.names]
        slots += [Slot(n, required=False, keyword_only=True) for n in self.statics]
        text = ast.unparse(node)
        return Callee(text, tuple(slots), f"{text}({', '.join((*self.names, *self.statics))})")


def taken_by(cx: Context, node: ast.expr) -> Taken | None:
    """Return the parameters of the function that a transform such as `relay.grad(f)` returns. None
    for calls of anything but transforms, and where the parameters of `f` are unknown."""
    layers: list[Intrinsic] = []
    while isinstance(node, ast.Call):
        intrinsic = called_meaning(cx, node)
        if intrinsic not in (*_TUPLES, *_ALIKE, Intrinsic.WITH_PARAMS) or not node.args:
            return None
        layers.append(intrinsic)
        node = node.args[0]
    names = parameter_names(cx, node) if layers else None
    if names is None:
        return None
    defaults = {} if Intrinsic.VMAP in layers[1:] else defaults_of(cx, node)
    found = Taken(names, defaults, () if Intrinsic.WITH_PARAMS in layers else _statics(cx, node))
    for layer in reversed(layers):
        if layer in _TUPLES:
            found = Taken(("primals", "tangents"), {}, found.statics)
        elif layer is Intrinsic.WITH_PARAMS:
            found = Taken(("params", *found.names), found.defaults)
    return found


def _statics(cx: Context, node: ast.expr) -> tuple[str, ...]:
    """Return the static parameters of a relay function."""
    found = static_meaning(cx, node)
    if not isinstance(found, Definition | DerivedFunction):
        return ()
    return tuple(p.name for p in cx.program.signature(bottom(found)).statics)
