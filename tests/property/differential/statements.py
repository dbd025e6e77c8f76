"""Random statements over `Expressions`: loops, branches, lists that grow, local functions."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, Final

from tests.property.differential.expressions import ANNOTATIONS, Expressions, Helper, Scope
from tests.property.differential.lists import change_list


@dataclass
class Place:
    """Where statements stand."""

    indent: int
    result: str
    """The kind that `return` gives here."""
    in_loop: bool = False
    in_while: bool = False
    budget: int = 6

    def deeper(self, **changes: Any) -> Place:
        values = {**vars(self), "indent": self.indent + 1, "budget": 2, **changes}
        return Place(**values)


class Statements:
    """Writes lines of a program."""

    def __init__(self, random: Random) -> None:
        self.random: Final = random
        self.make: Final = Expressions(random)
        self.lines: Final[list[str]] = []

    def line(self, indent: int, text: str) -> None:
        """Write a line."""
        self.lines.append("    " * indent + text)

    def body(self, scope: Scope, place: Place) -> None:
        """Write statements that end in a return."""
        self._statements(scope, place)
        self.line(place.indent, f"return {self.make.of(place.result, scope, 3)}")

    def _statements(self, scope: Scope, place: Place) -> None:
        before = len(self.lines)
        for _ in range(self.random.randint(1, place.budget)):
            self.random.choice(_STATEMENTS)(self, scope, place)
        if len(self.lines) == before:
            self._assign(scope, place)

    def _new(self, scope: Scope, place: Place) -> None:
        kinds = ["Float", "Float", "Int", "Bool", "Floats", "Ints", "Pair", "Tree", "Small"]
        kinds += ["Rows", "Point"]
        kind = self.random.choice([*kinds, "Vec"] if scope.of("Vec", "Mat") else kinds)
        value = self.make.of(kind, scope, 2)
        name = self.make.fresh("x")
        self.line(place.indent, f"{name} = {value}")
        scope.names[name] = kind

    def _assign(self, scope: Scope, place: Place) -> None:
        names = [n for n in scope.of("Float", "Int", "Floats", "Vec", "Bool") if n[0] == "x"]
        names = [n for n in names if n not in self.make.captured]
        if not names:
            self._new(scope, place)
            return
        name = self.random.choice(names)
        kind = scope.names[name]
        if kind in ("Float", "Int", "Vec") and self.make.chance(0.6):
            value = self.make.of("Float" if kind == "Vec" else kind, scope, 2)
            self.line(place.indent, f"{name} {self.random.choice('+-*')}= {value}")
        else:
            self.line(
                place.indent, f"{name} = {self.make.of(kind, scope, 2, weak=place.indent > 1)}"
            )

    def _swap(self, scope: Scope, place: Place) -> None:
        kind = self.random.choice(("Float", "Int"))
        names = [n for n in scope.of(kind) if n[0] == "x" and n not in self.make.captured]
        if len(names) < 2:
            self._new(scope, place)
            return
        one, other = self.random.sample(names, 2)
        self.line(place.indent, f"{one}, {other} = {other}, {self.make.of(kind, scope, 1)}")

    def _unpack(self, scope: Scope, place: Place) -> None:
        one, other = self.make.fresh("x"), self.make.fresh("x")
        self.line(place.indent, f"{one}, {other} = {self.make.of('Pair', scope, 2)}")
        scope.names.update({one: "Float", other: "Int"})

    def _branch(self, scope: Scope, place: Place) -> None:
        self.line(place.indent, f"if {self.make.bool(scope, 2)}:")
        bound = self.make.fresh("x") if self.make.chance(0.4) else ""
        kind = self.random.choice(("Float", "Float", "Int", "Floats"))
        for word in ("", "elif", "else"):
            if word == "elif" and self.make.chance(0.7):
                continue
            if word == "else" and not bound and self.make.chance(0.5):
                continue
            if word:
                condition = f" {self.make.bool(scope, 1)}" if word == "elif" else ""
                self.line(place.indent, f"{word}{condition}:")
            inner = scope.inner()
            self._statements(inner, place.deeper())
            if bound:
                value = self.make.of(kind, inner, 2, weak=bool(word))
                self.line(place.indent + 1, f"{bound} = {value}")
            elif self.make.chance(0.25):
                self._leave(inner, place.deeper())
        if bound:
            scope.names[bound] = kind

    def _leave(self, scope: Scope, place: Place) -> None:
        if place.in_loop and self.make.chance(0.6):
            self.line(
                place.indent,
                "break" if place.in_while else self.random.choice(("break", "continue")),
            )
            return
        self.line(place.indent, f"return {self.make.of(place.result, scope, 2)}")

    def _accumulator(self, scope: Scope, place: Place) -> None:
        """Write a name that a loop changes, often from an integer literal."""
        name, kind = self.make.fresh("x"), self.random.choice(("Float", "Float", "Int"))
        first = (
            self.make.of(kind, scope, 1, weak=True)
            if self.make.chance(0.4)
            else self.random.choice("01")
        )
        self.line(place.indent, f"{name} = {first}")
        scope.names[name] = kind
        header, inner = self._loop_header(scope, place)
        self.line(place.indent, header)
        # What is added is no integer literal: the name itself might still be one.
        added = inner.inner()
        del added.names[name]
        deeper = place.deeper(in_loop=True, in_while=False)
        if self.make.chance(0.4):
            self._statements(inner, deeper)
        if self.make.chance(0.3):
            header, inner = self._loop_header(inner, deeper)
            added.names |= {n: k for n, k in inner.names.items() if n != name}
            self.line(deeper.indent, header)
            deeper = deeper.deeper()
        self.line(
            deeper.indent, f"{name} {self.random.choice('++-*')}= {self.make.of(kind, added, 2)}"
        )
        if self.make.chance(0.2):
            self.line(deeper.indent, f"if {self.make.bool(inner, 1)}:")
            self._leave(inner, deeper.deeper())

    def _loop(self, scope: Scope, place: Place) -> None:
        header, inner = self._loop_header(scope, place)
        self.line(place.indent, header)
        self._statements(inner, place.deeper(in_loop=True, in_while=False))

    def _search(self, scope: Scope, place: Place) -> None:
        """Write a loop that binds a name where it breaks, and in its `else`."""
        name, kind = self.make.fresh("x"), self.random.choice(("Float", "Float", "Int"))
        header, inner = self._loop_header(scope, place)
        self.line(place.indent, header)
        deeper = place.deeper(in_loop=True, in_while=False)
        if self.make.chance(0.4):  # without a `break`, which would leave the name unbound
            self._statements(inner, place.deeper(in_loop=False))
        self.line(deeper.indent, f"if {self.make.bool(inner, 1)}:")
        self.line(deeper.indent + 1, f"{name} = {self.make.of(kind, inner, 2)}")
        self.line(deeper.indent + 1, "break")
        self.line(place.indent, "else:")
        after = scope.inner()
        if self.make.chance(0.3):
            self._statements(after, place.deeper())
        if self.make.chance(0.3):
            self._leave(after, place.deeper())
        else:
            value = self.make.of(kind, after, 2, weak=True)
            self.line(deeper.indent, f"{name} = {value}")
        scope.names[name] = kind

    def _loop_header(self, scope: Scope, place: Place) -> tuple[str, Scope]:
        inner = scope.inner()
        name, other = self.make.fresh("e"), self.make.fresh("i")
        floats = self.make.floats(scope, 1)
        vectors = scope.of("Vec")
        values = self.make.vector(scope, 1) if vectors and self.make.chance(0.4) else floats
        if scope.of("Rows") and self.make.chance(0.3):
            inner.names[name] = "Floats"
            return f"for {name} in {self.random.choice(scope.of('Rows'))}:", inner
        if scope.of("Mat") and self.make.chance(0.4):
            inner.names[name] = "Vec"
            return f"for {name} in {self.random.choice(scope.of('Mat'))}:", inner
        match self.random.randrange(9):
            case 0 | 1:
                inner.names[other] = "Small"
                return f"for {other} in range({self.make.small(scope, 1)}):", inner
            case 2:
                inner.names[other] = "Small"
                low, step = self.random.choice(("0", "1", "2")), self.random.choice(("1", "2", "3"))
                return f"for {other} in range({low}, {self.make.small(scope, 0)}, {step}):", inner
            case 3:
                inner.names.update({name: "Float", other: "Small"})
                return f"for {other}, {name} in enumerate({values}):", inner
            case 4:
                inner.names.update({name: "Float", other: "Int"})
                return f"for {name}, {other} in zip({floats}, {self.make.ints(scope, 1)}):", inner
            case 5:
                inner.names[other] = "Int"
                return f"for {other} in {self.make.ints(scope, 1)}:", inner
            case 7:
                inner.names[other] = "Small"
                low, step = self.random.choice(("0", "-1")), self.random.choice(("-1", "-2"))
                return f"for {other} in range({self.make.small(scope, 0)}, {low}, {step}):", inner
            case 6:
                inner.names[other] = "Small"
                return f"for {other} in reversed(range({self.make.small(scope, 0)})):", inner
            case _:
                inner.names[name] = "Float"
                return f"for {name} in {values}:", inner

    def _while(self, scope: Scope, place: Place) -> None:
        name = self.make.fresh("c")
        self.line(place.indent, f"{name} = {self.make.small(scope, 0)}")
        condition = f"{name} > 0"
        if self.make.chance(0.3):
            condition = f"{name} > 0 and {self.make.bool(scope, 1)}"
        self.line(place.indent, f"while {condition}:")
        inner = scope.inner()
        inner.names[name] = "Small"
        self.line(place.indent + 1, f"{name} = {name} - 1")
        self._statements(inner, place.deeper(in_loop=True, in_while=True))

    def _append(self, scope: Scope, place: Place) -> None:
        """Write a list that grows in a loop."""
        name = self.make.fresh("g")
        kind = self.random.choice(("Float", "Float", "Int"))
        first = [self.make.of(kind, scope, 0, weak=True) for _ in range(self.random.randrange(3))]
        self.line(place.indent, f"{name} = [{', '.join(first)}]")
        header, inner = self._loop_header(scope, place)
        self.line(place.indent, header)
        deeper = place.indent + 1
        if self.make.chance(0.3):
            self.line(deeper, f"if {self.make.bool(inner, 1)}:")
            deeper += 1
        self.line(deeper, f"{name}.append({self.make.of(kind, inner, 2)})")
        scope.names[name] = "Floats" if kind == "Float" else "Ints"

    def _closure(self, scope: Scope, place: Place) -> None:
        """Write a local function over the names around it."""
        name, result = self.make.fresh("local"), self.random.choice(("Float", "Float", "Int"))
        params = tuple(
            self.random.choice(("Float", "Int")) for _ in range(self.random.randint(1, 2))
        )
        names = {self.make.fresh("a"): p for p in params}
        outer, scope = scope, self._capturable(scope, place)
        written = (
            n if self.make.chance(0.4) else f"{n}: {ANNOTATIONS[k]}" for n, k in names.items()
        )
        if self.make.chance(0.25):
            inner = scope.inner()
            inner.names.update(names)
            arrow = f"lambda {', '.join(names)}: {self.make.of(result, inner, 2)}"
            self.line(place.indent, f"{name} = {arrow}")
        else:
            self.line(place.indent, f"def {name}({', '.join(written)}):")
            inner = scope.inner()
            inner.names.update(names)
            self._local_body(inner, Place(place.indent + 1, result, budget=2))
        self._use(Helper(name, params, result), outer, place)

    def _use(self, helper: Helper, scope: Scope, place: Place) -> None:
        """Write a call: a parameter without an annotation gets its type from one."""
        args = ", ".join(self.make.of(p, scope, 1) for p in helper.params)
        used = self.make.fresh("x")
        self.line(place.indent, f"{used} = {helper.name}({args})")
        scope.names[used] = helper.result
        scope.functions.append(helper)

    def _capturable(self, scope: Scope, place: Place) -> Scope:
        """Return the names that a local function may mention, which stay as they are."""
        found = scope.inner()
        if place.in_loop:
            found.names = {
                n: k for n, k in found.names.items() if n[0] in "pae" or n in self.make.captured
            }
        self.make.captured.update(found.names)
        return found

    def _local_body(self, scope: Scope, place: Place) -> None:
        bound = self.make.fresh("x")
        self.line(place.indent, f"{bound} = {self.make.of(place.result, scope, 2)}")
        if self.make.chance(0.4):
            self.line(place.indent, f"if {self.make.bool(scope, 1)}:")
            self.line(place.indent + 1, f"return {self.make.of(place.result, scope, 1, weak=True)}")
        inner = scope.inner()
        inner.names[bound] = place.result
        self.line(place.indent, f"return {self.make.of(place.result, inner, 2)}")

    def recursion(
        self, indent: int, name: str, result: str, scope: Scope, count: str, step: int
    ) -> None:
        # What nothing but literals and tail calls return is an integer.
        grows = self.make.chance(0.6)
        base = self.make.of(result, scope, 1, weak=grows)
        self.line(indent, f"if {count} <= 0:")
        self.line(indent + 1, f"return {base}")
        if self.make.chance(0.3):
            self.line(indent, f"if {self.make.bool(scope, 1)}:")
            call = f"{name}({count} - {step}, {self.make.of(result, scope, 1, weak=True)})"
            self.line(indent + 1, f"return {call}")
        call = f"{name}({count} - {step}, {self.make.of(result, scope, 1)})"
        if grows:
            other = self.make.of(result, scope, 1)
            sides = [call, other]
            self.random.shuffle(sides)
            call = f"{sides[0]} {self.random.choice('+-*')} {sides[1]}"
        self.line(indent, f"return {call}")

    def _local_recursion(self, scope: Scope, place: Place) -> None:
        name, result = self.make.fresh("local"), self.random.choice(("Float", "Float", "Int"))
        count, carried = self.make.fresh("a"), self.make.fresh("a")
        inner = self._capturable(scope, place)
        inner.names.update({count: "Small", carried: result})
        note = f": {ANNOTATIONS[result]}" if self.make.chance(0.5) else ""
        self.line(place.indent, f"def {name}({count}: Int, {carried}{note}):")
        self.recursion(place.indent + 1, name, result, inner, count, 1)
        self._use(Helper(name, ("Small", result), result), scope, place)

    def _cell(self, scope: Scope, place: Place) -> None:
        name = self.make.fresh("r")
        self.line(place.indent, f"{name} = relay.ref({self.make.float(scope, 1)})")
        scope.names[name] = "Cell"
        self.line(place.indent, f"{name}.value = {name}.value + {self.make.float(scope, 2)}")

    def _best(self, scope: Scope, place: Place) -> None:
        """Write a search that begins with None."""
        name, element = self.make.fresh("m"), self.make.fresh("e")
        self.line(place.indent, f"{name} = None")
        self.line(place.indent, f"for {element} in {self.make.floats(scope, 1)}:")
        inner = scope.inner()
        inner.names[element] = "Float"
        self.line(place.indent + 1, f"if {name} is None or {element} > {name}:")
        self.line(place.indent + 2, f"{name} = {self.make.float(inner, 1)}")
        scope.names[name] = "Maybe"

    def _print(self, scope: Scope, place: Place) -> None:
        values = f"{{{self.make.int(scope, 1)}}} {{{self.make.bool(scope, 1)}}}"
        self.line(place.indent, f'print(f"at {len(self.lines)}: {values}")')

    def _while_true(self, scope: Scope, place: Place) -> None:
        """Write a loop that ends by itself."""
        name = self.make.fresh("c")
        self.line(place.indent, f"{name} = {self.make.small(scope, 0)}")
        self.line(place.indent, "while True:")
        inner = scope.inner()
        inner.names[name] = "Small"
        self.line(place.indent + 1, f"if {name} <= 0:")
        if self.make.chance(0.7) or not place.in_loop:
            self.line(place.indent + 2, "break")
        else:
            self.line(place.indent + 2, f"return {self.make.of(place.result, scope, 1)}")
            self.line(place.indent + 1, f"if {self.make.bool(inner, 1)}:")
            self.line(place.indent + 2, "break")
        self.line(place.indent + 1, f"{name} -= 1")
        self._statements(inner, place.deeper(in_loop=True, in_while=True))

    def _write(self, scope: Scope, place: Place) -> None:
        """Write a vector, elements of which are changed."""
        if not scope.of("Vec", "Mat"):
            self._generator(scope, place)
            return
        name = self.make.fresh("x")
        self.line(place.indent, f"{name} = {self.make.vector(scope, 2)} * 1.0")
        scope.names[name] = "Vec"
        value = self.make.float(scope, 2)
        self.line(place.indent, f"{name}[0] {self.random.choice(('', '+', '*'))}= {value}")
        if self.make.chance(0.5):
            index = self.make.fresh("i")
            self.line(place.indent, f"for {index} in range(len({name})):")
            inner = scope.inner()
            inner.names[index] = "Small"
            value = self.make.float(inner, 2)
            self.line(place.indent + 1, f"{name}[{index}] {self.random.choice(('', '-'))}= {value}")

    def _generator(self, scope: Scope, place: Place) -> None:
        """Write a generator of pseudorandom integers."""
        name, index = self.make.fresh("x"), self.make.fresh("i")
        self.line(place.indent, f"{name} = {self.make.int(scope, 1)}")
        self.line(place.indent, f"for {index} in range({self.make.small(scope, 0)}):")
        factor = self.random.choice(("1103515245", "6364136223846793005", "75"))
        limit = self.random.choice(("2147483648", "65537", "1000"))
        modulo = f" % {limit}" if self.make.chance(0.7) else ""
        self.line(place.indent + 1, f"{name} = ({name} * {factor} + 12345){modulo}")
        scope.names[name] = "Int"

    def _cases(self, scope: Scope, place: Place) -> None:
        """Write a match of an integer, or of a pair."""
        name, kind = self.make.fresh("x"), self.random.choice(("Float", "Float", "Int"))
        bound = self.make.fresh("i")
        inner = scope.inner()
        inner.names[bound] = "Int"
        if self.make.chance(0.5):
            self.line(place.indent, f"match {self.make.int(scope, 1)}:")
            patterns = ["0 | 1", f"{bound} if {bound} > 2", "_"]
        else:
            self.line(
                place.indent, f"match ({self.make.int(scope, 1)}, {self.make.bool(scope, 0)}):"
            )
            patterns = ["(0, True)", f"({bound}, False)", f"({bound}, _)"]
        for place_of, pattern in enumerate(patterns):
            used = inner if bound in pattern else scope
            self.line(place.indent + 1, f"case {pattern}:")
            self.line(
                place.indent + 2, f"{name} = {self.make.of(kind, used, 2, weak=place_of > 0)}"
            )
        scope.names[name] = kind

    def _match(self, scope: Scope, place: Place) -> None:
        trees = scope.of("Tree")
        if not trees:
            self._new(scope, place)
            return
        name, kind = self.make.fresh("x"), self.random.choice(("Float", "Float", "Int"))
        self.line(place.indent, f"match {self.random.choice(trees)}:")
        part = self.make.fresh("e")
        for pattern, names in (
            (f"Leaf({part})", {part: "Float"}),
            (f"Node(_, _, {part})", {part: "Int"}),
            ("_", {}),
        ):
            inner = scope.inner()
            inner.names.update(names)
            self.line(place.indent + 1, f"case {pattern}:")
            value = self.make.of(kind, inner, 2, weak=pattern == "_")
            self.line(place.indent + 2, f"{name} = {value}")
        scope.names[name] = kind


_STATEMENTS: Final = (
    *(Statements._new,) * 3,
    *(Statements._assign,) * 3,
    Statements._swap,
    Statements._unpack,
    *(Statements._branch,) * 2,
    *(Statements._accumulator,) * 3,
    Statements._loop,
    Statements._search,
    Statements._while,
    *(Statements._append,) * 2,
    *(change_list,) * 2,
    *(Statements._closure,) * 2,
    Statements._local_recursion,
    Statements._cell,
    Statements._best,
    Statements._match,
    Statements._cases,
    Statements._print,
    Statements._while_true,
    Statements._write,
    Statements._generator,
)
