"""Layers of the rows of a loop are computed before it, where that changes nothing."""

from __future__ import annotations

from typing import Any

import torch

from pyrelay import Dim, Float, Int, Tensor, relay
from pyrelay.ir.expr import Call, Expr, Flavour, LetBlock
from pyrelay.ir.module import Module
from pyrelay.ir.op import Op
from pyrelay.ir.traverse import post_order
from pyrelay.ir.verify import Stage, verify
from pyrelay.passes.closures import first_order
from pyrelay.passes.rewrites.hoist import hoist
from pyrelay.passes.simplify.simplify import simplify
from pyrelay.runtime.compile.evaluator import evaluate
from tests.unit.passes.programs import normal

T, D = Dim("T"), Dim("D")


def program(
    step: str, *, start: str = "0", next_: str = "%i + 1", limit: str = "dim_size(%xs, dim=0)"
) -> Module:
    """Return a program that sums what a step of a loop makes of the row `%x` of `%xs`."""
    return normal(f"""
    def @main[T: Dim](%xs: Tensor[(T, 3), float32],
                      %w: (Tensor[(2, 3), float32], Tensor[(2,), float32]),
                      %ns: Tensor[(T,), int64], %table: Tensor[(5, 2), float32])
        -> Tensor[(2,), float32] {{
      let %n = {limit};
      let rec %loop = fn (%i: int64, %sum: Tensor[(2,), float32]) -> Tensor[(2,), float32] {{
        if (%i < %n) {{
          let %x = index(%xs, (%i,), spec=(("int", 0),));
          let %k = index(%ns, (%i,), spec=(("int", 0),));
          %loop({next_}, sin(%sum) + {step})
        }} else {{ %sum }}
      }};
      %loop({start}, zeros(size=(2,)))
    }}""")


def inside(module: Module) -> list[str]:
    """Return the operators that stand in the recursive functions of a program."""
    bodies: list[Expr] = []
    for name, function in module.functions.items():
        if name != "main":
            bodies.append(function.body)
        for node in post_order(function.body):
            if isinstance(node, LetBlock) and node.flavour is Flavour.REC:
                bodies += [b.value for b in node.bindings]
    calls = [n for body in bodies for n in post_order(body) if isinstance(n, Call)]
    return [c.callee.name for c in calls if isinstance(c.callee, Op)]


def arguments(rows: int) -> tuple[Any, ...]:
    weights = (torch.randn(2, 3), torch.randn(2))
    return torch.randn(rows, 3), weights, torch.randint(0, 5, (rows,)), torch.randn(5, 2)


def check(module: Module, *, moved: tuple[str, ...], stage: Stage = Stage.ANF) -> None:
    """Check that layers stand before the loop, and that the values are the same."""
    after = simplify(hoist(module, "main"), "main")
    verify(after, stage)
    assert set(moved).isdisjoint(inside(after))
    for rows in (0, 1, 4):
        args = arguments(rows)
        torch.testing.assert_close(evaluate(after, "main", args), evaluate(module, "main", args))


def test_layers_of_rows_stand_before_the_loop() -> None:
    check(program("linear(%x, %w.0, %w.1)"), moved=("linear",))
    check(program("linear(%x, %w.0, ())"), moved=("linear",))
    check(program("embedding(%k, %table)"), moved=("embedding",))


def test_layers_on_top_of_one_another_follow() -> None:
    module = normal(
        """
    def @main[T: Dim](%ns: Tensor[(T,), int64], %table: Tensor[(5, 3), float32],
                      %w: Tensor[(2, 3), float32]) -> Tensor[(2,), float32] {
      let %n = dim_size(%ns, dim=0);
      let rec %loop = fn (%i: int64, %sum: Tensor[(2,), float32]) -> Tensor[(2,), float32] {
        if (%i < %n) {
          let %k = index(%ns, (%i,), spec=(("int", 0),));
          let %e = embedding(%k, %table);
          %loop(%i + 1, %sum + linear(%e, %w, ()))
        } else { %sum }
      };
      %loop(0, zeros(size=(2,)))
    }"""
    )
    after = simplify(hoist(module, "main"), "main")
    verify(after, Stage.ANF)
    assert {"linear", "embedding"}.isdisjoint(inside(after))
    args = (torch.randint(0, 5, (3,)), torch.randn(5, 3), torch.randn(2, 3))
    torch.testing.assert_close(evaluate(after, "main", args), evaluate(module, "main", args))


def test_global_loops_get_a_further_argument() -> None:
    module = first_order(program("linear(%x, %w.0, %w.1)"), "main")
    check(simplify(module, "main"), moved=("linear",), stage=Stage.DERIVED)


def test_what_rounds_change_or_skip_stays() -> None:
    for module in (
        program("linear(%x, %w.0, %sum)"),
        program("linear(%x, %w.0, %w.1)", start="1"),
        program("linear(%x, %w.0, %w.1)", next_="%i + 2"),
        program("linear(%x, %w.0, %w.1)", limit="2"),
    ):
        assert hoist(module, "main") is module


def test_a_recurrent_loop_is_torchs_with_its_gradients() -> None:
    @relay
    def run(
        w: Tensor[Float, (2, 3)],
        u: Tensor[Float, (2, 2)],
        b: Tensor[Float, (2,)],
        xs: Tensor[Float, (T, 1, 3)],
    ) -> Float:
        h = relay.zeros((1, 2))
        for x in xs:
            h = relay.tanh(relay.linear(x, w, b) + relay.linear(h, u))
        return (h * h).sum()

    def theirs(w: torch.Tensor, u: torch.Tensor, b: torch.Tensor, xs: torch.Tensor) -> torch.Tensor:
        h = torch.zeros(1, 2)
        for x in xs:
            h = torch.tanh(torch.nn.functional.linear(x, w, b) + torch.nn.functional.linear(h, u))
        return (h * h).sum()

    args = (torch.randn(2, 3), torch.randn(2, 2), torch.randn(2), torch.randn(4, 1, 3))
    torch.testing.assert_close(run(*args), theirs(*args))
    assert run.show("host").index("linear(xs") < run.show("host").index("while True")
    every = relay.grad(run, wrt=("w", "u", "b", "xs"))
    expected = torch.func.grad(theirs, argnums=(0, 1, 2, 3))(*args)
    torch.testing.assert_close(every(*args), expected)


def test_words_of_a_sentence_are_looked_up_at_once() -> None:
    @relay
    def sums(words: Tensor[Int, (T,)], table: Tensor[Float, (5, D)]) -> Tensor[Float, (D,)]:
        total = relay.zeros((table.shape[1],))
        for word in words:
            total = relay.tanh(total + relay.embedding(word, table))
        return total

    words, table = torch.tensor([1, 4, 1]), torch.randn(5, 2)
    expected = torch.zeros(2)
    for word in words:
        expected = torch.tanh(expected + table[word])
    torch.testing.assert_close(sums(words, table), expected)
