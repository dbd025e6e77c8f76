"""Functions in place: loops as `while True`, calls of them in tail position as jumps; and code that
would nest too deeply, taken out of line."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from ...ir.expr import Call, Function, Var
from ...ir.traverse import Steps
from ...kernels.function_plan import Planned
from .exits import Assigned, Exit, InLoop, Loop, Outcome, Returned, chain, final_exit
from .frame import Frame, Mode
from .liveness import Region
from .writer import Writer

Write: TypeAlias = Callable[[Exit], Steps[None]]

MOST_LOOPS: Final = 12
"""Python allows 20 nested blocks in a function."""


def enter(writer: Writer, call: Call, region: Region, position: int, exit_: Exit) -> Steps[None]:
    """Write the body of a function in place where it is called."""
    callee = writer.program.plan.callee(call)
    assert callee is not None
    args = writer.arguments(call)
    params = [writer.names.of(p) for p in callee.function.params]
    _assign(writer, params, args)
    inner = writer.live.region(callee.function)
    dying = writer.dying(region, position)
    kept = _kept_params(exit_)
    writer.delete([v for v in dying if v not in inner.last and writer.names.of(v) not in kept])
    used = [v for v in dying if v in inner.last and writer.names.of(v) not in kept]
    if not callee.has_jumps:
        inner.inherited = set(used)
        define_params(writer, callee.function)
        yield writer.block(callee.function.body, inner, exit_)
    elif writer.frame.loops >= MOST_LOOPS:
        yield outline(writer, exit_, lambda e: _loop(writer, callee, inner, params, e), used)
    else:
        loop = yield write_loop(writer, callee, inner, params, exit_)
        writer.delete(used if not isinstance(final_exit(exit_), Returned | Outcome) else ())
        writer.code.at(call.span)
        _go_on(writer, loop)


def _loop(
    writer: Writer, planned: Planned, region: Region, params: Sequence[str], exit_: Exit
) -> Steps[None]:
    yield write_loop(writer, planned, region, params, exit_)


def write_loop(
    writer: Writer, planned: Planned, region: Region, params: Sequence[str], exit_: Exit
) -> Steps[Loop]:
    """Write a loop whose parameters have their first values."""
    writer.loops_made += 1
    loop = Loop(planned, writer.loops_made, tuple(params), exit_, _flag(writer, exit_))
    function = planned.function
    if not function.type_params:
        define_params(writer, function)
    with writer.nested() as statements:
        writer.frame.loops += 1
        if function.type_params:
            # Its sizes may be others each time round.
            define_params(writer, function)
        yield writer.block(function.body, region, InLoop(loop))
        writer.frame.loops -= 1
    if statements and isinstance(statements[-1], ast.Continue):
        statements.pop()
    writer.code.at(function.span)
    writer.emit(writer.code.forever(statements))
    return loop


def define_params(writer: Writer, function: Function) -> None:
    """Bring the parameters into scope, their values assigned."""
    for param in function.params:
        writer.define(param)


def is_jump(writer: Writer, call: Call, exit_: Exit) -> bool:
    """Return whether a call in tail position calls a loop around it."""
    callee = writer.program.plan.callee(call)
    return callee is not None and any(loop.planned is callee for loop in chain(exit_))


def jump(writer: Writer, call: Call, region: Region, position: int, exit_: Exit) -> None:
    """Write a call of an enclosing loop."""
    callee = writer.program.plan.callee(call)
    loop = next(found for found in chain(exit_) if found.planned is callee)
    args = writer.nodes(call.args)
    if isinstance(exit_, InLoop) and loop in _here(exit_):
        _assign(writer, loop.params, args)
        kept = _kept_params(exit_)
        dying = writer.dying(region, position)
        writer.delete([v for v in dying if writer.names.of(v) not in kept])
        _go_to(writer, loop, exit_)
        return
    number = writer.code.literal(loop.number)
    writer.emit(writer.code.returned(writer.code.tuple([number, *args])))


def leave(writer: Writer, exit_: InLoop) -> None:
    """Write the way out of all loops, the value assigned."""
    if exit_.loop.flag is not None:
        writer.assign(exit_.loop.flag, writer.code.literal(-1))
    writer.emit(writer.code.leave())


def follow_outcome(writer: Writer, outcome: str, exit_: InLoop) -> None:
    """Write what follows an outlined piece inside loops: a jump, or the way out with the value."""
    code = writer.code

    def part(index: int) -> ast.expr:
        return code.item(writer.load(outcome), code.literal(index))

    for loop in _here(exit_):
        test = code.compare(ast.Eq(), part(0), code.literal(loop.number))
        with writer.nested() as statements:
            _assign(writer, loop.params, [part(i + 1) for i in range(len(loop.params))])
            _go_to(writer, loop, exit_)
        writer.emit(code.branch(test, statements, ()))
    match final_exit(exit_):
        case Outcome():
            writer.emit(code.returned(writer.load(outcome)))
        case Returned():
            writer.emit(code.returned(part(1)))
        case Assigned(name):
            if name is not None:
                writer.assign(name, part(1))
            leave(writer, exit_)


def _assign(writer: Writer, names: Sequence[str], values: Sequence[ast.expr]) -> None:
    """Assign parameters at once, those left out that already have the value."""
    changed = [
        (n, v)
        for n, v in zip(names, values, strict=True)
        if not (isinstance(v, ast.Name) and v.id == n)
    ]
    if changed:
        writer.frame.writes.update(n for n, _ in changed)
        writer.emit(writer.code.assign_all([n for n, _ in changed], [v for _, v in changed]))


def _here(exit_: Exit) -> list[Loop]:
    """Return the loops of the Python function being written, innermost first."""
    found: list[Loop] = []
    while isinstance(exit_, InLoop):
        found.append(exit_.loop)
        exit_ = exit_.loop.exit
    return found


def _kept_params(exit_: Exit) -> set[str]:
    """Return the names that a jump may just have assigned."""
    return {name for loop in _here(exit_) for name in loop.params}


def _flag(writer: Writer, exit_: Exit) -> str | None:
    """Return the flag of a loop in tail position of a loop, where one is needed."""
    if not isinstance(exit_, InLoop):
        return None
    outer = exit_.loop
    if outer.flag is not None:
        return outer.flag
    leaves_alone = not isinstance(outer.exit, InLoop | Assigned)
    return None if leaves_alone else writer.names.fresh("going_on")


def _go_to(writer: Writer, loop: Loop, exit_: InLoop) -> None:
    if exit_.loop is loop:
        writer.emit(writer.code.again())
        return
    if exit_.loop.flag is not None:
        writer.assign(exit_.loop.flag, writer.code.literal(loop.number))
    writer.emit(writer.code.leave())


def _go_on(writer: Writer, loop: Loop) -> None:
    """Write what follows a loop in tail position of another: that one goes round, or is left."""
    if not isinstance(loop.exit, InLoop):
        return
    code = writer.code
    if loop.flag is None:
        writer.emit(code.again())
        return
    number = code.literal(loop.exit.loop.number)
    test = code.compare(ast.Eq(), writer.load(loop.flag), number)
    writer.emit(code.branch(test, [code.again()], ()))
    writer.emit(code.leave())


def outline(writer: Writer, exit_: Exit, write: Write, used: Sequence[Var]) -> Steps[None]:
    """Write a piece of code as a function of its own and call it; `used` dies with the piece."""
    outer = exit_ if isinstance(exit_, InLoop) else None
    inner_exit: Exit = Returned() if outer is None else Outcome(outer)
    inner_exit = exit_ if isinstance(exit_, Outcome) else inner_exit
    frame = Frame(writer.frame.mode, writer.frame.level + 1)
    code, definitions = writer.code, writer.definitions
    with writer.inside(frame):
        writer.definitions = 0
        yield write(inner_exit)
        writer.ensure_yield()
        writer.definitions = definitions
    name = writer.program.outlined_name(writer.home, "part")
    params = frame.free()
    writer.written.append(code.function(name, params, frame.statements))
    result: ast.expr = code.call(code.name(name), [writer.load(p) for p in params])
    _use(writer, result, exit_, used)


def _use(writer: Writer, result: ast.expr, exit_: Exit, used: Sequence[Var]) -> None:
    code = writer.code
    if isinstance(exit_, Returned | Outcome):
        writer.emit(code.returned(result))
        return
    if writer.frame.mode is Mode.STEPS:
        result = writer.step(result, is_tail=False)
    match exit_:
        case Assigned(name):
            writer.give(name, result)
            writer.delete(used)
        case InLoop():
            outcome = writer.names.fresh("outcome")
            writer.assign(outcome, result)
            writer.delete(used)
            follow_outcome(writer, outcome, exit_)
