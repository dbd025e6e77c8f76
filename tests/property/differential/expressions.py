"""Random expressions of each kind over the names in scope."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final

from tests.property.differential.lists import asked_of_all, chosen_float, sorted_floats

ANNOTATIONS: Final = {
    "Float": "Float",
    "Int": "Int",
    "Small": "Int",
    "Bool": "Bool",
    "Vec": "Tensor[Float, (N,)]",
    "Floats": "List[Float]",
    "Ints": "List[Int]",
    "Maybe": "Float | None",
    "Tree": "Tree",
    "Pair": "tuple[Float, Int]",
    "Mat": "Tensor[Float, (N, N)]",
    "Rows": "List[List[Float]]",
    "Point": "Point",
    "Arrow": "Fn[[Float], Float]",
}
"""The kinds of values, and how a program annotates them. A `Small` int stays below 10."""

FLOATS: Final = ("0.5", "0.25", "1.5", "2.0", "1.0", "0.0", "-0.5", "3.0", "0.75", "-1.0", "1e-2")
INTS: Final = ("0", "1", "2", "3", "5", "7", "-1", "-2", "10", "13")
LIMITS: Final = (
    "2147483647",
    "2147483648",
    "-2147483648",
    "4294967296",
    "4611686018427387904",
    "9223372036854775807",
    "-9223372036854775807",
    "1000003",
    "6364136223846793005",
    "3037000500",
)
UNARY: Final = ("tanh", "sin", "cos", "sigmoid", "relu", "abs", "square")

_TENSORS: Final = {"Vec": ("Vec", "Mat"), "Mat": ("Mat",)}


@dataclass
class Helper:
    """A function that expressions may call."""

    name: str
    params: tuple[str, ...]
    result: str
    differentiable: bool = False
    """A global function of floats alone, which `relay.grad` takes."""


@dataclass
class Scope:
    """The names that an expression may mention, by kind, and the functions."""

    names: dict[str, str]
    functions: list[Helper] = field(default_factory=list[Helper])

    def of(self, *kinds: str) -> list[str]:
        """Return the names of some kinds."""
        return [n for n, k in self.names.items() if k in kinds]

    def inner(self) -> Scope:
        """Return a scope that begins with these names."""
        return Scope(dict(self.names), list(self.functions))


class Expressions:
    """Draws expressions; `weak` says that an integer literal may stand for a float."""

    def __init__(self, random: Random) -> None:
        self.random: Final = random
        self.captured: Final[set[str]] = set()
        """Names that local functions mention, which are not assigned again."""
        self._count = 0

    def fresh(self, stem: str) -> str:
        """Return a name that the program does not use yet."""
        self._count += 1
        return f"{stem}{self._count}"

    def chance(self, share: float) -> bool:
        """Return True in a share of the cases."""
        return self.random.random() < share

    def of(self, kind: str, scope: Scope, depth: int, *, weak: bool = False) -> str:
        """Return an expression of a kind."""
        if kind == "Float":
            return self.float(scope, depth, weak=weak)
        make: dict[str, Callable[[Scope, int], str]] = {
            "Int": self.int,
            "Small": self.small,
            "Bool": self.bool,
            "Vec": self.vector,
            "Floats": self.floats,
            "Ints": self.ints,
            "Rows": self.rows,
            "Maybe": self.maybe,
            "Tree": self.tree,
            "Arrow": self.arrow,
        }
        if kind in make:
            return make[kind](scope, depth)
        names = scope.of(kind)
        if kind == "Mat" or (names and self.chance(0.4)):
            return self.random.choice(names)
        record = "Point" if kind == "Point" else ""
        return f"{record}({self.float(scope, depth - 1)}, {self.int(scope, depth - 1)})"

    # ---- floats

    def float(self, scope: Scope, depth: int, *, weak: bool = False) -> str:
        """Return a float."""
        if depth <= 0 or self.chance(0.15):
            return self.float_leaf(scope, weak=weak)
        return self.random.choice(self._FLOATS)(self, scope, depth - 1, weak)

    def float_leaf(self, scope: Scope, *, weak: bool = False) -> str:
        """Return the name of a float, or a literal."""
        names = scope.of("Float")
        if weak and self.chance(0.4):
            return self.random.choice(("0", "1", "2", "3", "-1"))
        if names and self.chance(0.75):
            return self.random.choice(names)
        return self.random.choice(FLOATS)

    def _arithmetic(self, scope: Scope, depth: int, weak: bool) -> str:
        op = self.random.choice("+-*")
        sides = [self.float(scope, depth), self._number(scope, depth)]
        self.random.shuffle(sides)
        return f"({sides[0]} {op} {sides[1]})"

    def _number(self, scope: Scope, depth: int) -> str:
        drawn = self.random.random()
        if drawn < 0.2:
            return self.random.choice(INTS)
        if drawn < 0.4:
            return self.int(scope, depth)
        return self.float(scope, depth)

    def _quotient(self, scope: Scope, depth: int, weak: bool) -> str:
        drawn = self.random.random()
        if drawn < 0.3:
            return f"({self.int(scope, depth)} / {self.random.choice(('2', '3', '7', '-4'))})"
        if drawn < 0.5:
            return f"({self.float(scope, depth)} / {self.random.choice(('2', '4', '0.5', '3'))})"
        if drawn < 0.6:
            op = self.random.choice(("//", "%"))
            return f"({self.float(scope, depth)} {op} {self.random.choice(('2', '0.75', '3'))})"
        return f"({self._number(scope, depth)} / (relay.abs({self.float(scope, depth)}) + 1))"

    def _unary(self, scope: Scope, depth: int, weak: bool) -> str:
        name = self.random.choice(UNARY)
        if self.chance(0.2):
            return f"relay.exp(relay.tanh({self.float(scope, depth)}))"
        if self.chance(0.2):
            return self.random.choice(
                (f"(-{self.float(scope, depth)})", f"abs({self.float(scope, depth)})")
            )
        return f"relay.{name}({self.float(scope, depth)})"

    def _choice(self, scope: Scope, depth: int, weak: bool) -> str:
        ends = [self.float(scope, depth, weak=True), self.float(scope, depth)]
        self.random.shuffle(ends)
        return f"({ends[0]} if {self.bool(scope, depth)} else {ends[1]})"

    def _largest(self, scope: Scope, depth: int, weak: bool) -> str:
        name = self.random.choice(("max", "min"))
        sides = [self.float(scope, depth), self._number(scope, depth)]
        self.random.shuffle(sides)
        return f"{name}({sides[0]}, {sides[1]})"

    def _call(self, scope: Scope, depth: int, weak: bool) -> str:
        return self.call(scope, depth, "Float") or self.float(scope, depth)

    def call(self, scope: Scope, depth: int, kind: str) -> str | None:
        """Return a call of a function with a result of a kind, if there is one."""
        absent = {k for k, made in _TENSORS.items() if not scope.of(*made)}
        fitting = [f for f in scope.functions if f.result == kind and not absent & set(f.params)]
        if not fitting:
            return None
        function = self.random.choice(fitting)
        args = [self.of(p, scope, min(depth, 1), weak=True) for p in function.params]
        name = function.name
        if function.differentiable and self.chance(0.25):
            name = f"relay.grad({name})"
            made = f"{name}({', '.join(args)})"
            return made if len(args) == 1 else f"{made}[{self.random.randrange(len(args))}]"
        return f"{name}({', '.join(args)})"

    def _of_vector(self, scope: Scope, depth: int, weak: bool) -> str:
        if not scope.of("Vec", "Mat"):
            return self.float(scope, depth)
        vector = self.vector(scope, depth)
        if self.chance(0.2):
            return self.random.choice(
                (f"{vector}[:2].sum()", f"{vector}[1:].sum()", f"{vector}[{self.small(scope, 0)}]")
            )
        return self.random.choice(
            (f"{vector}.sum()", f"relay.sum({vector})", f"relay.mean({vector})", f"{vector}[0]",
             f"{vector}[-1]")
        )  # fmt: skip

    def _of_list(self, scope: Scope, depth: int, weak: bool) -> str:
        if not scope.of("Floats"):
            return self.float(scope, depth)
        xs = self.floats(scope, depth)
        match self.random.randrange(6):
            case 5:
                return chosen_float(self, scope)
            case 0:
                name, index = self.random.choice(scope.of("Floats")), self.random.choice("01")
                return f"{name}[{index}]" if self.chance(0.6) else f"{name}[-1]"
            case 1:
                return f"sum({xs})"
            case 2:
                name = self.fresh("e")
                inner = scope.inner()
                inner.names[name] = "Float"
                return f"sum([{self.float(inner, depth)} for {name} in {xs}])"
            case 3:
                name = self.random.choice(scope.of("Floats"))
                index = self.small(scope, 0)
                return f"({name}[{index}] if len({name}) > {index} else {self.float(scope, depth)})"
            case _:
                name = self.random.choice(scope.of("Floats"))
                return f"(max({name}) if len({name}) > 0 else {self.float_leaf(scope, weak=True)})"

    def _of_data(self, scope: Scope, depth: int, weak: bool) -> str:
        found: list[str] = []
        for name in scope.of("Maybe"):
            found.append(f"({name} if {name} is not None else {self.float_leaf(scope, weak=True)})")
            found.append(f"({self.float_leaf(scope, weak=True)} if {name} is None else {name} * 2)")
        found += [f"{name}[0]" for name in scope.of("Pair")]
        found += [f"{name}.value" for name in scope.of("Cell")]
        found += [f"{name}.place" for name in scope.of("Point")]
        found += [f"{name}({self.float(scope, depth)})" for name in scope.of("Arrow")]
        found += [f"sum([sum(r) for r in {name}])" for name in scope.of("Rows")]
        found += [f"{name}[0][-1]" for name in scope.of("Rows")]
        found += [f"relay.sum({name})" for name in scope.of("Mat")]
        found += [
            f"({t}.value if isinstance({t}, Leaf) else {self.float_leaf(scope, weak=True)})"
            for t in scope.of("Tree")
        ]
        return self.random.choice(found) if found else self.float(scope, depth)

    def lambda_scope(self, scope: Scope) -> tuple[str, Scope]:
        """Return the name of a lambda's parameter, and the scope of its body."""
        name = self.fresh("a")
        inner = scope.inner()
        # A name that is assigned again later cannot be captured.
        inner.names = {n: k for n, k in inner.names.items() if n[0] in "pa" or n in self.captured}
        inner.names[name] = "Float"
        return name, inner

    def _immediate(self, scope: Scope, depth: int, weak: bool) -> str:
        name, inner = self.lambda_scope(scope)
        body = self.float(inner, depth)
        return f"(lambda {name}: {body})({self.float(scope, depth)})"

    _FLOATS = (
        _arithmetic, _arithmetic, _arithmetic, _arithmetic, _quotient, _unary, _unary, _choice,
        _largest, _call, _call, _of_vector, _of_list, _of_list, _of_data, _immediate,
    )  # fmt: skip

    # ---- ints and bools

    def int(self, scope: Scope, depth: int) -> str:
        """Return an integer."""
        names = scope.of("Int", "Small")
        if depth <= 0 or self.chance(0.2):
            if names and self.chance(0.65):
                return self.random.choice(names)
            return self.random.choice(LIMITS if self.chance(0.08) else INTS)
        match self.random.randrange(10):
            case 0 | 1 | 2 | 3:
                op = self.random.choice("+-*")
                return f"({self.int(scope, depth - 1)} {op} {self.int(scope, depth - 1)})"
            case 4:
                op = self.random.choice(("//", "%"))
                divisor = self.random.choice(("2", "3", "-3", "7", "10"))
                names = [n for n in names if n[0] == "p"]
                divisor = self.random.choice(names) if names and self.chance(0.2) else divisor
                return f"({self.int(scope, depth - 1)} {op} {divisor})"
            case 5:
                one, other = self.int(scope, depth - 1), self.int(scope, depth - 1)
                return f"({one} if {self.bool(scope, depth - 1)} else {other})"
            case 6:
                name = self.random.choice(("max", "min"))
                return f"{name}({self.int(scope, depth - 1)}, {self.int(scope, depth - 1)})"
            case 7:
                lists = scope.of("Floats", "Ints", "Vec")
                return f"len({self.random.choice(lists)})" if lists else self.int(scope, depth - 1)
            case 8:
                return self._int_of_data(scope, depth - 1)
            case _:
                return self.call(scope, depth - 1, "Int") or f"abs({self.int(scope, depth - 1)})"

    def _int_of_data(self, scope: Scope, depth: int) -> str:
        found = [f"{name}[1]" for name in scope.of("Pair")]
        found += [f"{name}.count" for name in scope.of("Point")]
        found += [
            f"({t}.weight if isinstance({t}, Node) else {self.int(scope, 0)})"
            for t in scope.of("Tree")
        ]
        found += [f"sum({name})" for name in scope.of("Ints")]
        found += [f"{name}[{i}]" for name in scope.of("Ints") for i in (0, -1)]
        found += [f"({self.int(scope, depth)} ** {e})" for e in (2, 3)]
        found += [f"int({self.float(scope, depth)})"]
        return self.random.choice(found)

    def small(self, scope: Scope, depth: int) -> str:
        """Return an integer from 0 to 5."""
        names = scope.of("Small")
        if names and self.chance(0.6):
            return self.random.choice(names)
        if depth > 0 and self.chance(0.3):
            return f"({self.int(scope, depth - 1)} % 4)"
        return self.random.choice(("0", "1", "2", "3", "4"))

    def bool(self, scope: Scope, depth: int) -> str:
        """Return a truth value."""
        names = scope.of("Bool")
        if names and self.chance(0.3):
            return self.random.choice(names)
        if depth > 0 and self.chance(0.25):
            one, other = self.bool(scope, depth - 1), self.bool(scope, depth - 1)
            return self.random.choice(
                (f"({one} and {other})", f"({one} or {other})", f"(not {one})")
            )
        if depth > 0 and scope.of("Floats") and self.chance(0.1):
            return asked_of_all(self, scope)
        op = self.random.choice(("<", ">", "<=", ">=", "==", "!="))
        floats, integers = scope.of("Float"), scope.of("Int", "Small")
        if floats and self.chance(0.5):
            op = op[0] if op[0] in "<>" else "<"
            return f"({self.random.choice(floats)} {op} {self._number(scope, depth - 1)})"
        # Literals alone are compared by the compiler, which then leaves out what is not reached.
        known = self.random.choice(integers) if integers else self.int(scope, depth - 1)
        if self.chance(0.1):
            return f"({self.int(scope, 0)} < {known} <= {self.int(scope, depth - 1)})"
        return f"({known} {op} {self.int(scope, depth - 1)})"

    # ---- vectors, lists, data

    def vector(self, scope: Scope, depth: int) -> str:
        """Return a vector of the length of the vectors in scope."""
        names = scope.of("Vec")
        matrices = scope.of("Mat")
        if not names or (matrices and self.chance(0.3)):
            matrix = self.random.choice(matrices)
            other = self.vector(scope, depth - 1) if names else f"{matrix}[0]"
            return self.random.choice(
                (
                    f"{matrix}[0]",
                    f"({matrix} @ {other})",
                    f"relay.sum({matrix}, dim=0)",
                    f"{matrix}[-1]",
                )
            )
        name = self.random.choice(names)
        if depth <= 0 or self.chance(0.3):
            return name
        match self.random.randrange(5):
            case 0:
                return f"relay.{self.random.choice(UNARY)}({self.vector(scope, depth - 1)})"
            case 1:
                return f"({self.vector(scope, depth - 1)} * {self.vector(scope, depth - 1)})"
            case 2:
                other = f"{name} * {self.random.choice(INTS)}"
                return f"relay.where({name} > {self.float(scope, 0)}, {name}, {other})"
            case _:
                op = self.random.choice("+-*")
                sides = [self.vector(scope, depth - 1), self._number(scope, depth - 1)]
                self.random.shuffle(sides)
                return f"({sides[0]} {op} {sides[1]})"

    def floats(self, scope: Scope, depth: int) -> str:
        """Return a list of floats."""
        names = scope.of("Floats")
        if names and (depth <= 0 or self.chance(0.5)):
            name = self.random.choice(names)
            return (
                name
                if self.chance(0.7)
                else f"{name}[{self.random.choice(('1:', ':-1', ':2', '-2:'))}]"
            )
        match self.random.randrange(5):
            case 4 if names:
                return sorted_floats(self, scope)
            case 0 if names:
                return f"({self.floats(scope, 0)} + {self.floats(scope, depth - 1)})"
            case 1 if names:
                name = self.fresh("e")
                inner = scope.inner()
                inner.names[name] = "Float"
                guard = f" if {self.bool(inner, 0)}" if self.chance(0.4) else ""
                return (
                    f"[{self.float(inner, depth - 1)} for {name} in {self.floats(scope, 0)}{guard}]"
                )
            case 2:
                name = self.fresh("i")
                inner = scope.inner()
                inner.names[name] = "Small"
                element = self.float(inner, max(depth - 1, 1))
                return f"[{element} for {name} in range({self.small(scope, 0)})]"
            case _:
                items = [self.float(scope, depth - 1)]
                items += [
                    self.float(scope, depth - 1, weak=True) for _ in range(self.random.randrange(3))
                ]
                items += [f"*{self.random.choice(names)}"] if names and self.chance(0.3) else []
                self.random.shuffle(items)
                return f"[{', '.join(items)}]"

    def rows(self, scope: Scope, depth: int) -> str:
        """Return a list of lists of floats."""
        names = scope.of("Rows")
        if names and self.chance(0.6):
            return self.random.choice(names)
        if self.chance(0.4):
            name = self.fresh("e")
            inner = scope.inner()
            inner.names[name] = "Float"
            return f"[{self.floats(inner, 1)} for {name} in {self.floats(scope, 0)}]"
        items = [self.floats(scope, depth - 1) for _ in range(self.random.randint(1, 2))]
        return f"[{', '.join(items)}]"

    def arrow(self, scope: Scope, depth: int) -> str:
        """Return a function from float to float."""
        names = scope.of("Arrow") + [
            f.name for f in scope.functions if f.params == ("Float",) and f.result == "Float"
        ]
        if names and self.chance(0.5):
            return self.random.choice(names)
        name, inner = self.lambda_scope(scope)
        return f"(lambda {name}: {self.float(inner, min(depth, 2))})"

    def ints(self, scope: Scope, depth: int) -> str:
        """Return a list of integers."""
        names = scope.of("Ints")
        if names and self.chance(0.6):
            return self.random.choice(names)
        if self.chance(0.3):
            name = self.fresh("i")
            inner = scope.inner()
            inner.names[name] = "Small"
            return f"[{self.int(inner, 1)} for {name} in range({self.small(scope, 0)})]"
        return (
            f"[{', '.join(self.int(scope, depth - 1) for _ in range(self.random.randint(1, 3)))}]"
        )

    def maybe(self, scope: Scope, depth: int) -> str:
        """Return an optional float."""
        names = scope.of("Maybe")
        if names and self.chance(0.4):
            return self.random.choice(names)
        if self.chance(0.3):
            return f"({self.float(scope, depth - 1)} if {self.bool(scope, depth - 1)} else None)"
        return "None" if self.chance(0.3) else self.float(scope, depth - 1)

    def tree(self, scope: Scope, depth: int) -> str:
        """Return a tree."""
        names = scope.of("Tree")
        if names and self.chance(0.5):
            return self.random.choice(names)
        if depth > 0 and self.chance(0.5):
            left, right = self.tree(scope, depth - 1), self.tree(scope, depth - 1)
            return f"Node({left}, {right}, {self.int(scope, 0)})"
        return f"Leaf({self.float(scope, depth - 1, weak=True)})" if self.chance(0.8) else "Empty()"
