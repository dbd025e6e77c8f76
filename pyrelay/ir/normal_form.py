"""A-normal form: from trees to sequences of bindings.

`to_anf` runs after inference. It names every intermediate value, in order of evaluation (callee,
then operands, left to right), and flattens nested let blocks. What holds afterwards:

* operands, conditions, matched values and callees are atoms (a callee may be an operator);
* a body (of a function, a branch, a clause) is a chain of let blocks that ends in an atom or in a
  call of a function, an `If` or a `Match`, which then stand in tail position; a guard ends in an
  atom;
* the value of a binding is never a let block; `rec` blocks stay blocks of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from .block_builder import BlockBuilder
from .expr import (
    Binding,
    Call,
    Clause,
    Constructor,
    Expr,
    Flavour,
    Function,
    If,
    LetBlock,
    Match,
    Var,
    is_atom,
    is_tail,
)
from .names import Names
from .traverse import Steps, attr_exprs, children, rebuild, run, spine

if TYPE_CHECKING:
    from .module import Module


def to_anf(module: Module) -> Module:
    """Return the module with every function in A-normal form; itself if all are already."""
    return module.map_functions(normalise)


def normalise(function: Function) -> Function:
    """Return one function in A-normal form; itself if it is already."""
    result = run(_function(function, Names()))
    assert isinstance(result, Function)
    return result


@final
class _Body:
    """The bindings of one body, and the names of the variables it binds."""

    def __init__(self, names: Names) -> None:
        self.names: Final = names
        self.code: Final = BlockBuilder()

    def atom(self, value: Expr) -> Expr:
        """Return an atom for a value, bound to a new variable unless it is one."""
        if is_atom(value):
            return value
        return self.code.bind(Var(self.names.fresh(_hint(value)), value.ty, span=value.span), value)


def _hint(value: Expr) -> str:
    match value:
        case Call(callee) if not isinstance(callee, Expr):
            return callee.name
        case Call(Constructor(name=name)):
            return name.lower()
        case Function(name=name):
            return name or "lambda"
        case _:
            return "t"


def _function(function: Function, names: Names) -> Steps[Expr]:
    return rebuild(function, ((yield _body(function.body, names)),))


def _body(expr: Expr, names: Names, *, guard: bool = False) -> Steps[Expr]:
    """Return an expression as the body of a scope of its own."""
    body = _Body(names)
    result = yield _value(expr, body)
    if guard or not is_tail(result):
        result = body.atom(result)
    closed = body.code.close(result)
    return expr if _is_same(expr, closed) else closed


def _is_same(old: Expr, new: Expr) -> bool:
    old_blocks, old_result = spine(old)
    new_blocks, new_result = spine(new)
    if old_result is not new_result or len(old_blocks) != len(new_blocks):
        return False
    return all(
        a.flavour is b.flavour
        and len(a.bindings) == len(b.bindings)
        and all(x.value is y.value for x, y in zip(a.bindings, b.bindings, strict=True))
        for a, b in zip(old_blocks, new_blocks, strict=True)
    )


def _value(expr: Expr, body: _Body) -> Steps[Expr]:
    """Return an expression whose operands are atoms; its operands are bound in `body` before it."""
    outside = body.code.flavour
    while isinstance(expr, LetBlock):
        yield _bindings(expr, body)
        expr = expr.body
    value = yield _node(expr, body)
    body.code.flavour = outside
    return value


def _bindings(block: LetBlock, body: _Body) -> Steps[None]:
    if block.flavour is not Flavour.REC:
        body.code.flavour = block.flavour
        for binding in block.bindings:
            body.code.bind(binding.var, (yield _value(binding.value, body)))
        return
    functions: list[Binding] = []
    for binding in block.bindings:
        assert isinstance(binding.value, Function), "a rec block binds functions"
        value = yield _function(binding.value, body.names)
        functions.append(Binding(binding.var, value))
    body.code.bind_rec(functions)


def _node(expr: Expr, body: _Body) -> Steps[Expr]:
    """Return a node that is no let block, its operands made atoms and its branches bodies."""
    if is_atom(expr):
        return expr
    match expr:
        case Function():
            return (yield _function(expr, body.names))
        case If(condition, then, otherwise):
            atom = yield _atom(condition, body)
            then = yield _body(then, body.names)
            otherwise = yield _body(otherwise, body.names)
            return rebuild(expr, (atom, then, otherwise))
        case Match(value, clauses):
            inside: list[Expr] = [(yield _atom(value, body))]
            for clause in clauses:
                inside += yield _clause(clause, body.names)
            return rebuild(expr, inside)
        case _:
            assert not (isinstance(expr, Call) and any(attr_exprs(expr))), "not yet typed"
            atoms: list[Expr] = []
            for child in children(expr):
                atom = child if is_atom(child) else (yield _atom(child, body))
                atoms.append(atom)
            return rebuild(expr, atoms)


def _atom(expr: Expr, body: _Body) -> Steps[Expr]:
    return body.atom((yield _value(expr, body)))


def _clause(clause: Clause, names: Names) -> Steps[list[Expr]]:
    guard: list[Expr] = []
    if clause.guard is not None:
        guard.append((yield _body(clause.guard, names, guard=True)))
    return [*guard, (yield _body(clause.body, names))]
