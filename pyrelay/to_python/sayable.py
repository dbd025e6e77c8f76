"""Programs in a form that Python can say, with the same values and effects.

Constructs that Python lacks are replaced before the program is printed:

* a match that need not be complete ends in a case that stops the program;
* cases behind one that takes all are left out, and so are guards that are known;
* a guard that is more than an expression calls a local function;
* a hidden parameter is its value;
* the new buffers of a layer that does not train are the old ones;
* what would nest too deep becomes a local function.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, final

from ..ir.expr import (
    Binding,
    BindPattern,
    Call,
    Clause,
    Constant,
    Constructor,
    ConstructorPattern,
    Expr,
    Flavour,
    Function,
    If,
    LetBlock,
    Match,
    Pattern,
    Tuple,
    TupleGet,
    TuplePattern,
    Var,
    Wildcard,
    type_of,
)
from ..ir.module import AdtDef, Module
from ..ir.op import HiddenKind, Op
from ..ir.traverse import (
    Steps,
    free_vars,
    let,
    pattern_vars,
    post_order,
    rewrite,
    run,
    spine,
    substitute,
    takes_all,
)
from ..ir.types import BOOL, AdtType, FnType, TupleType
from ..operators.composite.model import param
from ..operators.host.failing import fail
from .expressible import gives_first, is_one_expression

_UNMATCHED: Final = "MatchError: no case matches the value"


def sayable(module: Module) -> Module:
    """Return a module in A-normal form in other words where Python has none for it."""
    return module.map_functions(lambda f: _written(f, module.adts))


def _written(function: Function, adts: Mapping[str, AdtDef]) -> Function:
    known = {b.var: v for b in _bindings(function) if (v := _alias(b.value)) is not None}
    for var, value in known.items():
        while isinstance(value, Var) and value in known:
            value = known[value]
        known[var] = value
    whole = _used_whole(function)

    def change(node: Expr) -> Expr:
        match node:
            case Match():
                return _complete(node, adts)
            case LetBlock(flavour=flavour, bindings=bindings) if flavour is not Flavour.REC:
                kept = (b for b in bindings if b.var not in known)
                made = [b for kept_one in kept for b in _with_buffers(kept_one, whole)]
                return replace(node, bindings=tuple(made)) if made else node.body
            case _:
                return node

    plain = rewrite(substitute(function, known), change)
    found = rewrite(plain, lambda node: _with_guards(node, adts))
    assert isinstance(found, Function)
    return shallow(found)


def _bindings(function: Function) -> Iterator[Binding]:
    for node in post_order(function):
        if isinstance(node, LetBlock) and node.flavour is not Flavour.REC:
            yield from node.bindings


def _alias(value: Expr) -> Expr | None:
    """Return the operand that a call stands for, where Python has no such call."""
    return value.args[0] if isinstance(value, Call) and value.callee is param else None


# Layers that do not train: Python's call gives the output alone.


def _used_whole(function: Function) -> frozenset[Var]:
    """Return the results of layers with buffers that are used other than for the output."""
    layers = {b.var for b in _bindings(function) if gives_first(b.value)}
    uses: Counter[Expr] = Counter()
    for node in post_order(function):
        if isinstance(node, TupleGet) and node.index == 0:
            uses[node.value] -= 1
        elif isinstance(node, Var):
            uses[node] += 1
    return frozenset(var for var in layers if uses[var] > 0)


def _with_buffers(binding: Binding, whole: frozenset[Var]) -> Iterator[Binding]:
    """Return a binding; of a layer of which all is used, with the buffers as they were."""
    var, call = binding.var, binding.value
    if var not in whole:
        yield binding
        return
    assert isinstance(call, Call)
    assert isinstance(call.callee, Op)
    assert isinstance(call.ty, TupleType)
    places = {p.name: i for i, p in enumerate(call.callee.operands)}
    buffers = [places[h.name] for h in call.callee.hidden if h.holder is HiddenKind.BUFFER]
    layer, output = Var(call.callee.name, call.ty, span=call.span), call.ty.fields[0]
    first = Var("output", output, span=call.span)
    yield Binding(layer, call)
    yield Binding(first, TupleGet(layer, 0, output, span=call.span))
    yield Binding(var, Tuple((first, *(call.args[i] for i in buffers)), call.ty, span=call.span))


# Matches.


def _complete(match: Match, adts: Mapping[str, AdtDef]) -> Match:
    """Return a match that takes every value, without cases that none reaches."""
    clauses: list[Clause] = []
    for clause in match.clauses:
        guard = clause.guard
        if isinstance(guard, Constant):
            if guard.value is False:
                continue
            clause = replace(clause, guard=None)
        clauses.append(clause)
        if clause.guard is None and takes_all(clause.pattern):
            break
    if (match.partial or not clauses) and not _takes_every(clauses, match, adts):
        pattern = Wildcard(span=match.span)
        clauses.append(Clause(pattern, _stopped(match)))
    return replace(match, clauses=tuple(clauses), partial=False)


def _takes_every(clauses: list[Clause], match: Match, adts: Mapping[str, AdtDef]) -> bool:
    """Return whether clauses are seen to take every value, without looking into the fields."""
    ty = match.value.ty
    simple = [_outside(c.pattern) for c in clauses if c.guard is None]
    if any(isinstance(p, Wildcard) or _takes_tuple(p) for p in simple):
        return True
    if not isinstance(ty, AdtType) or ty.name not in adts:
        return False
    named = {
        p.name
        for p in simple
        if isinstance(p, ConstructorPattern) and all(map(takes_all, p.fields))
    }
    return named == {c.name for c in adts[ty.name].constructors}


def _outside(pattern: Pattern) -> Pattern:
    while isinstance(pattern, BindPattern):
        if pattern.inner is None:
            return Wildcard(span=pattern.span)
        pattern = pattern.inner
    return pattern


def _takes_tuple(pattern: Pattern) -> bool:
    return isinstance(pattern, TuplePattern) and all(map(takes_all, pattern.fields))


def _stopped(match: Match) -> Expr:
    call = Call(fail, (), {"message": _UNMATCHED}, ty=match.ty, span=match.span)
    var = Var("unmatched", match.ty, span=match.span)
    binding = Binding(var, call)
    return LetBlock((binding,), var, Flavour.IMPURE, match.ty, span=match.span)


# Guards. A guard has no place for statements.


def _with_guards(node: Expr, adts: Mapping[str, AdtDef]) -> Expr:
    """Return a node whose matches have only guards that are expressions."""
    match node:
        case Match():
            return _with_short_guards(node, adts)
        case LetBlock(bindings=bindings) if any(isinstance(b.value, LetBlock) for b in bindings):
            return replace(node, bindings=tuple(b for each in bindings for b in _flat(each)))
        case _:
            return node


def _flat(binding: Binding) -> tuple[Binding, ...]:
    """Return a binding; of a block the bindings before its body."""
    if not isinstance(binding.value, LetBlock):
        return (binding,)
    return (*binding.value.bindings, Binding(binding.var, binding.value.body))


def _with_short_guards(match: Match, adts: Mapping[str, AdtDef]) -> Expr:
    """Return a match that calls local functions in the place of its long guards, behind these."""
    functions: list[Binding] = []
    clauses: list[Clause] = []
    for clause in match.clauses:
        if clause.guard is not None and not is_one_expression(clause.guard, adts):
            function, call = _guard(clause.pattern, clause.guard)
            functions.append(function)
            clause = replace(clause, guard=call)
        clauses.append(clause)
    return let(functions, replace(match, clauses=tuple(clauses))) if functions else match


def _may_end(value: Expr) -> bool:
    if isinstance(value, Call):
        return isinstance(value.callee, Expr) and not isinstance(value.callee, Constructor)
    return isinstance(value, If | Match)


def _in_tail(body: Expr) -> Expr:
    """Return a body that ends in the branch, or the call, that it names last, if it names one."""
    blocks, end = spine(body)
    if not blocks or not _may_end(blocks[-1].bindings[-1].value):
        return body
    *before, last = blocks
    *most, named = last.bindings
    if named.var is not end:
        return body
    found = let(most, named.value, last.flavour)
    for block in reversed(before):
        found = replace(block, body=found)
    return found


def _guard(pattern: Pattern, guard: Expr) -> tuple[Binding, Expr]:
    """Return a guard as a function of the variables it uses of its pattern, and its call."""
    used = set(free_vars(guard))
    given = [v for v in pattern_vars(pattern) if v in used]
    params = {v: replace(v) for v in given}
    ty = FnType(tuple(type_of(v) for v in given), BOOL)
    body = substitute(_in_tail(guard), params)
    function = Function(tuple(params.values()), body, BOOL, name="guard", ty=ty, span=guard.span)
    name = Var("guard", ty, span=guard.span)
    holds = Var("holds", BOOL, span=guard.span)
    call = Call(name, tuple(given), ty=BOOL, span=guard.span)
    return Binding(name, function), let((Binding(holds, call),), holds)


_DEEPEST: Final = 40
"""How deep statements nest; Python's own limit is 100 levels of indentation."""


