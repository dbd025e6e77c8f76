"""Programs of any size, built as IR the way a translator would build them: without types.

Each gives a module whose entry `main` takes a tensor; `with_gradient` adds the function `gradient`.
"""

from __future__ import annotations

from typing import Final

from pyrelay.diagnostics.source import NOWHERE
from pyrelay.ir.expr import (
    Binding,
    Call,
    Constant,
    Differentiation,
    Expr,
    Flavour,
    Function,
    GlobalVar,
    If,
    LetBlock,
    RefCreate,
    RefRead,
    RefWrite,
    Rule,
    Transform,
    Tuple,
    Var,
)
from pyrelay.ir.module import Module
from pyrelay.ir.types import INT, Type, float64, tensor_type
from pyrelay.operators.table import BY_NAME

VECTOR: Final = tensor_type(float64, 2)


def call(op: str, *args: Expr) -> Call:
    """Return an operator's call."""
    return Call(BY_NAME[op], args, span=NOWHERE)


def number(value: float) -> Constant:
    """Return a weak number."""
    return Constant(value, span=NOWHERE)


def var(name: str, ty: Type | None = None) -> Var:
    """Return a variable."""
    return Var(name, ty, span=NOWHERE)


def tuple_of(*fields: Expr) -> Tuple:
    """Return a tuple."""
    return Tuple(fields, span=NOWHERE)


def module_of(body: Expr, *params: Var) -> Module:
    """Return a module with one function."""
    return Module({"main": Function(params, body, span=NOWHERE)}, {})


def block(bindings: list[Binding], body: Expr) -> Expr:
    """Return one let block; that some of its bindings have effects is for the analysis to find."""
    return LetBlock(tuple(bindings), body, Flavour.PURE, span=NOWHERE)


def chain(length: int) -> Module:
    """Return the sine of the sine, so many times, and the sum of the last."""
    x = var("x", VECTOR)
    last: Expr = x
    bindings: list[Binding] = []
    for _ in range(length):
        last = _bind(bindings, call("sin", last))
    return module_of(block(bindings, call("sum", last)), x)


def alternating(length: int) -> Module:
    """Return `length` bindings: in turn a value computed, and that value written to a cell or read
    back from it. The result is the sum of the last value and what is in the cells."""
    x, cell, count = var("x", VECTOR), var("cell"), var("count")
    last: Expr = x
    bindings = [
        Binding(cell, RefCreate(x, span=NOWHERE)),
        Binding(count, RefCreate(number(0), span=NOWHERE)),
    ]
    for _ in range(length // 4):
        last = _bind(bindings, call("sin", last))
        _bind(bindings, RefWrite(cell, last, span=NOWHERE), "written")
        writes = _bind(bindings, call("add", RefRead(count, span=NOWHERE), number(1)), "writes")
        _bind(bindings, RefWrite(count, writes, span=NOWHERE), "counted")
    seen = tuple_of(call("sum", RefRead(cell, span=NOWHERE)), RefRead(count, span=NOWHERE))
    return module_of(block(bindings, tuple_of(call("sum", last), seen)), x)


def _bind(bindings: list[Binding], value: Expr, name: str = "x") -> Var:
    bound = var(name)
    bindings.append(Binding(bound, value))
    return bound


def nested(depth: int, *, in_tail: bool) -> Module:
    """Return ifs each in the other arm of the one before. `n` of them go on to the next; the one
    that stops takes `x * (n + 1)`. Out of the tail, each that was entered adds `x`."""
    x, n = var("x", VECTOR), var("n", INT)
    body: Expr = call("multiply", x, number(depth + 1.0))
    for level in reversed(range(depth)):
        test = call("less", number(level), n)
        body = If(test, body, call("multiply", x, number(level + 1.0)), span=NOWHERE)
        if not in_tail:
            inner = var("inner")
            body = block([Binding(inner, body)], call("add", inner, x))
    return module_of(call("sum", body), x, n)


def with_gradient(module: Module, rule: Rule = Rule.GRAD, **flags: bool) -> Module:
    """Return the module with `gradient`: that of `main` by its first parameter."""
    main = module.functions["main"]
    params = tuple(var(p.name, p.ty) for p in main.params)
    options = Differentiation((0,), **flags)
    transform = Transform(rule, GlobalVar("main", span=NOWHERE), options, span=NOWHERE)
    body = Call(transform, params, span=NOWHERE)
    return module.with_functions({"gradient": Function(params, body, span=NOWHERE)})
