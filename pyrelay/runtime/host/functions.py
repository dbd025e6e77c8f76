"""Python functions: units in their forms, function values, calls, pieces taken out of line."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Final

from ...ir.dims import DimVar
from ...ir.expr import Binding, Call, Constructor, Function, GlobalVar, Var
from ...ir.traverse import Steps
from ...kernels.function_plan import Planned
from . import loops
from .debugging import first_line
from .exits import Returned
from .frame import Frame, Mode
from .trampoline import DEPTH, STEPS
from .writer import Writer

MOST_DEFINITIONS: Final = 8
"""Functions nested more deeply than this are made by a function of their own."""


def modes_of(writer: Writer, planned: Planned) -> list[Mode]:
    """Return the forms in which a unit is written where the writer stands."""
    if not planned.is_deep:
        return [Mode.SHALLOW]
    return [Mode.STEPS] if writer.frame.mode is Mode.STEPS else [Mode.PLAIN, Mode.STEPS]


def form_name(base: str, mode: Mode) -> str:
    """Return the name of a form of a unit."""
    return f"{base}{STEPS}" if mode is Mode.STEPS else base


def write_unit(writer: Writer, planned: Planned, base: str, mode: Mode) -> Steps[ast.FunctionDef]:
    """Write one form of a unit as a Python function."""
    function = planned.function
    params = [writer.names.of(p) for p in function.params]
    frame = Frame(mode, writes={*params, "depth"} if mode is Mode.PLAIN else set(params))
    with writer.inside(frame):
        writer.live = writer.program.liveness(planned)
        writer.forget_sizes([p.name for p in function.type_params if isinstance(p, DimVar)])
        writer.code.at(first_line(function))
        if mode is Mode.PLAIN:
            _check_budget(writer, base, params)
        yield _write_body(writer, planned, params)
        writer.ensure_yield()
    for name in frame.free():
        writer.frame.read(name)
    names = [*params, "depth"] if mode is Mode.PLAIN else params
    writer.code.at(function.span)
    return writer.code.function(form_name(base, mode), names, frame.statements)


def _write_body(writer: Writer, planned: Planned, params: Sequence[str]) -> Steps[None]:
    function = planned.function
    region = writer.live.region(function)
    if not planned.has_jumps:
        loops.define_params(writer, function)
        yield writer.block(function.body, region, Returned())
    else:
        yield loops.write_loop(writer, planned, region, params, Returned())


def _check_budget(writer: Writer, base: str, params: Sequence[str]) -> None:
    """Go over to the trampoline when the budget of depth is spent."""
    code = writer.code
    spent = code.compare(ast.Lt(), code.name("depth"), code.literal(1))
    steps = code.call(
        _function(writer, form_name(base, Mode.STEPS)), [writer.load(p) for p in params]
    )
    over = code.returned(code.call(code.name("run_steps"), [steps]))
    writer.emit(code.branch(spent, [over], ()))


def _function(writer: Writer, name: str) -> ast.expr:
    """Return a Python function by its name; local ones are captured like variables."""
    is_global = name.removesuffix(STEPS) in writer.program.function_names()
    return writer.code.name(name) if is_global else writer.load(name)


def write_local(writer: Writer, bindings: Sequence[Binding]) -> Steps[None]:
    """Write the functions that a let block binds, but for those that stand in place."""
    found: list[Planned] = []
    for binding in bindings:
        assert isinstance(binding.value, Function)
        planned = writer.program.plan.by_function[binding.value]
        if planned.place is None:
            writer.bases[planned] = writer.names.of_function(binding.var)
            writer.define_as(binding.var, _value_name(writer, planned))
            found.append(planned)
    if found:
        yield _define(writer, found)


def write_value(writer: Writer, function: Function) -> Steps[str]:
    """Write a function that is only a value; return the name that has it."""
    planned = writer.program.plan.by_function[function]
    writer.bases[planned] = writer.names.fresh(planned.name)
    yield _define(writer, [planned])
    return _value_name(writer, planned)


def _value_name(writer: Writer, planned: Planned) -> str:
    """Return the name of the value of a local function; one that does not escape is a form of its
    own."""
    base = writer.bases[planned]
    if planned.is_deep and planned.escapes:
        return f"{base}__value"
    return form_name(base, modes_of(writer, planned)[0])


def _define(writer: Writer, found: Sequence[Planned]) -> Steps[None]:
    """Write local functions here, or, inside a loop, through a function that makes them: Python's
    closures see the latest value of a variable, and a loop's variables change."""
    names = [n for p in found for n in _names(writer, p)]
    if not writer.frame.loops and writer.definitions < MOST_DEFINITIONS:
        writer.frame.writes.update(names)
        yield _define_here(writer, found)
        return
    code, definitions = writer.code, writer.definitions
    frame = Frame(writer.frame.mode, writes=set(names))
    with writer.inside(frame):
        writer.definitions = 0
        yield _define_here(writer, found)
        writer.emit(code.returned(code.tuple([code.name(n) for n in names])))
        writer.definitions = definitions
    maker = writer.program.outlined_name(writer.home, "make")
    params = frame.free()
    writer.written.append(code.function(maker, params, frame.statements))
    made = code.call(code.name(maker), [writer.load(p) for p in params])
    writer.frame.writes.update(names)
    writer.emit(code.unpack(names, made))


