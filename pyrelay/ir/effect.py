"""Effects: what evaluating an expression may do besides returning its value.

The effect of a function is what calling it may do; it is found by a fixed point over the call
graph. A function that is not known where it is called (a parameter, a field, a result) may be any
that escapes: whose mention is not itself a call. Not terminating is not an effect.
"""

from __future__ import annotations

from dataclasses import field
from typing import Final, TypeAlias, final

from ..dataclass import dataclass
from .expr import (
    Call,
    Constant,
    Constructor,
    Expr,
    Flavour,
    Function,
    GlobalVar,
    LetBlock,
    Match,
    RefCreate,
    RefRead,
    RefWrite,
    Var,
)
from .memo import remembered
from .module import Module
from .op import Effect, Op
from .traverse import children, pre_order

_ANY: Final = "any function that escapes"
_ATOMS: Final = (Var, Constant, GlobalVar, Constructor)
_SILENT: Final = (*_ATOMS, Function)
"""Nodes whose evaluation has no effect."""
_Callee: TypeAlias = "str | Function"
"""A global function by name, a local one, or `_ANY` (no function has that name)."""


def own_effect(expr: Expr) -> Effect:
    """Return the effects of a node itself, without those of its operands and of functions it
    calls."""
    match expr:
        case Call(Op(effect=effect)):
            return effect
        case RefCreate() | RefRead() | RefWrite():
            return Effect.STATE
        case Match(partial=True):
            return Effect.FAIL
        case _:
            return Effect.NONE


@final
@dataclass(slots=True)
class _Summary:
    """One function: what its own nodes do, and whom it calls."""

    effect: Effect = Effect.NONE
    callees: dict[_Callee, None] = field(default_factory=dict["_Callee", None])


@final
class Effects:
    """The effects of a module. Asking for an expression costs the size of what is asked, once."""

    def __init__(self, module: Module) -> None:
        self._local: Final[dict[Var, Function]] = {}
        self._summaries: Final[dict[_Callee, _Summary]] = {_ANY: _Summary()}
        self._known: Final[dict[Expr, Effect]] = {}
        for function in module.functions.values():
            self._local.update(_local_functions(function))
        self._summaries.update((name, _Summary()) for name in module.functions)
        for name, function in module.functions.items():
            self._summarise(name, function)
        self._solve()

    def of_call(self, function: str | Function) -> Effect:
        """Return the effects of a call of a global function, by name, or of a local one."""
        return self._summaries[function].effect

    def of(self, expr: Expr) -> Effect:
        """Return the effects of evaluating an expression; a function has none."""
        stack: list[tuple[Expr, tuple[Expr, ...] | None]] = [(expr, None)]
        while stack:
            node, inside = stack.pop()
            if inside is None:
                if isinstance(node, _SILENT) or node in self._known:
                    continue
                inside = tuple(c for c in children(node) if not isinstance(c, _SILENT))
                if inside:
                    stack.append((node, inside))
                    stack += ((child, None) for child in inside)
                    continue
            found = self._immediate(node)
            for child in inside:
                found = _joined(found, self._known[child])
            self._known[node] = found
        return self._known.get(expr, Effect.NONE)

    def _immediate(self, node: Expr) -> Effect:
        callee = self._callee(node)
        return own_effect(node) if callee is None else self._summaries[callee].effect

    def _callee(self, node: Expr) -> _Callee | None:
        """Return whom a node calls, if it is a call of a function."""
        match node:
            case Call(Op() | Constructor()):
                return None
            case Call(GlobalVar(name)):
                return name if name in self._summaries else _ANY
            case Call(Var() as var):
                return self._local.get(var, _ANY)
            case Call(Function() as function):
                return function
            case Call():
                return _ANY
            case _:
                return None

    def _summarise(self, name: str, function: Function) -> None:
        """Fill in the summaries of a global function and of all local ones inside it."""
        stack: list[tuple[Expr, _Callee]] = [(function.body, name)]
        while stack:
            node, owner = stack.pop()
            summary = self._summaries[owner]
            summary.effect = _joined(summary.effect, own_effect(node))
            callee = self._callee(node)
            if callee is not None:
                summary.callees[callee] = None
            for child in _escaping(node):
                self._escape(child)
            if isinstance(node, Function):
                self._summaries.setdefault(node, _Summary())
                stack.append((node.body, node))
            else:
                stack += ((c, owner) for c in children(node) if not isinstance(c, _ATOMS))

    def _escape(self, expr: Expr) -> None:
        """Note a function that is mentioned as a value."""
        match expr:
            case GlobalVar(name):
                self._summaries[_ANY].callees[name] = None
            case Function():
                self._summaries[_ANY].callees[expr] = None
            case Var() if expr in self._local:
                self._summaries[_ANY].callees[self._local[expr]] = None
            case _:
                pass

    def _solve(self) -> None:
        callers: dict[_Callee, list[_Callee]] = {}
        for caller, summary in self._summaries.items():
            for callee in summary.callees:
                callers.setdefault(callee, []).append(caller)
        pending = list(self._summaries)
        while pending:
            callee = pending.pop()
            summary = self._summaries.get(callee)
            for caller in callers.get(callee, ()) if summary is not None else ():
                assert summary is not None
                above = self._summaries[caller]
                if above.effect | summary.effect != above.effect:
                    above.effect |= summary.effect
                    pending.append(caller)


@remembered
def effects_of(module: Module) -> Effects:
    """Return the effects of a module."""
    return Effects(module)


def _joined(left: Effect, right: Effect) -> Effect:
    # Nearly always one of them is nothing, and `|` of flags is slow.
    if right is Effect.NONE or left is right:
        return left
    return right if left is Effect.NONE else left | right


def _local_functions(function: Function) -> dict[Var, Function]:
    """Return the variables that are bound to a function directly."""
    found: dict[Var, Function] = {}
    for node in pre_order(function):
        if isinstance(node, LetBlock):
            found |= {b.var: b.value for b in node.bindings if isinstance(b.value, Function)}
    return found


def _escaping(node: Expr) -> tuple[Expr, ...]:
    """Return the children of a node that it uses as values: not a callee, nor a bound function."""
    match node:
        case Call(callee):
            inside = children(node)
            return inside[1:] if isinstance(callee, Expr) else inside
        case LetBlock(bindings, body):
            values = tuple(b.value for b in bindings if not isinstance(b.value, Function))
            return (*values, body)
        case Function(body=body):
            return (body,)
        case _:
            return children(node)


def flavour_of(effect: Effect) -> Flavour:
    """Return the flavour of a binding whose value has an effect."""
    return Flavour.PURE if effect is Effect.NONE else Flavour.IMPURE
