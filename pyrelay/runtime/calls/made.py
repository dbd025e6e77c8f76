"""Functions that calls return: each remembers its maker, and the arguments of the call.

A transform looks into the functions that it is passed. One that a call has made is a Python
function by then, so the program of the transform makes it again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, final

from ...dataclass import dataclass
from ...ir.expr import RefCreate
from ...ir.module import Module
from ...ir.op import Op
from ...ir.traverse import nodes_of
from ...ir.types import FnType, Type
from ...translate.source.definition import Definition, DerivedFunction, MadeFunction
from ...translate.source.residual import Residual
from ..models.model import Model
from ..models.model_io import Arguments, Models
from ..models.records import TensorRecord

_MADE: Final = "__made__"


@final
@dataclass(frozen=True, slots=True)
class Made:
    """The origin of a function: the function that returned it, and the values that it captured, by
    name."""

    function: MadeFunction
    values: Mapping[str, Any]


def made_by(value: Any) -> Made | None:
    """Return the call that made a function; None for anything else."""
    found = getattr(value, _MADE, None)
    return found if isinstance(found, Made) else None


def is_made_again(result: Type, module: Module) -> bool:
    """Return whether the result of a program is a function that may be made again: one that shares
    no reference with others."""
    return isinstance(result, FnType) and not any(
        isinstance(node, RefCreate) for node in nodes_of(module)
    )


def note_made(
    function: Callable[..., Any], maker: Definition, names: list[str], args: Arguments
) -> None:
    """Let a function remember the call that made it, unless models are among its arguments."""
    if any(isinstance(v, Model | Models | TensorRecord) for v in args.values) or args.optimizers:
        return
    functions = {n: f for n, f in args.statics if isinstance(f, _FUNCTIONS)}
    statics = tuple((n, v) for n, v in args.statics if n not in functions)
    values: dict[str, Any] = {}
    for name, value in zip(names, args.values, strict=True):
        made = made_by(value)
        if made is None:
            values[name] = value
            continue
        functions[name] = made.function
        values.update((f"{name}.{n}", v) for n, v in made.values.items())
    by = MadeFunction(maker, statics, tuple(functions.items()))
    setattr(function, _MADE, Made(by, values))


_FUNCTIONS: Final = (Definition, DerivedFunction, Op, MadeFunction, Residual)
