"""From printed Python back to IR, and the form in which the two are compared.

`canonical` is A-normal form with flavours, in which a value has one name, unit is `()`, every local
function stands in a block of its own, and what a branch ends in has a name where the branch itself
has one. These are the freedoms that Python's syntax does not have: it cannot say which of two equal
names an operand is, nor that a function is bound by `let` rather than by `let rec`, and statements
in a branch end in an assignment. Sizes found while running are numbered. Patterns bind only what is
used, and what takes all that is left names the one constructor that is. The type arguments of a
constructor follow from the type of its call.
"""

from __future__ import annotations

import importlib.util
import itertools
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyrelay.decorators import RelayFunction
from pyrelay.ir.dims import Dim
from pyrelay.ir.equality import alpha_equal
from pyrelay.ir.expr import (
    Binding,
    BindPattern,
    Call,
    Constructor,
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
from pyrelay.ir.module import AdtDef, ConstructorDef, Module
from pyrelay.ir.printer import to_text
from pyrelay.ir.traverse import (
    bound_vars,
    children,
    post_order,
    rebuild,
    rewrite,
    spine,
    substitute,
)
from pyrelay.ir.types import UNIT, AdtType, Substitution, Type, dim_names, map_type
from pyrelay.passes.effects import with_flavours
from pyrelay.passes.normal_form import to_anf
from pyrelay.passes.retype import Retyping, types_in
from pyrelay.translate.printing.data import field_names
from pyrelay.translate.printing.file import File
from pyrelay.translate.printing.text import to_python

_NUMBERS = itertools.count()


def as_python(typed: Module) -> str:
    """Give a typed module as Python, as `show` does."""
    nodes = (n for f in typed.functions.values() for n in post_order(f))
    return to_python(to_anf(typed), {v for n in nodes for v in bound_vars(n)})


def load(text: str, folder: Path) -> dict[str, Any]:
    """Import a file of this text; give its names."""
    name = f"printed_{next(_NUMBERS)}"
    file = folder / f"{name}.py"
    file.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    del sys.modules[name]
    return vars(module)


def compiled(text: str, entry: str, folder: Path) -> Module:
    """Give the typed module of a function of printed Python."""
    function = load(text, folder)[entry]
    assert isinstance(function, RelayFunction)
    return function.module


def renamed(module: Module, names: Mapping[str, str]) -> Module:
    """Give a module with its functions under other names."""

    def change(node: Expr) -> Expr:
        return replace(node, name=names[node.name]) if isinstance(node, GlobalVar) else node

    functions = {names[n]: rewrite(f, change) for n, f in module.functions.items()}
    assert all(isinstance(f, Function) for f in functions.values())
    return replace(module, functions=functions)


def with_classes(module: Module) -> Module:
    """Give a module with data types, constructors and fields called as Python calls them."""
    names = File(module).data
    adts: dict[str, AdtDef] = {}

    def ty(found: Type) -> Type | None:
        if not isinstance(found, AdtType):
            return None
        args = (a if isinstance(a, Dim) else map_type(a, ty, lambda d: d) for a in found.args)
        return AdtType(names.types.get(found.name, found.name), tuple(args))

    for name, adt in module.adts.items():
        made = [
            ConstructorDef(
                names.classes.get((name, c.name), c.name),
                tuple(map_type(f, ty, lambda d: d) for f in c.fields),
                field_names(c),
            )
            for c in adt.constructors
        ]
        new = names.types.get(name, name)
        adts[new] = replace(adt, name=new, constructors=tuple(made))
    functions = {n: _Renaming(names, ty).copy(f) for n, f in module.functions.items()}
    return Module(functions, adts)


class _Renaming:
    """Copies functions under other names of data types and constructors."""

    def __init__(self, names: Any, ty: Any) -> None:
        self._names = names
        self._ty = ty
        self._vars: dict[Var, Var] = {}

    def type(self, ty: Type | None) -> Type | None:
        return None if ty is None else map_type(ty, self._ty, lambda d: d)

    def copy(self, function: Function) -> Function:
        for node in post_order(function):
            for var in bound_vars(node):
                self._vars[var] = replace(var, ty=self.type(var.ty))
        found = rewrite(function, self._node)
        assert isinstance(found, Function)
        return found

    def _node(self, node: Expr) -> Expr:
        if isinstance(node, Var):
            return self._vars.get(node, node)
        node = replace(node, ty=self.type(node.ty))
        match node:
            case Constructor(adt, name):
                new = self._names.types.get(adt, adt), self._names.classes.get((adt, name), name)
                return replace(node, adt=new[0], name=new[1])
            case Call(callee=Constructor()):
                return replace(node, type_args=())
            case Call() if node.type_args:
                args = (a if isinstance(a, Dim) else self.type(a) for a in node.type_args)
                return replace(node, type_args=tuple(args))
            case LetBlock(bindings):
                bound = tuple(Binding(self._vars[b.var], b.value) for b in bindings)
                return replace(node, bindings=bound)
            case Function(params):
                renamed = tuple(self._vars[p] for p in params)
                return replace(node, params=renamed, result=self.type(node.result))
            case Match(clauses=clauses):
                changed = (replace(c, pattern=self._pattern(c.pattern)) for c in clauses)
                return replace(node, clauses=tuple(changed))
            case _:
                return node

    def _pattern(self, pattern: Pattern) -> Pattern:
        match pattern:
            case BindPattern(var, inner):
                inside = None if inner is None else self._pattern(inner)
                return replace(pattern, var=self._vars[var], inner=inside)
            case ConstructorPattern(adt, name, fields):
                return replace(
                    pattern,
                    adt=self._names.types.get(adt, adt),
                    name=self._names.classes.get((adt, name), name),
                    fields=tuple(map(self._pattern, fields)),
                )
            case TuplePattern(fields):
                return replace(pattern, fields=tuple(map(self._pattern, fields)))
            case _:
                return pattern


def _plain_patterns(function: Expr, adts: Mapping[str, AdtDef]) -> Expr:
    """Give a function whose patterns bind what is used, and name the last constructor left."""
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
    """Give a typed module in the form in which it is compared."""
    functions = {n: _canonical(f, module.adts) for n, f in to_anf(module).functions.items()}
    return with_flavours(replace(module, functions=functions))


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
        second |= {
            v: unit
            for v in bound_vars(node)
            if type_of(v) == UNIT and not isinstance(node, Function)
        }
    first: dict[Var, Expr] = {}
    for var in second:
        value: Expr = var
        while isinstance(value, Var) and value in second:
            value = second[value]
        first[var] = value
    found = rewrite(substitute(function, first), _blocks)
    return _with_fresh_sizes(_plain_patterns(found, adts))


def _with_fresh_sizes(function: Expr) -> Function:
    """Give a function with the sizes that it finds while it runs named in order."""
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
    """Give a branch that is bound, with the ends of its arms bound too."""
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


def assert_reads_back(typed: Module, entry: str, folder: Path) -> str:
    """Check that the Python of a typed module compiles to it; give the Python."""
    text = as_python(typed)
    typed = renamed(typed, File(to_anf(typed)).functions)
    again = compiled(text, entry, folder)
    typed, again = with_classes(typed), with_classes(again)
    same = alpha_equal(canonical(again), canonical(typed))
    assert same, f"{text}\n{to_text(canonical(typed))}\nis not\n{to_text(canonical(again))}"
    return text
