"""Random programs as source text: functions of statements, over `Expressions`."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, Final

from tests.property.differential import arguments
from tests.property.differential.expressions import ANNOTATIONS, Helper, Scope
from tests.property.differential.statements import Place, Statements

HEADER: Final = """\
from dataclasses import dataclass
from pyrelay import Any, Bool, Dim, Float, Fn, Int, Tensor, relay
from pyrelay.prelude import List

N = Dim("N")


@dataclass(frozen=True)
class Empty:
    pass


@dataclass(frozen=True)
class Leaf:
    value: Float


@dataclass(frozen=True)
class Node:
    left: "Tree"
    right: "Tree"
    weight: Int


@dataclass(frozen=True)
class Point:
    place: Float
    count: Int


Tree = Empty | Leaf | Node

"""
PARAMS: Final = (
    "Float", "Float", "Float", "Int", "Small", "Bool", "Vec", "Mat", "Floats", "Floats", "Ints",
    "Maybe", "Tree", "Rows", "Point",
)  # fmt: skip
RESULTS: Final = (
    "Float", "Float", "Float", "Float", "Int", "Int", "Floats", "Vec", "Pair", "Tree", "Maybe",
    "Rows", "Point",
)  # fmt: skip


@dataclass(frozen=True)
class Drawn:
    """A program, the kinds of the parameters of its `main`, and arguments for a few calls."""

    source: str
    params: tuple[str, ...]
    result: str
    calls: tuple[tuple[Any, ...], ...]


def draw(seed: int) -> Drawn:
    """Return the program of a seed."""
    random = Random(seed)
    program = _Program(random)
    params, result = program.write()
    calls = tuple(_call(params, random) for _ in range(2))
    return Drawn("\n".join(program.lines) + "\n", params, result, calls)


def _call(params: tuple[str, ...], random: Random) -> tuple[Any, ...]:
    size = random.randint(1, 4)
    return tuple(arguments.drawn(p, random, size) for p in params)


class _Program(Statements):
    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self._globals: Final[list[Helper]] = []

    def write(self) -> tuple[tuple[str, ...], str]:
        """Write functions and `main`; return the kinds of its parameters and result."""
        for _ in range(self.random.randrange(3)):
            self.random.choice(_HELPERS)(self)
        count = self.random.randint(1, 5)
        kinds = tuple(self.random.choice(PARAMS) for _ in range(count))
        result = self.random.choice(RESULTS)
        if result == "Vec" and not {"Vec", "Mat"} & set(kinds):
            result = "Float"
        self._function("main", kinds, result, 4)
        return kinds, result

    # ---- functions

    def _function(self, name: str, kinds: tuple[str, ...], result: str, budget: int) -> None:
        names = {f"p{i}": k for i, k in enumerate(kinds)}
        params = ", ".join(f"{n}: {ANNOTATIONS[k]}" for n, k in names.items())
        returned = (
            f" -> {ANNOTATIONS[result]}" if self.make.chance(0.4) or result == "Maybe" else ""
        )
        self.line(0, "@relay")
        self.line(0, f"def {name}({params}){returned}:")
        self.body(Scope(names, list(self._globals)), Place(1, result, budget=budget))
        self.line(0, "")

    def _plain_helper(self) -> None:
        kinds = tuple(self.random.choice(PARAMS) for _ in range(self.random.randint(1, 3)))
        result = self.random.choice(("Float", "Float", "Int"))
        name = self.make.fresh("helper")
        self._function(name, kinds, result, 4)
        self._globals.append(Helper(name, kinds, result))

    def _scalar(self) -> None:
        kinds = ("Float",) * self.random.randint(1, 2)
        name = self.make.fresh("scalar")
        self._function(name, kinds, "Float", 3)
        self._globals.append(Helper(name, kinds, "Float", differentiable=True))

    def _recursive(self) -> None:
        """Write a function that counts down."""
        name, result = self.make.fresh("rec"), self.random.choice(("Float", "Float", "Int"))
        self._counted_down(name, name, result)
        self._globals.append(Helper(name, ("Small", result), result))

    def _counted_down(self, name: str, called: str, result: str) -> None:
        """Write a function that calls one with a smaller number."""
        scope = Scope({"n": "Small", "a": result}, list(self._globals))
        returned = f" -> {ANNOTATIONS[result]}" if self.make.chance(0.5) else ""
        self.line(0, "@relay")
        self.line(0, f"def {name}(n: Int, a: {ANNOTATIONS[result]}){returned}:")
        self.recursion(1, called, result, scope, "n", 1)
        self.line(0, "")

    def _mutual(self) -> None:
        """Write two functions that call each other."""
        one, other = self.make.fresh("even"), self.make.fresh("odd")
        result = self.random.choice(("Float", "Int"))
        for name, called in ((one, other), (other, one)):
            self._counted_down(name, called, result)
        self._globals.append(Helper(one, ("Small", result), result))

    def _tree_walk(self) -> None:
        """Write a function that takes a tree apart."""
        name = self.make.fresh("walk")
        returned = " -> Float" if self.make.chance(0.5) else ""
        scope = Scope({"a": "Float"}, list(self._globals))
        self.line(0, "@relay")
        self.line(0, f"def {name}(t: Tree, a: Float){returned}:")
        self.line(1, "match t:")
        self.line(2, "case Empty():")
        self.line(3, f"return {self.make.float(scope, 1, weak=True)}")
        self.line(2, "case Leaf(v):")
        leaf = Scope({"a": "Float", "v": "Float"}, list(self._globals))
        self.line(3, f"return {self.make.float(leaf, 2, weak=True)}")
        if self.make.chance(0.4):
            self.line(2, "case Node(Leaf(v), Leaf(w), i):")
            both = Scope({"a": "Float", "v": "Float", "w": "Float", "i": "Int"}, scope.functions)
            self.line(3, f"return {self.make.float(both, 2)}")
        self.line(2, "case Node(left, right, i):")
        inner = Scope({"a": "Float", "i": "Int"}, list(self._globals))
        calls = [f"{name}({s}, {self.make.float(inner, 1)})" for s in ("left", "right")]
        op = self.random.choice("+-*")
        self.line(3, f"return {calls[0]} {op} {calls[1]} + {self.make.float(inner, 1)}")
        self.line(0, "")
        self._globals.append(Helper(name, ("Tree", "Float"), "Float"))

    def _list_walk(self) -> None:
        """Write a function that calls itself for the rest of a list."""
        name = self.make.fresh("walk")
        scope = Scope({"xs": "Floats", "a": "Float"}, list(self._globals))
        returned = " -> Float" if self.make.chance(0.5) else ""
        self.line(0, "@relay")
        self.line(0, f"def {name}(xs: List[Float], a: Float){returned}:")
        self.line(1, "if len(xs) == 0:")
        grows = self.make.chance(0.7)
        self.line(2, f"return {self.make.float(Scope({'a': 'Float'}), 1, weak=grows)}")
        call = f"{name}(xs[1:], {self.make.float(scope, 1)})"
        if grows:
            call = f"xs[0] {self.random.choice('+-*')} {call}"
        self.line(1, f"return {call}")
        self.line(0, "")
        self._globals.append(Helper(name, ("Floats", "Float"), "Float"))

    def _maker(self) -> None:
        """Write a function that returns a function, and one that calls it."""
        name, used = self.make.fresh("make"), self.make.fresh("helper")
        self.line(0, "@relay")
        # The parameter of a lambda gets its type from the annotation.
        is_lambda = self.make.chance(0.5)
        returned = " -> Fn[[Float], Float]" if is_lambda else ""
        self.line(0, f"def {name}(p: Float, q: Int){returned}:")
        scope = Scope({"p": "Float", "q": "Int"}, list(self._globals))
        inner = Scope({**scope.names, "b": "Float"}, scope.functions)
        self.line(1, f"x = {self.make.float(scope, 2)}")
        inner.names["x"] = "Float"
        if not is_lambda:
            self.line(1, "def inner(b: Float):")
            self.line(2, f"return {self.make.float(inner, 2)}")
            self.line(1, "return inner")
        else:
            self.line(1, f"return lambda b: {self.make.float(inner, 2)}")
        self.line(0, "")
        self.line(0, "@relay")
        self.line(0, f"def {used}(p: Float, q: Int):")
        self.line(1, f"f = {name}(p, q)")
        self.line(1, f"return f(f({self.make.float(scope, 1)}))")
        self.line(0, "")
        self._globals.append(Helper(used, ("Float", "Int"), "Float"))

    def _applier(self) -> None:
        """Write a function that takes a function."""
        name = self.make.fresh("apply")
        scope = Scope({"f": "Arrow", "p": "Float"}, list(self._globals))
        self.line(0, "@relay")
        self.line(0, f"def {name}(f: Fn[[Float], Float], p: Float):")
        self.body(scope, Place(1, "Float", budget=2))
        self.line(0, "")
        self._globals.append(Helper(name, ("Arrow", "Float"), "Float"))

    def _tree_map(self) -> None:
        """Write a function from trees to trees."""
        name = self.make.fresh("map")
        scope = Scope({"a": "Float"}, list(self._globals))
        self.line(0, "@relay")
        self.line(0, f"def {name}(t: Tree, a: Float) -> Tree:")
        self.line(1, "if isinstance(t, Leaf):")
        leaf = Scope({"a": "Float", "t.value": "Float"}, scope.functions)
        self.line(2, f"return Leaf({self.make.float(leaf, 2, weak=True)})")
        self.line(1, "if isinstance(t, Node):")
        node = Scope({"a": "Float", "t.weight": "Int"}, scope.functions)
        calls = [f"{name}({t}, {self.make.float(node, 1)})" for t in ("t.right", "t.left")]
        self.line(2, f"return Node({calls[0]}, {calls[1]}, {self.make.int(node, 1)})")
        self.line(1, f"return {self.random.choice(('t', 'Empty()', 'Leaf(a)', 'Leaf(1)'))}")
        self.line(0, "")
        self._globals.append(Helper(name, ("Tree", "Float"), "Tree"))


_HELPERS: Final = (
    *(_Program._plain_helper,) * 2,
    *(_Program._scalar,) * 2,
    _Program._recursive,
    _Program._mutual,
    _Program._tree_walk,
    _Program._tree_map,
    _Program._list_walk,
    _Program._maker,
    _Program._applier,
)
