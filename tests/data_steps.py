"""Steps of random programs that work on data: lists that a loop collects, trees that recursion
makes, maps and folds, and functions held in data."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from pyrelay.infer import infer
from pyrelay.ir.expr import Function
from pyrelay.ir.module import AdtDef, Module
from pyrelay.ir.normal_form import to_anf
from pyrelay.ir.types import INT, AdtType, DType, FnType, TensorType, Type
from pyrelay.operators.builder import Value
from pyrelay.operators.table import BY_NAME
from pyrelay.text.parser import parse_module
from tests.cell_steps import Maker, Scope

_TEXT: Final = """
type Items { End_of_items, Item(FLOAT, int64, Items) }
type Tree { Tip(FLOAT, int64), Fork(Tree, Tree) }
type Held { Held(fn (FLOAT) -> FLOAT, FLOAT) }

def @collect(%n: int64, %x: FLOAT, %items: Items) -> Items {
  if (less_equal(%n, 0i64)) { %items }
  else { @collect(subtract(%n, 1i64), sin(%x), Item(%x, %n, %items)) }
}
def @total(%items: Items, %f: fn (FLOAT) -> FLOAT) -> FLOAT {
  match (%items) {
    Item(%x, 2, %rest) => { subtract(%x, @total(%rest, %f)) },
    Item(%x, _, %rest) => { tanh(add(%f(%x), multiply(0.5SUFFIX, @total(%rest, %f)))) },
    End_of_items => { 0.25SUFFIX },
  }
}
def @grow(%n: int64, %x: FLOAT) -> Tree {
  if (less_equal(%n, 0i64)) { Tip(%x, %n) }
  else { Fork(@grow(subtract(%n, 1i64), sin(%x)), @grow(subtract(%n, 2i64), %x)) }
}
def @tree_map(%tree: Tree, %f: fn (FLOAT) -> FLOAT) -> Tree {
  match (%tree) {
    Tip(%x, %n) => { Tip(%f(%x), add(%n, 1i64)) },
    Fork(%left, %right) => { Fork(@tree_map(%right, %f), @tree_map(%left, %f)) },
  }
}
def @tree_fold(%tree: Tree) -> FLOAT {
  match (%tree) {
    Tip(%x, _) => { %x },
    Fork(Tip(%x, _), Fork(_, _) as %right) => { tanh(subtract(%x, @tree_fold(%right))) },
    Fork(%left, %right) => { tanh(multiply(@tree_fold(%left), @tree_fold(%right))) },
  }
}
def @held_apply(%held: Held) -> FLOAT { match (%held) { Held(%f, %x) => { %f(%f(%x)) } } }
"""

_ITEMS, _TREE, _HELD = AdtType("Items", ()), AdtType("Tree", ()), AdtType("Held", ())


@cache
def _library(dtype: str) -> Module:
    """Return the functions for a float dtype, typed."""
    suffix = {"float32": "f32", "float64": "f64"}[dtype]
    return to_anf(infer(parse_module(_TEXT.replace("FLOAT", dtype).replace("SUFFIX", suffix))))


class DataSteps:
    """The steps, for one program."""

    def __init__(
        self, maker: Maker, dtype: DType, adts: dict[str, AdtDef], functions: dict[str, Function]
    ) -> None:
        self._maker: Final = maker
        self._number: Final = TensorType((), dtype)
        self._library: Final = _library(dtype.name)
        self._adts: Final = adts
        self._functions: Final = functions
        self.all: Final[list[Callable[[Any], Value | None]]] = [
            self._collect,
            self._total,
            self._grow,
            self._tree_map,
            self._tree_fold,
            self._hold,
            self._held_apply,
        ]

    def _data(self, scope: Scope, ty: AdtType, make: Callable[[Scope], Value]) -> Value:
        """Return data that is visible, or make some."""
        found = self._maker.of_type(scope, ty)
        return self._maker.choose(found) if found else make(scope)

    def _function(self, scope: Scope) -> Value:
        """Return a function of numbers that is visible, or make one."""
        found = self._maker.of_type(scope, FnType((self._number,), self._number))
        if found:
            return self._maker.choose(found)
        return self._maker.closure_of(scope, self._number, self._number)

    def _float(self, scope: Scope) -> Value:
        return self._maker.choose(self._maker.of_type(scope, self._number)[::-1])

    def _count(self, scope: Scope) -> Value:
        return BY_NAME["mod"](self._maker.choose(self._maker.of_type(scope, INT)), 4)

    def _apply(self, scope: Scope, name: str, args: list[Value], ty: Type) -> Value:
        self._use(ty, *(a.ty for a in args))
        self._functions[name] = self._library.functions[name]
        return scope.builder.apply(name, args, ty)

    def _use(self, *types: Type) -> None:
        """Have the program define the data types among some types."""
        for ty in types:
            if isinstance(ty, AdtType):
                self._adts[ty.name] = self._library.adts[ty.name]

    def _collect(self, scope: Scope) -> Value:
        self._use(_ITEMS)
        end = scope.builder.construct("Items", "End_of_items", (), _ITEMS)
        args = [self._count(scope), self._float(scope), end]
        return self._apply(scope, "collect", args, _ITEMS)

    def _total(self, scope: Scope) -> Value:
        items = self._data(scope, _ITEMS, self._collect)
        return self._apply(scope, "total", [items, self._function(scope)], self._number)

    def _grow(self, scope: Scope) -> Value:
        return self._apply(scope, "grow", [self._count(scope), self._float(scope)], _TREE)

    def _tree_map(self, scope: Scope) -> Value:
        tree = self._data(scope, _TREE, self._grow)
        return self._apply(scope, "tree_map", [tree, self._function(scope)], _TREE)

    def _tree_fold(self, scope: Scope) -> Value:
        return self._apply(scope, "tree_fold", [self._data(scope, _TREE, self._grow)], self._number)

    def _hold(self, scope: Scope) -> Value:
        self._use(_HELD)
        parts = (self._function(scope), self._float(scope))
        return scope.builder.construct("Held", "Held", parts, _HELD)

    def _held_apply(self, scope: Scope) -> Value:
        held = self._data(scope, _HELD, self._hold)
        return self._apply(scope, "held_apply", [held], self._number)
