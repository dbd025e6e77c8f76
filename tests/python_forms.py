"""The form in which a program and what its Python compiles to are compared.

`canonical` is A-normal form with flavours, in which a value has one name, unit is `()`, every local
function stands in a block of its own, and what a branch ends in has a name where the branch itself
has one. These are the freedoms that Python's syntax does not have: it cannot say which of two equal
names an operand is, nor that a function is bound by `let` rather than by `let rec`, and statements
in a branch end in an assignment. Sizes found while running are numbered. Patterns bind only what is
used, and what takes all that is left names the one constructor that is. Type parameters stand in
the order in which the types of parameters mention them. The type arguments of a constructor follow
from the type of its call. A literal that a function takes as an integer is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyrelay.analysis.retype import Retyping, types_in
from pyrelay.ir.dims import Dim
from pyrelay.ir.expr import (
    Assumption,
    Binding,
    BindPattern,
    Call,
    Constant,
    ConstructorPattern,
    Expr,
    Flavour,
    Function,
    GlobalVar,
    If,
    LetBlock,
    Match,
    Pattern,
    Tuple,
    TuplePattern,
    Var,
    Wildcard,
    is_atom,
    type_of,
)
from pyrelay.ir.module import AdtDef, Module
from pyrelay.ir.normal_form import to_anf
from pyrelay.ir.op import Op, Promotion
from pyrelay.ir.traverse import (
    bound_vars,
    children,
    post_order,
    rebuild,
    rewrite,
    spine,
    substitute,
)
from pyrelay.ir.types import INT, UNIT, AdtType, FnType, SizeType, Substitution, dim_names
from pyrelay.passes.normalise.flavours import with_flavours
from pyrelay.translate.types.annotation import type_names


def _plain_patterns(function: Expr, adts: Mapping[str, AdtDef]) -> Expr:
    """Return a function whose patterns bind what is used, and name the last constructor left."""
    used = {node for node in post_order(function) if isinstance(node, Var)}

    def plain(pattern: Pattern) -> Pattern:
        match pattern:
            case BindPattern(var, inner):
                inside = None if inner is None else plain(inner)
                if var in used:
                    return replace(pattern, inner=inside)
                return Wildcard(span=pattern.span) if inside is None else inside
            case ConstructorPattern(fields=fields) | TuplePattern(fields=fields):
                return replace(pattern, fields=tuple(map(plain, fields)))
            case _:
                return pattern

    def change(node: Expr) -> Expr:
        if not isinstance(node, Match):
            return node
        patterns = [plain(c.pattern) for c in node.clauses]
        ty = type_of(node.value)
        if isinstance(ty, AdtType) and ty.name in adts:
            patterns = _last_named(adts[ty.name], patterns, [c.guard for c in node.clauses])
        pairs = zip(node.clauses, patterns, strict=True)
        return replace(node, clauses=tuple(replace(c, pattern=p) for c, p in pairs))

    return rewrite(function, change)


def _last_named(adt: AdtDef, patterns: list[Pattern], guards: list[Expr | None]) -> list[Pattern]:
    found: list[Pattern] = []
    taken: set[str] = set()
    for pattern, guard in zip(patterns, guards, strict=True):
        left = [c for c in adt.constructors if c.name not in taken]
        if isinstance(pattern, Wildcard) and len(left) == 1:
            span = pattern.span
            fields = tuple(Wildcard(span=span) for _ in left[0].fields)
            pattern = ConstructorPattern(adt.name, left[0].name, fields, span=span)
        if isinstance(pattern, ConstructorPattern) and guard is None:
            plain = all(isinstance(f, Wildcard | BindPattern) for f in pattern.fields)
            taken |= {pattern.name} if plain else set()
        found.append(pattern)
    return found


def canonical(module: Module) -> Module:
    """Return a typed module in the form in which it is compared."""
    module = _with_parameters_in_order(to_anf(module))
    functions = {n: _canonical(f, module.adts) for n, f in module.functions.items()}
    return with_flavours(replace(module, functions=functions))


def _with_parameters_in_order(module: Module) -> Module:
    """Return a module whose functions have their type parameters in order of first mention."""
    orders = {n: _order(f) for n, f in module.functions.items()}

    def change(node: Expr) -> Expr:
        match node:
            case Call(callee=GlobalVar(name), type_args=args) if args:
                return replace(node, type_args=tuple(args[i] for i in orders[name]))
            case Function(type_params=params) if params:
                ordered = tuple(params[i] for i in _order(node))
                node = replace(node, assumptions=_equations(node))
                assert isinstance(node.ty, FnType)
                ty = replace(node.ty, type_params=ordered)
                return replace(node, type_params=ordered, ty=ty)
            case _:
                return node

    functions = {n: _function(rewrite(f, change)) for n, f in module.functions.items()}
    return replace(module, functions=functions)


def _order(function: Function) -> list[int]:
    """Return the places of a function's type parameters in the order of their first mention."""
    mentioned = type_names([type_of(p) for p in function.params])
    first = {p: i for i, p in enumerate(mentioned)}
    places = range(len(function.type_params))
    return sorted(places, key=lambda i: first.get(function.type_params[i], len(first)))


