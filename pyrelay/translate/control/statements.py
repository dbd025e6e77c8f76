"""Statements: blocks of them become let bindings around the value they end in."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ...diagnostics.catalogue.language import Unsupported
from ...diagnostics.catalogue.signatures import MissingReturn
from ...diagnostics.source import Span
from ...ir.block_builder import BlockBuilder
from ...ir.expr import Binding, Call, Expr, If, Var
from ...ir.intrinsics import Intrinsic
from ...ir.traverse import Steps
from ...operators.host.failing import check, fail
from ...operators.host.text import stop
from ..blocks.assumptions import assume
from ..blocks.blocks import Copy, Cursor, Enclosing, FunctionEnd, cursor, following
from ..blocks.closures import local_function, note_captures
from ..blocks.conditions import condition, narrows, never
from ..blocks.list_append import enter_grown
from ..calls.attributes import static_argument, static_values
from ..calls.mentions import unit
from ..calls.strings import Template, read_text
from ..lists.list_changes import assign_popped, change_list, is_change, takes_element
from ..names.alias_check import list_names, only_lists
from ..names.static import static_meaning, static_test
from ..program.context import Context
from ..program.environment import Bound, LocalFunction, Static
from ..program.instances import NotSupplied
from ..source.flow import analyse, leaves, reads, statements_in
from ..source.syntax import is_none
from .assignments import annotated, assign, augmented
from .branching import join, leave
from .debugging import note_line, note_locals
from .loops import head_span, loop, tail_loop


def block(cx: Context, at: Cursor | None, enclosing: Enclosing) -> Steps[Expr]:
    """Translate the statements from a place on, and their continuation."""
    code = BlockBuilder()
    span = enclosing.place
    while at is not None:
        at = _unfold(cx, at)
        if at is None:
            break
        stmt = at.body[at.place]
        assert isinstance(stmt, ast.stmt)
        span = head_span(cx, stmt)
        note_line(cx, span, code)
        cx.uses = []
        rest = following(at)
        match stmt:
            case _ if leaves(stmt):
                return code.close((yield _leave(cx, stmt, enclosing)))
            case ast.If() | ast.Match() if enclosing.flow.jumps(stmt):
                return code.close((yield leave(cx, stmt, rest, enclosing, block)))
            case ast.For() | ast.While() if enclosing.flow.jumps_back(stmt):
                whole = yield tail_loop(cx, stmt, code, enclosing, rest, block)
                return code.close(whole)
            case ast.FunctionDef():
                at = yield _definitions(cx, at, code)
            case _:
                yield statement(cx, stmt, code, enclosing)
                at = rest
    return code.close(enclosing.end.finish(cx, span))


def straight(
    cx: Context, at: Cursor | None, code: BlockBuilder, enclosing: Enclosing
) -> Steps[None]:
    """Translate statements that control never leaves, adding to the bindings."""
    while at is not None:
        at = _unfold(cx, at)
        if at is None:
            return
        stmt = at.body[at.place]
        assert isinstance(stmt, ast.stmt)
        note_line(cx, head_span(cx, stmt), code)
        cx.uses = []
        if isinstance(stmt, ast.FunctionDef):
            at = yield _definitions(cx, at, code)
        else:
            yield statement(cx, stmt, code, enclosing)
            at = following(at)


def statement(cx: Context, stmt: ast.stmt, code: BlockBuilder, enclosing: Enclosing) -> Steps[None]:
    """Translate one statement after which control goes on."""
    match stmt:
        case ast.If() | ast.Match():
            yield join(cx, stmt, code, enclosing, straight)
            cx.assigned.clear()  # noted where they were assigned
        case ast.For() | ast.While():
            yield loop(cx, stmt, code, enclosing, block)
            # In a gradient a loop is a frame of its own: noted where the next statement begins.
            cx.assigned.update(dict.fromkeys(cx.assigned))
        case _:
            translate = _SIMPLE.get(type(stmt))
            if translate is None:
                instead = "use assignments, `if`, loops, calls and `return`"
                cx.program.report(Unsupported(head_span(cx, stmt), "this statement", instead))
            else:
                yield translate(cx, stmt, code)
                note_locals(cx, code, head_span(cx, stmt))


# What is decided now: conditions that are known, and copies of layers.


def _unfold(cx: Context, at: Cursor) -> Cursor | None:
    """Return the place of the next statement that stays in the program."""
    here: Cursor | None = at
    while here is not None:
        step, rest = here.body[here.place], following(here)
        if isinstance(step, Copy):
            _enter_copy(cx, step)
            here = rest
        elif isinstance(step, ast.If):
            known = static_test(cx)(step.test)
            if known is None:
                return here
            here = cursor(step.body if known else step.orelse, rest)
        elif isinstance(step, ast.For) and is_layers(cx, step):
            here = cursor(_copies(cx, step), rest)
        elif isinstance(step, ast.Pass):
            here = rest
        else:
            return here
    return None


def is_layers(cx: Context, stmt: ast.For) -> bool:
    """Return whether a loop runs over `relay.layers(n)`."""
    if not isinstance(stmt.iter, ast.Call):
        return False
    return static_meaning(cx, stmt.iter.func) is Intrinsic.LAYERS


def _copies(cx: Context, stmt: ast.For) -> list[ast.stmt | Copy]:
    """Return the body of a loop over layers once for each of them."""
    assert isinstance(stmt.iter, ast.Call)
    count: object = None
    if len(stmt.iter.args) == 1 and not stmt.iter.keywords:
        wanted = static_values(cx, stmt.iter.args[0])
        count = static_argument(cx, stmt.iter.args[0], "the number of layers", wanted)
    if type(count) is not int:
        span = cx.span(stmt.iter)
        what, instead = "this use of `relay.layers`", "write `relay.layers(3)`"
        cx.program.report(Unsupported(span, what, instead))
        count = 0
    for leaving in _leaving(stmt):
        instead = "write an ordinary loop, which shares one set of parameters"
        cx.program.report(
            Unsupported(cx.span(leaving), "leaving a loop over `relay.layers`", instead)
        )
    steps: list[ast.stmt | Copy] = []
    for number in range(count):
        steps.append(Copy(stmt.target, number))
        steps += stmt.body
    return [*steps, Copy(stmt.target, None), *stmt.orelse]


def _leaving(stmt: ast.For) -> list[ast.stmt]:
    """Return the statements that leave or cut short a loop over layers."""
    found: list[ast.stmt] = []
    pending = list(stmt.body)
    while pending:
        current = pending.pop()
        match current:
            case ast.Break() | ast.Continue():
                found.append(current)
            case ast.If(body=then, orelse=otherwise):
                pending += (*then, *otherwise)
            case ast.Match(cases=cases):
                pending += (s for case in cases for s in case.body)
            case _:
                pass
    return found


def _enter_copy(cx: Context, copy: Copy) -> None:
    """Start the next copy of the body of a loop over layers, or end the last."""
    name = copy.target.id if isinstance(copy.target, ast.Name) else None
    is_first = copy.number == 0
    if copy.number is None:
        cx.layers = cx.layers[:-1]
        if name is not None:
            cx.statics.pop(name, None)
            cx.env.touch()
        return
    cx.layers = (*(cx.layers if is_first else cx.layers[:-1]), copy.number)
    if name is None:
        instead = "write `for i in relay.layers(n)`"
        cx.program.report(Unsupported(cx.span(copy.target), "this loop variable", instead))
        return
    cx.statics[name] = copy.number
    cx.bind(name, Bound(static=Static(copy.number)), cx.span(copy.target))


# Leaving a block.


def _leave(cx: Context, stmt: ast.stmt, enclosing: Enclosing) -> Steps[Expr]:
    span = cx.span(stmt)
    match stmt:
        case ast.Return(value=value):
            return (yield _return(cx, value, enclosing, span))
        case ast.Raise():
            return (yield _raise(cx, stmt))
        case ast.Expr():
            return (yield never(cx, stmt))
        case _ if enclosing.loop is None:
            return unit(span)  # in copies of layers, where leaving has been refused
        case ast.Break():
            return enclosing.loop.leave.finish(cx, span)
        case _:
            return enclosing.loop.again.finish(cx, span)


def _return(cx: Context, value: ast.expr | None, enclosing: Enclosing, span: Span) -> Steps[Expr]:
    if value is not None:
        return (yield cx.expression(value))
    if enclosing.returns is not None:
        path = "this returns nothing"
        return cx.refuse(MissingReturn(span, enclosing.function, enclosing.returns, path))
    return unit(span)


def _raise(cx: Context, stmt: ast.Raise) -> Steps[Expr]:
    span = cx.span(stmt)
    match stmt.exc:
        case ast.Call(func=func, args=[message], keywords=[]) if stmt.cause is None:
            words = (yield read_text(cx, message)).after(f"{ast.unparse(func)}: ")
        case ast.Name(id=name) | ast.Call(func=ast.Name(id=name), args=[]) if stmt.cause is None:
            words = Template(name)
        case _:
            instead = 'write `raise ValueError("what is wrong")`'
            return cx.refuse(Unsupported(span, "this form of `raise`", instead))
    if words.known is not None:
        return Call(fail, (), {"message": words.known}, span=span)
    return Call(stop, (words.expression(span),), {"assertion": False}, span=span)


# Nested functions.


def _definitions(cx: Context, at: Cursor, code: BlockBuilder) -> Steps[Cursor | None]:
    """Translate a nested `def`, with those that follow it if it calls them; return the place after
    them."""
    group: list[ast.FunctionDef] = []
    after: Cursor | None = at
    while after is not None:
        stmt = after.body[after.place]
        if not isinstance(stmt, ast.FunctionDef):
            break
        if group and not any(stmt.name in reads(f) for f in group):
            break
        group.append(stmt)
        after = following(after)
    yield _define(cx, group, code)
    return after


def _define(cx: Context, group: list[ast.FunctionDef], code: BlockBuilder) -> Steps[None]:
    variables: list[Var] = []
    for node in group:
        var = Var(node.name, span=head_span(cx, node))
        signature = yield _local_signature(cx, node, code)
        cx.bind(node.name, Bound(atom=var, function=signature), var.span)
        variables.append(var)
    bindings: list[Binding] = []
    for node, var in zip(group, variables, strict=True):
        try:
            function = yield local_function(cx, node)
        except NotSupplied:
            # It is only ever differentiated in a model, and is translated there.
            entry = cx.env.find(node.name)
            assert isinstance(entry, Bound)
            cx.env.set(node.name, replace(entry, atom=None))
            continue
        bindings.append(Binding(var, function))
        note_captures(cx, node, var.span)
    if bindings:
        code.bind_rec(bindings)


def _local_signature(
    cx: Context, node: ast.FunctionDef, code: BlockBuilder
) -> Steps[LocalFunction]:
    args = node.args
    positional = [*args.posonlyargs, *args.args]
    defaults: dict[str, Expr] = {}
    pairs = list(zip(positional[::-1], args.defaults[::-1], strict=False))[::-1]
    pairs += [(a, d) for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d]
    for arg, default in pairs:
        var = Var(f"{node.name}_{arg.arg}", span=cx.span(default))
        code.bind(var, (yield cx.expression(default)))
        defaults[arg.arg] = var
    names = tuple(a.arg for a in (*positional, *args.kwonlyargs))
    return LocalFunction(node.name, names, defaults, node)


def function_body(cx: Context, node: ast.FunctionDef) -> Steps[Expr]:
    """Translate the statements of a function; its parameters are in scope."""
    flow = analyse(node.body, static_test(cx))
    found = returns_value(node)
    returns = None if found is None else cx.span(found)
    if found is None and node.returns is not None and not _is_none(node.returns):
        returns = cx.span(node.returns)
    end = FunctionEnd(node.name, returns)
    enclosing = Enclosing(flow, node.name, returns, end, head_span(cx, node))
    code = BlockBuilder()
    around = cx.node, cx.lists, cx.list_names
    lists = only_lists(cx, node)
    cx.node, cx.lists, cx.list_names = node, lists, lists | list_names(node.body)
    enter_grown(cx, node, code)
    body = yield block(cx, cursor(node.body), enclosing)
    cx.node, cx.lists, cx.list_names = around
    return code.close(body)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in (None, "None")


def returns_value(node: ast.FunctionDef) -> ast.Return | None:
    """Return the first `return` of a function that gives a value."""
    return next(
        (
            s
            for s in statements_in(node.body)
            if isinstance(s, ast.Return) and s.value is not None and not is_none(s.value)
        ),
        None,
    )


# Simple statements.


def _expression(cx: Context, stmt: ast.Expr, code: BlockBuilder) -> Steps[None]:
    if isinstance(stmt.value, ast.Constant):
        return  # a docstring, or a value that goes nowhere
    if isinstance(stmt.value, ast.Call) and is_change(cx, stmt.value):
        yield change_list(cx, stmt.value, code)
        return
    code.bind(Var("_", span=cx.span(stmt)), (yield cx.expression(stmt.value)))


def _assign(cx: Context, stmt: ast.Assign, code: BlockBuilder) -> Steps[None]:
    """Translate an assignment; `x = xs.pop()` changes the list of `xs` as well."""
    target, value = stmt.targets[0], stmt.value
    if isinstance(value, ast.Call) and isinstance(target, ast.Name) and takes_element(cx, value):
        yield assign_popped(cx, target, value, code)
    else:
        yield assign(cx, stmt, code)


def _assert(cx: Context, stmt: ast.Assert, code: BlockBuilder) -> Steps[None]:
    if narrows(cx, stmt.test):
        yield assume(cx, stmt.test, stmt.msg, code)
        return
    span = cx.span(stmt.test)
    holds = yield condition(cx, stmt.test)
    words = Template("the assertion does not hold")
    if stmt.msg is not None:
        words = yield read_text(cx, stmt.msg)
    checked: Expr = Call(check, (holds,), {"message": words.known}, span=span)
    if words.known is None:  # the text is made only where it is needed
        failed = Call(stop, (words.expression(span),), {"assertion": True}, span=span)
        checked = If(holds, unit(span), failed, span=span)
    code.bind(Var("_", span=span), checked)


def _annotation(cx: Context, stmt: ast.AnnAssign, code: BlockBuilder) -> Steps[None]:
    if stmt.value is not None:
        yield annotated(cx, stmt, code)


_SIMPLE: Final[dict[type[ast.stmt], Callable[..., Steps[None]]]] = {
    ast.AnnAssign: _annotation,
    ast.Assert: _assert,
    ast.Assign: _assign,
    ast.AugAssign: augmented,
    ast.Expr: _expression,
}
