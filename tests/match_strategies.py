"""Random programs that are mostly matches: nested, literal, tuple and as-patterns, guards.

    @given(match_programs())
    def test_...(program): evaluate(program.module, "main", program.arguments())

`main` takes a float64, an int64 and a bool, builds a tree of them and gives a float64. Values are
bounded and functions smooth, so a program has a derivative wherever its guards do not jump.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch
from hypothesis import strategies as st

from pyrelay.infer import infer
from pyrelay.ir.module import Module
from pyrelay.ir.normal_form import to_anf
from pyrelay.text.parser import parse_module

DATA = """
type Tree { Leaf, Mark(bool, float64), Node(Tree, int64, Tree) }
def @size(%t: Tree) -> float64 {
  match (%t) {
    Node(Mark(True, %x), 1, %r) => tanh(%x * 1.5f64) - @size(%r),
    Node(%l, %k, %r) if %k > 0 => 0.5f64 * @size(%l) + @size(%r),
    Node(%l, _, _) => @size(%l) * 0.25f64,
    Mark(True, %x) => sin(%x),
    Mark(_, %x) => %x,
    Leaf => 0.75f64
  }
}
"""
PARAMS = "%x: float64, %n: int64, %b: bool"
Draw: TypeAlias = Callable[[st.SearchStrategy[Any]], Any]


@dataclass(frozen=True)
class MatchProgram:
    """The text of a program, and arguments for its `main`."""

    text: str
    number: float
    count: int
    flag: bool

    @property
    def module(self) -> Module:
        """The program in A-normal form."""
        return to_anf(infer(parse_module(self.text)))

    def arguments(self) -> list[Any]:
        """Return the arguments, the same ones every time."""
        return [torch.tensor(self.number, dtype=torch.float64), self.count, self.flag]


@dataclass
class _Scope:
    """The variables in scope, by type."""

    names: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def of(self, ty: str) -> list[str]:
        return self.names.get(ty, [])

    def with_(self, found: list[tuple[str, str]]) -> _Scope:
        names = {ty: list(known) for ty, known in self.names.items()}
        for ty, name in found:
            names.setdefault(ty, []).append(name)
        return _Scope(names)


FIELDS = {"Tree": {"Leaf": (), "Mark": ("bool", "float"), "Node": ("Tree", "int", "Tree")}}
TUPLES = {"pair": ("Tree", "int"), "triple": ("bool", "pair", "Tree")}
LITERALS = {"bool": ("True", "False"), "int": ("0", "1", "2", "-1"), "float": ("0.0", "0.5")}


class _Maker:
    """Draws one program."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._count = 0

    def _choose(self, *options: Any) -> Any:
        return self._draw(st.sampled_from(options))

    def _fresh(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def program(self) -> str:
        """Return the text of a program."""
        scope = _Scope({"float": ["%x"], "int": ["%n"], "bool": ["%b"]})
        tree = self.value("Tree", scope, 3)
        first = scope.with_([("Tree", "%t")])
        held = self.match(first, 2)
        last = self.match(first.with_([("float", "%r")]), 2)
        body = f"let %t = {tree}; let %r = {held}; {last}"
        return f"{DATA}\ndef @main({PARAMS}) -> float64 {{ {body} }}"

    def value(self, ty: str, scope: _Scope, depth: int) -> str:
        """Return an expression of a type."""
        if scope.of(ty) and (depth <= 0 or self._choose(0, 0, 1)):
            return self._choose(*scope.of(ty))
        match ty:
            case "Tree":
                name = self._choose(*FIELDS["Tree"]) if depth > 0 else "Leaf"
                fields = [self.value(f, scope, depth - 1) for f in FIELDS["Tree"][name]]
                return f"{name}({', '.join(fields)})"
            case "float":
                return self.number(scope, depth)
            case "bool" | "int":
                return self._choose(*LITERALS[ty])
            case _:
                return f"({', '.join(self.value(f, scope, depth - 1) for f in TUPLES[ty])})"

    def number(self, scope: _Scope, depth: int) -> str:
        """Return an expression of a float."""
        known = self._choose(*scope.of("float"))
        trees = scope.of("Tree")
        forms = [known, f"({known} * 0.5f64 + 0.1f64)", f"tanh({known} + 0.3f64)"]
        if trees:
            forms.append(f"@size({self._choose(*trees)})")
        if depth > 0:
            forms.append(f"({self.number(scope, depth - 1)} * {self.number(scope, depth - 1)})")
        return self._choose(*forms)

    def match(self, scope: _Scope, depth: int) -> str:
        """Return a match whose last clause takes everything."""
        ty = self._choose("Tree", "Tree", "int", "bool", "pair", "triple")
        clauses = [self.clause(ty, scope, depth) for _ in range(self._choose(1, 2, 3, 4))]
        clauses.append(f"_ => {self.body(scope, depth)}")
        return f"match ({self.value(ty, scope, 2)}) {{ {', '.join(clauses)} }}"

    def clause(self, ty: str, scope: _Scope, depth: int) -> str:
        """Return a clause for values of a type."""
        bound: list[tuple[str, str]] = []
        pattern = self.pattern(ty, 3, bound)
        inside = scope.with_(bound)
        guard = ""
        if self._choose(0, 0, 1):
            test = (
                f"{self._choose(*inside.of('int'))} > {self._choose('0', '1')}",
                self._choose(*inside.of("bool")),
                f"{self._choose(*inside.of('float'))} < 0.4f64",
                f"@size({self._choose(*inside.of('Tree'))}) > 0.2f64",
            )
            guard = f" if {self._choose(*test)}"
        return f"{pattern}{guard} => {self.body(inside, depth)}"

    def body(self, scope: _Scope, depth: int) -> str:
        """Return what a clause gives: a number, or what another match finds."""
        if depth > 0 and self._choose(0, 1):
            return f"{{ {self.match(scope, depth - 1)} }}"
        return self.number(scope, 2)

    def pattern(self, ty: str, depth: int, bound: list[tuple[str, str]]) -> str:
        """Return a pattern for a type, and note what it binds."""
        kind = self._choose("any", "bind", "inside", "inside", "as")
        if kind == "any" or (depth <= 0 and kind in ("inside", "as")):
            return "_"
        if kind == "bind" or (ty in ("pair", "triple") and kind == "as"):
            return self._bound(ty, bound) if ty not in TUPLES else self._inside(ty, depth, bound)
        if kind == "inside":
            return self._inside(ty, depth, bound)
        return f"({self._inside(ty, depth, bound)}) as {self._bound(ty, bound)}"

    def _bound(self, ty: str, bound: list[tuple[str, str]]) -> str:
        name = self._fresh()
        bound.append((ty, name))
        return name

    def _inside(self, ty: str, depth: int, bound: list[tuple[str, str]]) -> str:
        if ty in LITERALS:
            return self._choose(*LITERALS[ty])
        if ty in TUPLES:
            return f"({', '.join(self.pattern(f, depth - 1, bound) for f in TUPLES[ty])})"
        name = self._choose(*FIELDS[ty])
        fields = [self.pattern(f, depth - 1, bound) for f in FIELDS[ty][name]]
        return f"{name}({', '.join(fields)})" if fields else name


@st.composite
def match_programs(draw: Draw) -> MatchProgram:
    """Draw a program of nested matches, and arguments for it."""
    return MatchProgram(
        _Maker(draw).program(),
        draw(st.sampled_from((-0.7, 0.0, 0.3, 0.5, 1.2))),
        draw(st.integers(-1, 3)),
        draw(st.booleans()),
    )
