"""Invariants of the later stages: A-normal form, first order, no transforms, flavours."""

from __future__ import annotations

from collections.abc import Iterator

from ..effect import flavour_of
from ..expr import (
    Constructor,
    Expr,
    Flavour,
    Function,
    GlobalVar,
    If,
    LetBlock,
    Match,
    Transform,
    is_atom,
    is_tail,
)
from ..traverse import bound_vars, children, spine
from ..types import FnType, Type, subtypes
from .scene import Finding, Scene


def operands_are_atoms(scene: Scene) -> Iterator[Finding]:
    """Operands, callees, conditions and matched values are atoms."""
    for node in scene.nodes:
        for operand in _operands(node):
            if not is_atom(operand):
                yield operand, f"an operand of a {type(node).__name__} is not an atom"


def _operands(node: Expr) -> tuple[Expr, ...]:
    match node:
        case LetBlock() | Function():
            return ()
        case If(condition):
            return (condition,)
        case Match(value):
            return (value,)
        case _:
            return children(node)


def bindings_are_flat(scene: Scene) -> Iterator[Finding]:
    """The value of a binding is never a let block."""
    for binding in (b for n in scene.nodes if isinstance(n, LetBlock) for b in n.bindings):
        if isinstance(binding.value, LetBlock):
            yield binding.value, f"`{binding.var.name}` is bound to a let block"


def bodies_end_in_tails(scene: Scene) -> Iterator[Finding]:
    """A body ends in an atom, or in a call of a function, an `If` or a `Match`; a guard in an
    atom."""
    for node in scene.nodes:
        bodies, guards = _bodies(node)
        for body in bodies:
            end = spine(body)[1]
            if not is_tail(end):
                yield end, f"a {type(end).__name__} ends a body"
        for guard in guards:
            end = spine(guard)[1]
            if not is_atom(end):
                yield end, "a guard does not end in an atom"


def _bodies(node: Expr) -> tuple[list[Expr], list[Expr]]:
    match node:
        case Function(body=body):
            return [body], []
        case If(_, then, otherwise):
            return [then, otherwise], []
        case Match(clauses=clauses):
            guards = [c.guard for c in clauses if c.guard is not None]
            return [c.body for c in clauses], guards
        case _:
            return [], []


def functions_are_global(scene: Scene) -> Iterator[Finding]:
    """There are no local functions; a function is mentioned only to call or to transform it."""
    transforms = [n for n in scene.nodes if isinstance(n, Transform)]
    transformed = {f for n in transforms for f in (n.function, *n.rules)}
    for node in scene.nodes:
        if isinstance(node, Function) and node is not scene.function:
            yield node, "a function is local"
        is_function = isinstance(node, GlobalVar | Constructor) and isinstance(node.ty, FnType)
        if is_function and node not in scene.callees and node not in transformed:
            yield node, "a function is used as a value"


def values_are_first_order(scene: Scene) -> Iterator[Finding]:
    """No value holds a function, except a transform that is bound to be called."""
    made = {
        b.var
        for n in scene.nodes
        if isinstance(n, LetBlock)
        for b in n.bindings
        if isinstance(b.value, Transform)
    }
    for node in scene.nodes:
        for var in bound_vars(node):
            if var not in made and _holds_function(var.ty):
                yield var, f"`{var.name}` holds a function"
    for adt in scene.module.adts.values():
        for constructor in adt.constructors:
            if any(_holds_function(f) for f in constructor.fields):
                yield scene.function, f"`{adt.name}.{constructor.name}` holds a function"


def _holds_function(ty: Type | None) -> bool:
    return ty is not None and any(isinstance(part, FnType) for part in subtypes(ty))


def transforms_are_expanded(scene: Scene) -> Iterator[Finding]:
    """There are no transforms."""
    for node in scene.nodes:
        if isinstance(node, Transform):
            yield node, f"a {node.rule.value} is left"


def flavours_are_effects(scene: Scene) -> Iterator[Finding]:
    """A block is pure if evaluating its bindings has no effect; all bindings of an impure one
    have one; neighbours differ."""
    effects = scene.facts.effects
    for node in scene.nodes:
        if not isinstance(node, LetBlock) or node.flavour is Flavour.REC:
            continue
        for binding in node.bindings:
            found = effects.of(binding.value)
            if flavour_of(found) is not node.flavour:
                yield (
                    binding.value,
                    f"`{binding.var.name}` is {found} in a {node.flavour.value} block",
                )
        if isinstance(node.body, LetBlock) and node.body.flavour is node.flavour:
            yield node.body, f"two {node.flavour.value} blocks follow each other"
