"""Invariants of any module: names, spans, and that what is mentioned exists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from ...diagnostics.source import Span
from ..expr import (
    BindPattern,
    Call,
    Clause,
    Constructor,
    ConstructorPattern,
    Expr,
    Flavour,
    Function,
    GlobalVar,
    LetBlock,
    Match,
    Pattern,
    TuplePattern,
    Var,
)
from ..module import AdtDef, Module
from ..op import Op
from ..traverse import bound_vars, children, pattern_vars
from ..types import AdtType, Type, subtypes
from .scene import Finding, Scene


def bound_once(scene: Scene) -> Iterator[Finding]:
    """Every variable is bound in one place of the module."""
    binders = scene.facts.binders
    for node in scene.nodes:
        for var in bound_vars(node):
            if var in binders:
                yield var, f"`{var.name}` is bound again (first in `{binders[var]}`)"
            binders[var] = scene.name


_Work: TypeAlias = "Expr | tuple[bool, tuple[Var, ...]]"
"""A node to look at, or variables that come into scope (True) or leave it."""


def in_scope(scene: Scene) -> Iterator[Finding]:
    """Every variable is used only where its binding reaches."""
    visible: set[Var] = set()
    stack: list[_Work] = [scene.function]
    while stack:
        step = stack.pop()
        if isinstance(step, tuple):
            enters, bound = step
            (visible.update if enters else visible.difference_update)(bound)
        elif isinstance(step, Var):
            if step not in visible:
                yield step, f"`{step.name}` is not in scope"
        else:
            stack += reversed(_scoped(step))


def _scoped(node: Expr) -> list[_Work]:
    """Return the children of a node in order, with the scopes they stand in."""
    match node:
        case Function(params, body):
            return [(True, params), body, (False, params)]
        case LetBlock(bindings, body, Flavour.REC):
            bound = bound_vars(node)
            return [(True, bound), *(b.value for b in bindings), body, (False, bound)]
        case LetBlock(bindings, body):
            steps: list[_Work] = []
            for binding in bindings:
                steps += (binding.value, (True, (binding.var,)))
            return [*steps, body, (False, bound_vars(node))]
        case Match(value, clauses):
            inside: list[_Work] = [value]
            for clause in clauses:
                inside += _arm(clause)
            return inside
        case _:
            return list(children(node))


def _arm(clause: Clause) -> list[_Work]:
    bound = pattern_vars(clause.pattern)
    return [(True, bound), *clause.scopes, (False, bound)]


def has_spans(scene: Scene) -> Iterator[Finding]:
    """Every node says where in the user's program it comes from."""
    for node in scene.nodes:
        if not isinstance(node.span, Span):  # pyright: ignore[reportUnnecessaryIsInstance]
            yield scene.function, f"a {type(node).__name__} has no span"
    for pattern in patterns(scene):
        if not isinstance(pattern.span, Span):  # pyright: ignore[reportUnnecessaryIsInstance]
            yield scene.function, f"a {type(pattern).__name__} has no span"


def patterns(scene: Scene) -> Iterator[Pattern]:
    """Return every pattern in a function."""
    pending = [c.pattern for n in scene.nodes if isinstance(n, Match) for c in n.clauses]
    while pending:
        pattern = pending.pop()
        yield pattern
        match pattern:
            case BindPattern(inner=inner) if inner is not None:
                pending.append(inner)
            case ConstructorPattern(fields=fields) | TuplePattern(fields):
                pending += fields
            case _:
                pass


def rec_blocks_bind_functions(scene: Scene) -> Iterator[Finding]:
    """Recursive blocks bind functions only."""
    blocks = (n for n in scene.nodes if isinstance(n, LetBlock) and n.flavour is Flavour.REC)
    for binding in (b for block in blocks for b in block.bindings):
        if not isinstance(binding.value, Function):
            yield binding.value, f"`{binding.var.name}` is recursive but no function"


def calls_are_whole(scene: Scene) -> Iterator[Finding]:
    """Calls of operators have all operands, omitted ones as units; only they have attributes."""
    for node in scene.nodes:
        match node:
            case Call(Op() as op, args) if len(args) != len(op.operands):
                yield node, f"`{op.name}` has {len(args)} operands, not {len(op.operands)}"
            case Call(callee, attrs=attrs) if attrs and not isinstance(callee, Op):
                yield node, "a call of a function has attributes"
            case _:
                pass


def mentions_exist(scene: Scene) -> Iterator[Finding]:
    """The functions, constructors and data types that are mentioned are in the module."""
    module = scene.module
    for node in scene.nodes:
        match node:
            case GlobalVar(name) if name not in module.functions:
                yield node, f"there is no function `{name}`"
            case Constructor(adt, name) if not _has_constructor(module, adt, name):
                yield node, f"there is no constructor `{adt}.{name}`"
            case _:
                pass
        if isinstance(node, Var):
            continue  # looked at where it is bound: its type may be as long as the program
        for ty in (node.ty, *(v.ty for v in bound_vars(node))):
            missing = None if ty is None else _missing(module, ty)
            if missing is not None:
                yield node, missing
    yield from _patterns_exist(scene)


def _patterns_exist(scene: Scene) -> Iterator[Finding]:
    for pattern in patterns(scene):
        if isinstance(pattern, ConstructorPattern):
            adt = scene.module.adts.get(pattern.adt)
            if adt is None or not _has_constructor(scene.module, pattern.adt, pattern.name):
                yield pattern, f"there is no constructor `{pattern.adt}.{pattern.name}`"
            elif len(adt.constructor(pattern.name).fields) != len(pattern.fields):
                yield pattern, f"`{pattern.name}` has another number of fields"


def _has_constructor(module: Module, adt: str, name: str) -> bool:
    definition = module.adts.get(adt)
    return definition is not None and any(c.name == name for c in definition.constructors)


def _missing(module: Module, ty: Type) -> str | None:
    for part in subtypes(ty):
        if isinstance(part, AdtType):
            definition: AdtDef | None = module.adts.get(part.name)
            if definition is None:
                return f"there is no data type `{part.name}`"
            if len(definition.type_params) != len(part.args):
                return f"`{part.name}` has {len(definition.type_params)} type parameters"
    return None
