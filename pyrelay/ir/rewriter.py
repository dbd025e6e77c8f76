"""A walk over bodies in A-normal form that may put the body of one thing in place of another.

`Rewriter` walks in order of evaluation and rebuilds only what changes. A pass overrides `node` (the
replacement of a node) and `binding`, and calls `splice` to continue into a body whose bindings
belong to the body around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .block_builder import BlockBuilder
from .expr import (
    Binding,
    Clause,
    Expr,
    Flavour,
    Function,
    GlobalVar,
    If,
    LetBlock,
    Match,
    Var,
    is_atom,
    type_of,
)
from .module import Module
from .traverse import Steps, children, rebuild, run, spine
from .types import SizeType, TensorType, Type


class Rewriter:
    """One walk over a function."""

    def __init__(self, module: Module) -> None:
        self._module: Final = module
        self.atoms: Final[dict[Expr, Expr]] = {}
        """The variables that are gone, and their replacements."""

    def walked(self, function: Function) -> Function:
        """Return a function after the walk; itself if nothing changed."""
        rebuilt = rebuild(function, (run(self.body(function.body)),))
        assert isinstance(rebuilt, Function)
        return rebuilt

    def body(self, expr: Expr) -> Steps[Expr]:
        """Return the body of a scope of its own."""
        code = BlockBuilder()
        result = yield self.splice(expr, code)
        closed = code.close(result)
        return expr if _is_same(expr, closed) else closed

    def splice(self, expr: Expr, code: BlockBuilder) -> Steps[Expr]:
        """Add the bindings of a body to `code`; return what ends it."""
        blocks, end = spine(expr)
        yield self.blocks(blocks, code)
        return (yield self.node(end, code))

    def blocks(self, blocks: Sequence[LetBlock], code: BlockBuilder) -> Steps[None]:
        """Add the rewritten bindings of blocks to `code`."""
        outside = code.flavour
        for block in blocks:
            if block.flavour is Flavour.REC:
                yield self.recursive(block, code)
                continue
            code.flavour = block.flavour
            for binding in block.bindings:
                yield self.binding(binding, code)
        code.flavour = outside

    def recursive(self, block: LetBlock, code: BlockBuilder) -> Steps[None]:
        """Add a block of recursive functions to `code`."""
        bound: list[Binding] = []
        for binding in block.bindings:
            value = yield self.node(binding.value, code)
            bound.append(Binding(binding.var, value))
        code.bind_rec(bound)

    def binding(self, binding: Binding, code: BlockBuilder) -> Steps[None]:
        """Add the rewritten binding to `code`."""
        value = yield self.node(binding.value, code)
        code.bind(binding.var, value)

    def node(self, expr: Expr, code: BlockBuilder) -> Steps[Expr]:
        """Return the rewritten value of a binding, or end of a body."""
        match expr:
            case Function(body=body):
                return rebuild(expr, ((yield self.body(body)),))
            case If(condition, then, otherwise):
                then = yield self.body(then)
                otherwise = yield self.body(otherwise)
                return rebuild(expr, (self.atom(condition), then, otherwise))
            case Match(value, clauses):
                inside: list[Expr] = [self.atom(value)]
                for clause in clauses:
                    inside += yield self.clause(clause)
                return rebuild(expr, inside)
            case _ if is_atom(expr):
                return self.atom(expr)
            case _:
                return rebuild(expr, tuple(map(self.atom, children(expr))))

    def clause(self, clause: Clause) -> Steps[list[Expr]]:
        """Return the guard, if there is one, and the body of a clause."""
        guard: list[Expr] = []
        if clause.guard is not None:
            guard.append((yield self.body(clause.guard)))
        return [*guard, (yield self.body(clause.body))]

    def atom(self, atom: Expr) -> Expr:
        """Return the replacement of an atom."""
        return self.atoms.get(atom, atom)

    def let(self, var: Var, atom: Expr, code: BlockBuilder) -> None:
        """Let an atom stand for a variable, which stays bound only if its type says more."""
        if stands_for(atom, type_of(var)) and not self._is_polymorphic(atom):
            self.atoms[var] = atom
        else:
            code.bind(var, atom)

    def _is_polymorphic(self, atom: Expr) -> bool:
        """Return whether an atom is a function that a call would have to instantiate."""
        return isinstance(atom, GlobalVar) and bool(self._module.functions[atom.name].type_params)


def stands_for(atom: Expr, ty: Type) -> bool:
    """Return whether an atom may stand wherever a variable of a type did.

    If the types differ in sizes it may not: that of the variable may show a size that is needed.
    """
    actual = type_of(atom)
    return actual == ty or (isinstance(actual, SizeType) and isinstance(ty, TensorType))


def _is_same(old: Expr, new: Expr) -> bool:
    old_blocks, old_end = spine(old)
    new_blocks, new_end = spine(new)
    return old_end is new_end and _parts(old_blocks) == _parts(new_blocks)


def _parts(blocks: Sequence[LetBlock]) -> list[tuple[Flavour, list[tuple[Var, Expr]]]]:
    return [(b.flavour, [(x.var, x.value) for x in b.bindings]) for b in blocks]
