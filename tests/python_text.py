"""From printed Python back to IR."""

from __future__ import annotations

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
    Function,
    GlobalVar,
    LetBlock,
    Match,
    Pattern,
    TuplePattern,
    Var,
)
from pyrelay.ir.linking import Library
from pyrelay.ir.module import AdtDef, ConstructorDef, Module
from pyrelay.ir.normal_form import to_anf
from pyrelay.ir.traverse import bound_vars, post_order, rewrite
from pyrelay.ir.types import AdtType, Type, map_type
from pyrelay.text.printer import to_text
from pyrelay.to_python.data import field_names
from pyrelay.to_python.file import File
from pyrelay.to_python.sayable import sayable
from pyrelay.to_python.text import to_python
from tests.loading import load_file
from tests.python_forms import canonical

_NUMBERS = itertools.count()


def as_python(typed: Module) -> str:
    """Return a typed module as Python, as `show` does."""
    nodes = (n for f in typed.functions.values() for n in post_order(f))
    return to_python(to_anf(typed), {v for n in nodes for v in bound_vars(n)})


def load(text: str, folder: Path, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Import a file of this text, which is given some names; return its names."""
    name = f"printed_{next(_NUMBERS)}"
    file = folder / f"{name}.py"
    file.write_text(text, encoding="utf-8")
    found = vars(load_file(file, name, given))
    del sys.modules[name]
    return found


def compiled(text: str, entry: str, folder: Path, given: Mapping[str, Any] | None = None) -> Module:
    """Return the typed module of a function of printed Python."""
    function = load(text, folder, given)[entry]
    assert isinstance(function, RelayFunction)
    return function.module


def renamed(module: Module, names: Mapping[str, str]) -> Module:
    """Return a module with its functions under other names."""

    def change(node: Expr) -> Expr:
        return replace(node, name=names[node.name]) if isinstance(node, GlobalVar) else node

    functions = {names[n]: rewrite(f, change) for n, f in module.functions.items()}
    assert all(isinstance(f, Function) for f in functions.values())
    return replace(module, functions=functions)


def with_classes(module: Module) -> Module:
    """Return a module with data types, constructors and fields called as Python calls them."""
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


def _mentioned(module: Module, entry: str) -> Module:
    """Return what a function mentions: a file may hold more than it needs."""
    return Library(lambda: module).link(Module({entry: module.functions[entry]}, {}))


def assert_reads_back(
    typed: Module,
    entry: str,
    folder: Path,
    given: Mapping[str, Any] | None = None,
    *,
    equal: bool = True,
) -> str:
    """Check that the Python of a typed module compiles, to the same module if `equal`; return the
    Python."""
    text = as_python(typed)
    typed = renamed(typed, File(to_anf(typed)).functions)
    again = compiled(text, entry, folder, given)
    if not equal:
        return text
    said = sayable(to_anf(typed))
    typed, again = (_mentioned(with_classes(m), entry) for m in (said, again))
    same = alpha_equal(canonical(again), canonical(typed))
    assert same, f"{text}\n{to_text(canonical(typed))}\nis not\n{to_text(canonical(again))}"
    return text
