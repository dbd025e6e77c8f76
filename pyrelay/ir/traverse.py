"""Walks over expressions. None of them recurses on the depth of a program.

A pass that is naturally recursive is written as a generator that yields the sub-walks it needs,
and `run` drives it on a flat stack:

    def depth(expr: Expr) -> Steps[int]:
        deepest = 0
        for child in children(expr):
            deepest = max(deepest, (yield depth(child)))
        return deepest + 1

    run(depth(expr))
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar, get_args

from .expr import (
    Binding,
    BindPattern,
    Call,
    Clause,
    ConstructorPattern,
    Expr,
    Flavour,
    Function,
    GlobalVar,
    LetBlock,
    Match,
    Pattern,
    Transform,
    Tuple,
    TuplePattern,
    Var,
    Wildcard,
)
from .nested import leaves, map_nested
from .op import Op

if TYPE_CHECKING:
    from .module import Module

T = TypeVar("T")
Steps: TypeAlias = Generator["Steps[Any]", Any, T]
"""A walk in progress: yields the walks it waits for, is sent their results, returns its own."""


def run(steps: Steps[T]) -> T:
    """Drive a walk to its result without using the Python stack for its depth.

    An exception goes through the walks that wait, as through callers, so each may handle it.
    """
    stack: list[Steps[Any]] = [steps]
    result: Any = None
    error: Exception | None = None
    while stack:
        try:
            waiting = stack[-1]
            step = waiting.send(result) if error is None else waiting.throw(error)
            stack.append(step)
            result = error = None
        except StopIteration as stop:
            stack.pop()
            result, error = stop.value, None
        except Exception as raised:  # handed on to the walk that waits
            stack.pop()
            error = raised
    if error is not None:
        raise error
    return result


def dependencies_first(
    root: T, needs: Callable[[T], Iterable[T]], is_done: Callable[[T], bool]
) -> Iterator[T]:
    """Yield a node of a graph without cycles, and before it all that it needs and that is not done,
    each after what it needs itself. Whoever iterates does each node before the next."""
    pending = [root]
    while pending:
        current = pending[-1]
        missing = () if is_done(current) else [n for n in needs(current) if not is_done(n)]
        pending += reversed(missing)
        if not missing:
            pending.pop()
            if not is_done(current):
                yield current


def children(expr: Expr) -> tuple[Expr, ...]:
    """Return the expressions directly inside, in order of evaluation."""
    return _SHAPES[type(expr)].children(expr)


def rebuild(expr: Expr, inside: Sequence[Expr]) -> Expr:
    """Return the same node around other children, in the order of `children`.

    The node itself is given back when no child changed.
    """
    shape = _SHAPES[type(expr)]
    before = shape.children(expr)
    if len(inside) == len(before) and all(map(is_, inside, before)):
        return expr
    return shape.rebuild(expr, iter(inside))


def attr_exprs(call: Call) -> Iterator[Expr]:
    """Return the expressions among a call's attributes; there are some only before inference, which
    sets the type of the call."""
    return (v for v in leaves(tuple(call.attrs.values())) if isinstance(v, Expr))


class _Shape(NamedTuple):
    """How one class of nodes holds its children: both functions take them in the same order."""

    children: Callable[[Any], tuple[Expr, ...]]
    rebuild: Callable[[Any, Iterator[Expr]], Expr]


def _call_children(expr: Call) -> tuple[Expr, ...]:
    callee = expr.callee
    inside = expr.args if isinstance(callee, Op) else (callee, *expr.args)
    return (*inside, *attr_exprs(expr)) if expr.attrs and expr.ty is None else inside


def _rebuild_call(expr: Call, rest: Iterator[Expr]) -> Call:
    callee = expr.callee if isinstance(expr.callee, Op) else next(rest)
    args = tuple([next(rest) for _ in expr.args])

    def rebuilt(value: Any) -> Any:
        return next(rest) if isinstance(value, Expr) else value

    attrs = expr.attrs
    if attrs and expr.ty is None:
        attrs = {k: map_nested(v, rebuilt) for k, v in attrs.items()}
    return Call(callee, args, attrs, expr.type_args, expr.ty, span=expr.span)


def _let_children(expr: LetBlock) -> tuple[Expr, ...]:
    return (*[b.value for b in expr.bindings], expr.body)


def _rebuild_let(expr: LetBlock, rest: Iterator[Expr]) -> LetBlock:
    bindings = tuple(Binding(b.var, next(rest)) for b in expr.bindings)
    return replace(expr, bindings=bindings, body=next(rest))


def _match_children(expr: Match) -> tuple[Expr, ...]:
    return (expr.value, *(part for clause in expr.clauses for part in clause.scopes))


def _rebuild_match(expr: Match, rest: Iterator[Expr]) -> Match:
    value = next(rest)
    clauses: list[Clause] = []
    for clause in expr.clauses:
        guard = None if clause.guard is None else next(rest)
        clauses.append(Clause(clause.pattern, next(rest), guard))
    return replace(expr, value=value, clauses=tuple(clauses))


_LEAF: Final = _Shape(lambda e: (), lambda e, rest: e)


def _of_fields(cls: type[Expr]) -> _Shape:
    """Return the shape of a class whose children are its fields that are expressions, in order."""
    names = tuple(f.name for f in fields(cls) if f.type == "Expr")
    if not names:
        return _LEAF
    first, together = attrgetter(names[0]), attrgetter(*names)
    return _Shape(
        (lambda e: (first(e),)) if len(names) == 1 else together,
        lambda e, rest: replace(e, **dict(zip(names, rest, strict=True))),
    )


_SHAPES: Final[dict[type[Expr], _Shape]] = {
    **{cls: _of_fields(cls) for cls in get_args(Expr)},
    Call: _Shape(_call_children, _rebuild_call),
    Tuple: _Shape(lambda e: e.fields, lambda e, rest: replace(e, fields=tuple(rest))),
    LetBlock: _Shape(_let_children, _rebuild_let),
    Match: _Shape(_match_children, _rebuild_match),
    Transform: _Shape(
        lambda e: (e.function, *e.rules),
        lambda e, rest: replace(e, function=next(rest), rules=tuple(rest)),
    ),
}
"""Every class of `Expr`; those that stand here hold children in other ways."""


def pre_order(expr: Expr) -> Iterator[Expr]:
    """Return the expression and then every one inside, parents before children."""
    pending = [expr]
    while pending:
        node = pending.pop()
        yield node
        pending += reversed(children(node))


def post_order(expr: Expr) -> Iterator[Expr]:
    """Return every expression inside and then the expression, children before parents."""
    found: list[Expr] = []  # parents before children, the last child first: the other way round
    pending = [expr]
    while pending:
        node = pending.pop()
        found.append(node)
        pending += children(node)
    return reversed(found)


def rewrite(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Return the expression with `change` applied to every node, children first."""
    done: list[Expr] = []
    stack: list[tuple[Expr, int]] = [(expr, -1)]
    while stack:
        node, count = stack.pop()
        if count < 0:
            inside = children(node)
            stack.append((node, len(inside)))
            stack += ((child, -1) for child in reversed(inside))
            continue
        inside = done[len(done) - count :]
        del done[len(done) - count :]
        done.append(change(rebuild(node, inside)))
    return done[0]