def _equations(function: Function) -> tuple[Assumption, ...]:
    """Return the assumptions of a function, each once, with the sides of equations in order."""
    found: dict[Assumption, None] = {}
    for each in function.assumptions:
        left, right = sorted((each.left, each.right), key=str)
        found[replace(each, left=left, right=right)] = None
    return tuple(found)


def _function(expr: Expr) -> Function:
    assert isinstance(expr, Function)
    return expr


def _canonical(function: Function, adts: Mapping[str, AdtDef]) -> Function:
    second = {
        b.var: b.value
        for node in post_order(function)
        if isinstance(node, LetBlock)
        for b in node.bindings
        if is_atom(b.value) and b.var.ty == b.value.ty
    }
    unit = Tuple((), UNIT, span=function.span)
    for node in post_order(function):
        second |= {v: unit for v in bound_vars(node) if type_of(v) == UNIT}
    first: dict[Var, Expr] = {}
    for var in second:
        value: Expr = var
        while isinstance(value, Var) and value in second:
            value = second[value]
        first[var] = value
    found = rewrite(rewrite(substitute(function, first), _blocks), _with_integers)
    return _with_fresh_sizes(_plain_patterns(found, adts))


def _with_fresh_sizes(function: Expr) -> Function:
    """Return a function with the sizes that it finds while it runs named in order."""
    names: dict[str, None] = {}
    bound: set[str] = set()
    for node in post_order(function):
        bound |= {p.name for p in node.type_params} if isinstance(node, Function) else set()
        for ty in types_in(node):
            found = ty.names() if isinstance(ty, Dim) else dim_names(ty)
            names |= dict.fromkeys(sorted(found))
    free = [n for n in names if n not in bound]
    change = {n: Dim.of(f"size_{i}") for i, n in enumerate(free)}
    copy = Retyping(Substitution(change, {})).copy(function)
    assert isinstance(copy, Function)
    return copy


def _with_integers(node: Expr) -> Expr:
    """Return a call whose literals are integers where it takes integers, not sizes."""
    if not isinstance(node, Call):
        return node
    if isinstance(node.callee, Op):
        integers = any(a.ty == INT for a in node.args) and node.callee.promotion != Promotion.NONE
        wanted = [INT if integers else a.ty for a in node.args]
    elif isinstance(node.callee.ty, FnType):
        wanted = list(node.callee.ty.params)
    else:
        return node
    pairs = zip(node.args, wanted, strict=True)
    args = (replace(a, ty=t) if _is_size(a) and t == INT else a for a, t in pairs)
    return replace(node, args=tuple(args))


def _is_size(expr: Expr) -> bool:
    return isinstance(expr, Constant) and isinstance(expr.ty, SizeType)


def _blocks(node: Expr) -> Expr:
    """Take second names out of a block, and put each function into a block of its own."""
    if not isinstance(node, LetBlock) or node.flavour is Flavour.REC:
        return node
    groups: list[tuple[Flavour, list[Binding]]] = []
    for binding in node.bindings:
        if is_atom(binding.value) and binding.var.ty == binding.value.ty:
            continue
        if isinstance(binding.value, If | Match):
            binding = Binding(binding.var, _named_ends(binding.value))
        if isinstance(binding.value, Function):
            groups.append((Flavour.REC, [binding]))
        elif groups and groups[-1][0] is Flavour.PURE:
            groups[-1][1].append(binding)
        else:
            groups.append((Flavour.PURE, [binding]))
    body = node.body
    for flavour, bindings in reversed(groups):
        body = LetBlock(tuple(bindings), body, flavour, body.ty, span=node.span)
    return body


def _named_ends(branch: If | Match) -> Expr:
    """Return a branch that is bound, with the ends of its arms bound too."""
    first, *arms = children(branch)
    if isinstance(branch, Match):
        guards = [c.guard for c in branch.clauses]
        return rebuild(branch, [first, *(a if a in guards else _named_end(a) for a in arms)])
    return rebuild(branch, [first, *map(_named_end, arms)])


def _named_end(arm: Expr) -> Expr:
    blocks, end = spine(arm)
    if not is_atom(end):
        var = Var("end", end.ty, span=end.span)
        value = _named_ends(end) if isinstance(end, If | Match) else end
        end = LetBlock((Binding(var, value),), var, Flavour.PURE, var.ty, span=end.span)
    for block in reversed(blocks):
        both = (block.flavour, end.flavour) if isinstance(end, LetBlock) else ()
        if both == (Flavour.PURE, Flavour.PURE):
            assert isinstance(end, LetBlock)
            end = replace(end, bindings=(*block.bindings, *end.bindings))
        else:
            end = replace(block, body=end)
    return end
