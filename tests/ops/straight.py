"""Values of straight-line code while a test runs it, call by call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyrelay.ir.expr import Constant, Expr, Tuple, TupleGet
from pyrelay.lower_torch.constants import is_host_number, tensor_constant
from tests.ops.programs import CPU


def atoms(values: Mapping[Expr, Any]) -> Callable[[Expr], Any]:
    """Return what finds the value of what is no call, from the values of variables."""

    def atom(expr: Expr) -> Any:
        match expr:
            case Tuple(fields):
                return tuple(map(atom, fields))
            case TupleGet(value, index):
                return atom(value)[index]
            case Constant():
                return expr.value if is_host_number(expr) else tensor_constant(expr, CPU)
            case _:
                return values[expr]

    return atom