def pattern_vars(pattern: Pattern) -> tuple[Var, ...]:
    """Return the variables a pattern binds, left to right."""
    found: list[Var] = []
    pending = [pattern]
    while pending:
        match pending.pop():
            case BindPattern(var, inner):
                found.append(var)
                pending += () if inner is None else (inner,)
            case ConstructorPattern(fields=fields) | TuplePattern(fields):
                pending += reversed(fields)
            case _:
                pass
    return tuple(found)


def takes_all(pattern: Pattern) -> bool:
    """Return whether a pattern is a wildcard or a name, and so matches any value."""
    while isinstance(pattern, BindPattern):
        if pattern.inner is None:
            return True
        pattern = pattern.inner
    return isinstance(pattern, Wildcard)


def bound_vars(expr: Expr) -> tuple[Var, ...]:
    """Return the variables that this node, not its children, brings into scope."""
    match expr:
        case LetBlock(bindings):
            return tuple(b.var for b in bindings)
        case Function(params):
            return params
        case Match(clauses=clauses):
            return tuple(v for c in clauses for v in pattern_vars(c.pattern))
        case _:
            return ()


def free_vars(expr: Expr) -> tuple[Var, ...]:
    """Return the variables used but not bound inside, in order of first use.

    Each variable is bound once in a well-formed program, so scopes need no tracking.
    """
    used: dict[Var, None] = {}
    bound: set[Var] = set()
    for node in post_order(expr):
        if isinstance(node, Var):
            used.setdefault(node)
        else:
            bound.update(bound_vars(node))
    return tuple(v for v in used if v not in bound)


