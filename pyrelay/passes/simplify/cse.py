"""Common subexpressions: a pure binding whose value has been computed already is that value.

What is computed in front of a branch or a function is known inside it, not the other way round.
Two values are the same if they are the same operation, at the same type, of the same operands;
constants count by their bits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias, final

from ...ir.effect import Effects
from ...ir.expr import (
    Binding,
    Call,
    Clause,
    Constant,
    Constructor,
    Expr,
    Flavour,
    Function,
    GlobalVar,
    If,
    LetBlock,
    Match,
    TensorData,
    Tuple,
    TupleGet,
    Var,
)
from ...ir.nested import map_nested
from ...ir.op import Effect, Op
from ...ir.traverse import Steps, children, rebuild, run, spine
from ...ir.verify import Stage
from ..base import Context, Pass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...ir.module import Module

_Key: TypeAlias = tuple[Any, ...]


def share(module: Module) -> Module:
    """Return a module in A-normal form with equal pure values computed once; itself if all are."""
    effects = Effects(module)

    def shared(function: Function) -> Function:
        built = run(_Share(effects).function(function))
        assert isinstance(built, Function)
        return built

    return module.map_functions(shared)


@final
@dataclass(frozen=True, slots=True)
class ShareSubexpressions(Pass):
    """Compute equal pure values once."""

    name: ClassVar = "cse"
    needs: ClassVar = Stage.ANF

    def run(self, module: Module, _: Context) -> Module:
        """Return the module after the pass."""
        return share(module)


@final
class _Share:
    """One walk over a global function, in order of evaluation."""

    def __init__(self, effects: Effects) -> None:
        self._effects: Final = effects
        self._known: Final[dict[_Key, Var]] = {}
        self._same: Final[dict[Expr, Expr]] = {}

    def function(self, function: Function) -> Steps[Expr]:
        """Return a function with its body shared."""
        return rebuild(function, ((yield self._body(function.body)),))

    def _body(self, expr: Expr) -> Steps[Expr]:
        """Return a body of its own scope: what is computed in it is forgotten after it."""
        added: list[_Key] = []
        blocks, end = spine(expr)
        kept: list[tuple[LetBlock, list[Binding]]] = []
        for block in blocks:
            bindings = yield self._bindings(block, added)
            kept.append((block, bindings))
        result = yield self._node(end)
        for key in added:
            del self._known[key]
        for block, bindings in reversed(kept):
            if bindings == list(block.bindings):
                result = rebuild(block, (*(b.value for b in bindings), result))
            elif bindings:
                result = replace(block, bindings=tuple(bindings), body=result)
        return result

    def _bindings(self, block: LetBlock, added: list[_Key]) -> Steps[list[Binding]]:
        kept: list[Binding] = []
        for binding in block.bindings:
            value = yield self._node(binding.value)
            key = None if block.flavour is Flavour.REC else self._key(binding.value, value)
            if key in self._known:
                self._same[binding.var] = self._known[key]
                continue
            if key is not None:
                self._known[key] = binding.var
                added.append(key)
            kept.append(binding if value is binding.value else Binding(binding.var, value))
        return kept

    def _node(self, expr: Expr) -> Steps[Expr]:
        """Return a node with operands that are known under another name replaced."""
        match expr:
            case Function():
                return (yield self.function(expr))
            case If(condition, then, otherwise):
                then = yield self._body(then)
                otherwise = yield self._body(otherwise)
                return rebuild(expr, (self._atom(condition), then, otherwise))
            case Match(value, clauses):
                inside: list[Expr] = [self._atom(value)]
                for clause in clauses:
                    inside += yield self._clause(clause)
                return rebuild(expr, inside)
            case Var():
                return self._atom(expr)
            case _:
                return rebuild(expr, tuple(map(self._atom, children(expr))))

    def _clause(self, clause: Clause) -> Steps[list[Expr]]:
        guard: list[Expr] = []
        if clause.guard is not None:
            guard.append((yield self._body(clause.guard)))
        return [*guard, (yield self._body(clause.body))]

    def _atom(self, atom: Expr) -> Expr:
        return self._same.get(atom, atom)

    def _key(self, old: Expr, new: Expr) -> _Key | None:
        """Return what tells a value from others, or None if it must be computed where it stands."""
        match new:
            case TupleGet(value, index):
                return ("get", _operand(value), index)
            case Tuple(fields) if fields:
                return ("tuple", *map(_operand, fields))
            case Call(callee, args) if self._effects.of(old) is Effect.NONE:
                called = callee if isinstance(callee, Op) else _operand(callee)
                return (called, _static(new.attrs), new.type_args, new.ty, *map(_operand, args))
            case _:
                return None


def _operand(atom: Expr) -> _Key:
    match atom:
        case Constant(value):
            # `repr` tells -0.0 from 0.0; the type tells True from 1.
            bits = value if isinstance(value, TensorData) else repr(value)
            return ("constant", bits, atom.ty)
        case GlobalVar(name):
            return ("global", name, atom.ty)
        case Constructor(adt, name):
            return ("constructor", adt, name)
        case Tuple():
            return ("unit",)
        case _:
            return ("var", atom)


def _static(attrs: Mapping[str, Any]) -> _Key:
    return tuple((name, map_nested(value, _key)) for name, value in attrs.items())


def _key(value: Any) -> Any:
    # Equal numbers of different types are different attributes, and so are 0.0 and -0.0.
    return (type(value), repr(value)) if isinstance(value, int | float) else value