def _names(writer: Writer, planned: Planned) -> list[str]:
    base = writer.bases[planned]
    names = [form_name(base, m) for m in modes_of(writer, planned)]
    value = _value_name(writer, planned)
    return names if value in names else [*names, value]


def _define_here(writer: Writer, found: Sequence[Planned]) -> Steps[None]:
    writer.definitions += 1
    for planned in found:
        for mode in modes_of(writer, planned):
            writer.emit((yield write_unit(writer, planned, writer.bases[planned], mode)))
    writer.definitions -= 1
    for planned in found:
        base = writer.bases[planned]
        if not (planned.is_deep and planned.escapes):
            continue
        has_plain = Mode.PLAIN in modes_of(writer, planned)
        plain = writer.code.name(base) if has_plain else writer.code.literal(None)
        steps = writer.code.name(form_name(base, Mode.STEPS))
        value = writer.code.call(writer.code.name("DeepFunction"), [plain, steps])
        writer.assign(f"{base}__value", value)


def call(writer: Writer, expr: Call, *, is_tail: bool) -> ast.expr:
    """Return a call of a unit or of a function value, in the form that the mode asks for."""
    args = writer.arguments(expr)
    callee = writer.program.plan.callee(expr)
    if callee is None:
        assert isinstance(expr.callee, Var | GlobalVar | Constructor)
        return _call_value(writer, writer.nodes([expr.callee])[0], args, is_tail=is_tail)
    is_global = callee.owner is None
    base = writer.program.name(callee) if is_global else writer.bases[callee]
    if not callee.is_deep:
        return writer.code.call(_function(writer, base), args)
    match writer.frame.mode:
        case Mode.STEPS:
            steps = _function(writer, form_name(base, Mode.STEPS))
            return writer.step(writer.code.call(steps, args), is_tail=is_tail)
        case Mode.PLAIN:
            return writer.code.call(_function(writer, base), [*args, _less_depth(writer)])
        case Mode.SHALLOW:
            depth = writer.code.literal(DEPTH)
            return writer.code.call(_function(writer, base), [*args, depth])


def _call_value(
    writer: Writer, function: ast.expr, args: list[ast.expr], *, is_tail: bool
) -> ast.expr:
    code = writer.code
    if not writer.program.deep_values or writer.frame.mode is Mode.SHALLOW:
        return code.call(function, args)
    if writer.frame.mode is Mode.PLAIN:
        return code.method(function, "plain", *args, _less_depth(writer))
    return writer.step(code.method(function, "steps", *args), is_tail=is_tail)


def _less_depth(writer: Writer) -> ast.expr:
    code = writer.code
    # Pieces taken out of line are Python calls too.
    spent = code.literal(1 + writer.frame.level)
    return code.binary(ast.Sub(), writer.load("depth"), spent)