def nodes_of(module: Module) -> Iterator[Expr]:
    """Yield the nodes of all functions of a module, operands first."""
    for function in module.functions.values():
        yield from post_order(function)


def free_globals(expr: Expr) -> tuple[str, ...]:
    """Return the names of the global functions mentioned, in order of first mention."""
    found: dict[str, None] = {}
    for node in post_order(expr):
        if isinstance(node, GlobalVar):
            found.setdefault(node.name)
    return tuple(found)


def substitute(expr: Expr, values: Mapping[Var, Expr]) -> Expr:
    """Return the expression with free variables replaced. Values must not be captured: they are
    atoms, or their variables are bound nowhere inside."""
    if not values:
        return expr
    return rewrite(expr, lambda n: values.get(n, n) if isinstance(n, Var) else n)


def replace_params(function: Function, others: Mapping[Var, Var]) -> Function:
    """Return the function with some of its parameters replaced by others, in its body too."""
    if not others:
        return function
    params = tuple(others.get(p, p) for p in function.params)
    return replace(function, params=params, body=substitute(function.body, others))


def map_pattern(pattern: Pattern, change: Callable[[Var], Var]) -> Pattern:
    """Return the pattern with its variables replaced. Patterns nest as deep as a user writes."""
    match pattern:
        case BindPattern(var, inner):
            new = change(var)
            below = None if inner is None else map_pattern(inner, change)
            return BindPattern(new, below, span=pattern.span)
        case ConstructorPattern(fields=fields) | TuplePattern(fields):
            return replace(pattern, fields=tuple(map_pattern(f, change) for f in fields))
        case _:
            return pattern


def let(bindings: Sequence[Binding], body: Expr, flavour: Flavour = Flavour.PURE) -> Expr:
    """Return the body under the bindings; the body itself when there are none."""
    if not bindings:
        return body
    span = bindings[0].value.span
    return LetBlock(tuple(bindings), body, flavour, ty=body.ty, span=span)


def spine(expr: Expr) -> tuple[list[LetBlock], Expr]:
    """Return the chain of let blocks at the head of an expression, and the body under them all."""
    blocks: list[LetBlock] = []
    while isinstance(expr, LetBlock):
        blocks.append(expr)
        expr = expr.body
    return blocks, expr


def map_bindings(expr: Expr, change: Callable[[Binding], Iterable[Binding]]) -> Expr:
    """Return the expression with each binding, inner ones first, replaced by those that `change`
    returns; itself if these are the same. A block without bindings is its body."""

    def changed(node: Expr) -> Expr:
        if not isinstance(node, LetBlock):
            return node
        old = node.bindings
        new = tuple(after for before in old for after in change(before))
        if len(new) == len(old) and all(map(is_, new, old)):
            return node
        return replace(node, bindings=new) if new else node.body

    return rewrite(expr, changed)


def rebind(node: Expr, change: Callable[[Var], Var]) -> Expr:
    """Return a node around the same children with the variables that it binds replaced."""
    match node:
        case LetBlock(bindings):
            return replace(node, bindings=tuple(Binding(change(b.var), b.value) for b in bindings))
        case Function(params):
            return replace(node, params=tuple(map(change, params)))
        case Match(clauses=clauses):
            new = tuple(replace(c, pattern=map_pattern(c.pattern, change)) for c in clauses)
            return replace(node, clauses=new)
        case _:
            return node


def refresh(expr: Expr) -> Expr:
    """Return a copy in which every variable bound inside is new, so both may stand in one
    program."""
    renamed = {var: replace(var) for node in post_order(expr) for var in bound_vars(node)}

    def change(node: Expr) -> Expr:
        is_var = isinstance(node, Var)
        return renamed.get(node, node) if is_var else rebind(node, renamed.__getitem__)

    return rewrite(expr, change)
