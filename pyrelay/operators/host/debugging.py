"""Operators for a debugger: where the program stops, and the values of the source's names.

A program with either is compiled as it is written, so that what a debugger steps through is the
source: nothing is inlined, moved or fused (`runtime.compile.program`). The evaluator passes both
by.
"""

from __future__ import annotations

from typing import Any, Final, TypeGuard

from ...ir.declaration import attribute_kinds as kinds
from ...ir.expr import Call, Expr
from ...ir.module import Module
from ...ir.op import (
    Effect,
    Host,
    NoGradient,
    Op,
    Param,
    RuleCall,
    ShapeBehaviour,
    attribute,
    operand,
)
from ...ir.traverse import post_order
from ...ir.types import UNIT, Type


def _gives_nothing(_: RuleCall) -> Type:
    return UNIT


def _pass_by(*_: Any, **__: Any) -> tuple[()]:
    return ()


def _of_debugger(name: str, doc: str, *params: Param) -> Op:
    """Return an operator that a debugger looks for; it does nothing else."""
    return Op(
        name=name,
        doc=doc,
        params=params,
        type_rule=_gives_nothing,
        # The value of a local must be there, and when: like a value that is printed.
        effect=Effect.IO,
        shape=ShapeBehaviour.VARIADIC,
        lowering=Host(_pass_by),
        grad=NoGradient("gives nothing"),
        samples=lambda: (),
    )


breakpoint_: Final = _of_debugger("breakpoint", "Stops in the debugger, as Python's breakpoint.")
debug_line: Final = _of_debugger(
    "debug_line", "The begin of a statement of the source, for a debugger."
)
debug_local: Final = _of_debugger(
    "debug_local",
    "The value that a local name of the source has from here on, for a debugger.",
    operand("value"),
    attribute("name", convert=kinds.text),
)


DEBUGGING: Final = (breakpoint_, debug_line, debug_local)


def is_debugging(expr: Expr) -> TypeGuard[Call]:
    """Return whether an expression is there for a debugger alone."""
    return isinstance(expr, Call) and expr.callee in DEBUGGING


def is_debugged(module: Module) -> bool:
    """Return whether a program is compiled for a debugger."""
    bodies = (post_order(function) for function in module.functions.values())
    return any(is_debugging(node) for nodes in bodies for node in nodes)
