"""Programs at random: whatever nests in whatever, host code agrees with the evaluator."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import pytest
import torch

from pyrelay.runtime.compile.evaluator import evaluate
from pyrelay.runtime.host import branches, compile_module, functions, loops
from tests.unit.runtime.host.programs import CPU, assert_same, prepared

pytestmark = pytest.mark.host("compiles host code itself")

TENSOR = "Tensor[(2,), float32]"
BOUND = 2


@dataclass(frozen=True)
class Scope:
    """What a place of the program can use; `loops` are those it is in tail position of."""

    integers: tuple[str, ...]
    tensors: tuple[str, ...]
    functions: tuple[str, ...] = ()
    loops: tuple[tuple[str, str], ...] = ()
    depth: int = 0

    def inner(self) -> Scope:
        """Return the scope of a place that is not in tail position."""
        return replace(self, loops=(), depth=self.depth + 1)

    def deeper(self) -> Scope:
        """Return the scope of a nested place in tail position."""
        return replace(self, depth=self.depth + 1)


@dataclass
class Generator:
    """Writes a terminating program; every loop counts to a bound."""

    random: random.Random
    count: int = 0
    lines: list[str] = field(default_factory=list[str])

    def name(self, hint: str) -> str:
        self.count += 1
        return f"%{hint}{self.count}"

    def integer(self, scope: Scope) -> str:
        return self.random.choice([*scope.integers, str(self.random.randrange(4))])

    def tensor(self, scope: Scope) -> str:
        return self.random.choice(scope.tensors)

    def test(self, scope: Scope) -> str:
        a, b = self.integer(scope), self.integer(scope)
        return self.random.choice([f"less({a}, {b})", f"equal(mod({a}, 2), 0)"])

    def program(self) -> str:
        scope = Scope(("%n",), ("%x",))
        body = self.tail(scope)
        recursive = self.tail(Scope(("%n",), ("%x",), ("@walk",), depth=4))
        return f"""
        def @main(%n: int64, %x: {TENSOR}) -> {TENSOR} {{ {body} }}
        def @walk(%n: int64, %x: {TENSOR}) -> {TENSOR} {{
          if (less(%n, 1)) {{ tanh(%x) }} else {{ {recursive} }}
        }}
        """

    def tail(self, scope: Scope) -> str:
        """Return a block of a tensor in tail position."""
        lines: list[str] = []
        for _ in range(self.random.randrange(4)):
            text, scope = self.binding(scope)
            lines.append(text)
        return " ".join([*lines, self.result(scope)])

    def result(self, scope: Scope) -> str:
        choices = ["value", "value", "call"]
        if scope.depth < 5:
            choices += ["if", "if", "loop", "match"]
        if scope.loops:
            choices += ["jump"] * 4
        match self.random.choice(choices):
            case "value":
                return self.tensor(scope)
            case "call":
                return self.call(scope)
            case "if":
                inner = scope.deeper()
                return (
                    f"if ({self.test(scope)}) {{ {self.tail(inner)} }} "
                    f"else {{ {self.tail(inner)} }}"
                )
            case "match":
                return self.match(scope)
            case "jump":
                loop, counter = self.random.choice(scope.loops)
                return f"{loop}(add({counter}, 1), {self.tensor(scope)})"
            case _:
                definition, loop = self.loop(scope)
                return f"{definition} {loop}(0, {self.tensor(scope)})"

    def match(self, scope: Scope) -> str:
        inner, bound = scope.deeper(), self.name("k")
        guarded = replace(inner, integers=(*inner.integers, bound))
        return f"""match ({self.integer(scope)}) {{
          0 => {{ {self.tail(inner)} }},
          {bound} if {self.test(guarded)} => {{ {self.tail(guarded)} }},
          1 => {{ {self.tail(inner)} }},
          _ => {{ {self.tail(inner)} }}
        }}"""

    def loop(self, scope: Scope) -> tuple[str, str]:
        """Return the definition of a loop, and its name; it may go on with loops around it."""
        loop, i, acc = self.name("loop"), self.name("i"), self.name("acc")
        inner = replace(
            scope.deeper(), integers=(*scope.integers, i), tensors=(*scope.tensors, acc)
        )
        going_on = replace(inner, loops=(*scope.loops, (loop, i)))
        text = f"""let rec {loop} = fn ({i}: int64, {acc}: {TENSOR}) -> {TENSOR} {{
          if (less({i}, {BOUND})) {{ {self.tail(going_on)} }} else {{ {self.tail(inner)} }}
        }};"""
        return text, loop

    def call(self, scope: Scope) -> str:
        if scope.functions and self.random.random() < 0.7:
            function = self.random.choice(scope.functions)
            count = "subtract(%n, 1)" if function == "@walk" else self.integer(scope)
            return f"{function}({count}, {self.tensor(scope)})"
        name = self.random.choice(["add", "multiply", "maximum"])
        return f"tanh({name}({self.tensor(scope)}, {self.tensor(scope)}))"

    def binding(self, scope: Scope) -> tuple[str, Scope]:
        kinds = ["integer", "tensor", "tensor", "call"]
        kinds += ["block", "function"] if scope.depth < 4 else []
        kinds += ["start"] if scope.depth < 3 and "@walk" not in scope.functions else []
        name = self.name("v")
        match self.random.choice(kinds):
            case "integer":
                op = self.random.choice(["add", "subtract", "minimum"])
                text = f"let {name} = {op}({self.integer(scope)}, {self.integer(scope)});"
                return text, replace(scope, integers=(*scope.integers, name))
            case "tensor":
                text = f"let {name} = tanh(add({self.tensor(scope)}, 0.5));"
            case "call":
                text = f"let {name} = {self.call(scope)};"
            case "block":
                inside = self.result(scope.inner())
                text = f"let {name} = {{ {inside} }};"
            case "start":
                text = f"let {name} = @walk({self.random.randrange(3)}, {self.tensor(scope)});"
            case _:
                k, t = self.name("k"), self.name("t")
                inner = replace(
                    scope.inner(), integers=(*scope.integers, k), tensors=(*scope.tensors, t)
                )
                body = self.tail(inner)
                text = f"let {name} = fn ({k}: int64, {t}: {TENSOR}) -> {TENSOR} {{ {body} }};"
                return text, replace(scope, functions=(*scope.functions, name))
        return text, replace(scope, tensors=(*scope.tensors, name))


def check(seed: int) -> None:
    module = prepared(Generator(random.Random(seed)).program())
    compiled = compile_module(module, "main", CPU)
    for n in (0, 1, 2):
        x = torch.tensor([0.25, -1.0])
        assert_same(compiled(n, x), evaluate(module, "main", [n, x]))


@pytest.mark.parametrize("seed", [*range(40), 78, 87, 103, 110])
def test_a_random_program_has_one_value(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("seed", [*range(100, 140), 194])
def test_so_it_has_when_everything_is_taken_out_of_line(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(branches, "MOST_NESTED", 1)
    monkeypatch.setattr(branches, "MOST_CHAINED", 1)
    monkeypatch.setattr(loops, "MOST_LOOPS", 1)
    monkeypatch.setattr(functions, "MOST_DEFINITIONS", 0)
    monkeypatch.setattr(functions, "DEPTH", 2)
    check(seed)
