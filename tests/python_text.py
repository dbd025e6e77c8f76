"""From printed Python back to IR, and the form in which the two are compared.

`canonical` is A-normal form with flavours, in which a value has one name, unit is `()`, every local
function stands in a block of its own, and what a branch ends in has a name where the branch itself
has one. These are the freedoms that Python's syntax does not have: it cannot say which of two equal
names an operand is, nor that a function is bound by `let` rather than by `let rec`, and statements
in a branch end in an assignment. Sizes found while running are numbered.
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
    Expr,
    Flavour,
    Function,
    GlobalVar,
    If,
    LetBlock,
    Match,
    Tuple,
    Var,
    is_atom,
    type_of,
)
from pyrelay.ir.module import Module
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
from pyrelay.ir.types import UNIT, Substitution, dim_names
from pyrelay.passes.effects import with_flavours
from pyrelay.passes.normal_form import to_anf
from pyrelay.passes.retype import Retyping, types_in
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


def canonical(module: Module) -> Module:
    """Give a typed module in the form in which it is compared."""
    functions = {n: _canonical(f) for n, f in to_anf(module).functions.items()}
    return with_flavours(replace(module, functions=functions))


def _canonical(function: Function) -> Function:
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
    return _with_fresh_sizes(found)


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
    again = compiled(text, entry, folder)
    same = alpha_equal(canonical(again), canonical(typed))
    assert same, f"{text}\n{to_text(canonical(typed))}\nis not\n{to_text(canonical(again))}"
    return text