def shallow(function: Function) -> Function:
    """Return a function in A-normal form with what nests deep as local functions."""
    parts = _Parts()
    body = run(parts.body(function.body, 1, in_tail=True))
    return replace(function, body=let(parts.made, body))


@final
class _Parts:
    """The parts of one function that became functions, inner ones first."""

    def __init__(self) -> None:
        self.made: Final[list[Binding]] = []
        self._names: Final[set[Var]] = set()

    def body(self, body: Expr, depth: int, *, in_tail: bool) -> Steps[Expr]:
        """Return a body whose statements stand at a depth."""
        blocks, end = spine(body)
        found: list[LetBlock] = []
        for block in blocks:
            bindings: list[Binding] = []
            for binding in block.bindings:
                value = yield self._value(binding.value, depth)
                bindings.append(Binding(binding.var, value))
            found.append(replace(block, bindings=tuple(bindings)))
        if in_tail and isinstance(end, If):  # Python returns from the first arm and goes on
            then = yield self._inside(end.then, depth + 1, in_tail=True)
            otherwise = yield self.body(end.otherwise, depth, in_tail=True)
            end = replace(end, then=then, otherwise=otherwise)
        else:
            end = yield self._value(end, depth, in_tail=in_tail)
        for block in reversed(found):
            end = replace(block, body=end)
        return end

    def _value(self, value: Expr, depth: int, *, in_tail: bool = False) -> Steps[Expr]:
        match value:
            case Function():
                inside = yield self._inside(value.body, depth + 1, in_tail=True)
                return replace(value, body=inside)
            case If():
                then = yield self._inside(value.then, depth + 1, in_tail=in_tail)
                otherwise = yield self._inside(value.otherwise, depth + 1, in_tail=in_tail)
                return replace(value, then=then, otherwise=otherwise)
            case Match():
                clauses: list[Clause] = []
                for clause in value.clauses:
                    arm = yield self._inside(clause.body, depth + 2, in_tail=in_tail)
                    clauses.append(replace(clause, body=arm))
                return replace(value, clauses=tuple(clauses))
            case _:
                return value

    def _inside(self, body: Expr, depth: int, *, in_tail: bool) -> Steps[Expr]:
        """Return an arm, or the body of a function; where it stands too deep as a call."""
        if depth < _DEEPEST or _is_flat(body):
            return (yield self.body(body, depth, in_tail=in_tail))
        inside = yield self.body(body, 2, in_tail=True)
        given = [v for v in free_vars(inside) if v not in self._names]
        params = {v: replace(v) for v in given}
        ty = FnType(tuple(type_of(v) for v in given), type_of(body))
        made = substitute(inside, params)
        span = body.span
        function = Function(tuple(params.values()), made, ty.result, name="part", ty=ty, span=span)
        name = Var("part", ty, span=span)
        self._names.add(name)
        self.made.append(Binding(name, function))
        return Call(name, tuple(given), ty=ty.result, span=span)


def _is_flat(body: Expr) -> bool:
    """Return whether nothing nests in a body."""
    blocks, end = spine(body)
    values = [b.value for block in blocks for b in block.bindings]
    return not any(isinstance(v, If | Match | Function) for v in (end, *values))
