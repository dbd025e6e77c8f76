"""Sums that recursive functions only collect are added up when the recursion ends."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import Dim, Float, Tensor, options, relay
from pyrelay.ir.expr import Call
from pyrelay.ir.module import Module
from pyrelay.ir.op import Op
from pyrelay.ir.traverse import post_order
from pyrelay.ir.verify import Stage, verify
from pyrelay.operators.matrices.products import matmul
from pyrelay.passes.accumulate import accumulate_sums
from pyrelay.passes.simplify.simplify import simplify
from pyrelay.runtime.compile.evaluator import evaluate
from pyrelay.runtime.compile.program import Program
from pyrelay.text.parser import parse_module
from tests.tolerances import assert_program
from tests.unit.passes.programs import normal

N = Dim("N")
CPU = torch.device("cpu")


def changed(text: str) -> tuple[Module, Module]:
    """Return a program before and after the pass."""
    before = normal(text)
    after = simplify(accumulate_sums(before, "main"), "main")
    verify(after, Stage.DERIVED)
    return before, after


def operators(module: Module, name: str) -> list[str]:
    """Return the operators that a function calls."""
    calls = [n for n in post_order(module.functions[name].body) if isinstance(n, Call)]
    return [c.callee.name for c in calls if isinstance(c.callee, Op)]


def check(text: str, *arguments: tuple[Any, ...]) -> None:
    """Check that sums of the function `loop` are put off, and that the values are the same."""
    before, after = changed(text)
    assert "collect" in operators(after, "main")
    assert "add" not in operators(after, "loop")
    for args in arguments:
        torch.testing.assert_close(evaluate(after, "main", args), evaluate(before, "main", args))


def loop(term: str, *, first: str = "zeros(size=(4, 3))", type_: str = "(4, 3)") -> str:
    """Return a program with a loop that adds a term of `%l`, `%r` and `%n`."""
    return f"""
    def @loop(%n: int64, %l: Tensor[(2, 4), float32], %r: Tensor[(2, 3), float32],
              %sum: Tensor[{type_}, float32]) -> Tensor[{type_}, float32] {{
      if (%n < 1) {{ %sum }} else {{ @loop(%n - 1, sin(%l), cos(%r), %sum + {term}) }}
    }}
    def @main(%n: int64, %l: Tensor[(2, 4), float32], %r: Tensor[(2, 3), float32]) {{
      @loop(%n, %l, %r, {first})
    }}
    """


ARGUMENTS = [(n, torch.randn(2, 4), torch.randn(2, 3)) for n in (0, 1, 5)]


@pytest.mark.parametrize(
    "term",
    [
        "matmul(transpose(%l, dim0=0, dim1=1), %r)",
        "matmul(transpose(%l, dim0=0, dim1=1) * 1.0, %r)",
        'matmul(unsqueeze(index(%l, (), spec=(("slice", 0, 1, None),)).0, dim=1), %r)'.replace(
            'index(%l, (), spec=(("slice", 0, 1, None),)).0', "sum(%l, dim=(0,))"
        ).replace("%r", "unsqueeze(sum(%r, dim=(0,)), dim=0)"),
    ],
)
def test_products_of_matrices_are_one_product(term: str) -> None:
    check(loop(term), *ARGUMENTS)
    _, after = changed(loop(term))
    products = [n for n in post_order(after.functions["main"].body) if isinstance(n, Call)]
    assert sum(p.callee is matmul for p in products) == 1


@pytest.mark.parametrize("term", ["sum(%l, dim=(0,))", "sum(unsqueeze(%v, dim=0), dim=(0,))", "%v"])
def test_sums_of_what_is_kept_in_any_case_are_put_off(term: str) -> None:
    product = "matmul(transpose(%l, dim0=0, dim1=1), %l)"
    if "%v" in term:
        product = "matmul(unsqueeze(%v, dim=1), unsqueeze(%v, dim=0))"
    text = f"""
    def @loop(%n: int64, %l: Tensor[(2, 4), float32], %s: Tensor[(4,), float32],
              %p: Tensor[(4, 4), float32]) -> (Tensor[(4,), float32], Tensor[(4, 4), float32]) {{
      if (%n < 1) {{ (%s, %p) }} else {{
        let %v = sin(sum(%l, dim=(0,)));
        @loop(%n - 1, cos(%l), %s + {term}, %p + {product})
      }}
    }}
    def @main(%n: int64, %l: Tensor[(2, 4), float32]) {{
      @loop(%n, %l, zeros(size=(4,)), zeros(size=(4, 4)))
    }}
    """
    check(text, *[(n, torch.randn(2, 4)) for n in (0, 1, 5)])


def test_small_sums_alone_stay() -> None:
    before = normal(loop("sum(%l, dim=(0,))", first="zeros(size=(4,))", type_="(4,)"))
    assert accumulate_sums(before, "main") is before


def test_a_sum_goes_through_loops_on_its_way() -> None:
    text = """
    def @inner(%k: int64, %x: Tensor[(2, 4), float32], %s: Tensor[(4, 4), float32])
        -> Tensor[(4, 4), float32] {
      if (%k < 1) { %s } else {
        @inner(%k - 1, sin(%x), %s + matmul(transpose(%x, dim0=0, dim1=1), %x))
      }
    }
    def @loop(%n: int64, %x: Tensor[(2, 4), float32], %s: Tensor[(4, 4), float32])
        -> Tensor[(4, 4), float32] {
      if (%n < 1) { %s } else { @loop(%n - 1, cos(%x), @inner(%n, %x, %s)) }
    }
    def @main(%n: int64, %x: Tensor[(2, 4), float32]) { @loop(%n, %x, zeros(size=(4, 4))) }
    """
    check(text, *[(n, torch.randn(2, 4)) for n in (0, 1, 4)])
    _, after = changed(text)
    assert {"collect", "matmul"}.isdisjoint(operators(after, "loop"))


def test_what_the_sum_starts_with_counts() -> None:
    term = "matmul(transpose(%l, dim0=0, dim1=1), %r)"
    check(loop(term, first="ones(size=(4, 3))"), *ARGUMENTS)


def test_rows_of_a_table_are_put_off() -> None:
    term = "embedding_grad(sum(%r, dim=(0,)), %n - 1, num_embeddings=4)"
    check(loop(term), *[(n, torch.randn(2, 4), torch.randn(2, 3)) for n in (0, 1, 4)])


def test_sizes_may_have_names() -> None:
    text = """
    def @loop[N: Dim](%n: int64, %x: Tensor[(N,), float32], %s: Tensor[(N, N), float32])
        -> Tensor[(N, N), float32] {
      if (%n < 1) { %s } else {
        @loop(%n - 1, sin(%x), %s + matmul(unsqueeze(%x, dim=1), unsqueeze(%x, dim=0)))
      }
    }
    def @main(%n: int64, %x: Tensor[(5,), float32]) { @loop(%n, %x, ones(size=(5, 5))) }
    """
    check(text, (0, torch.randn(5)), (3, torch.randn(5)))


def test_a_tree_of_calls_returns_the_sum() -> None:
    def product(of: str) -> str:
        return f"matmul(unsqueeze({of}, dim=1), unsqueeze({of}, dim=0))"

    text = f"""
    def @loop(%n: int64, %x: Tensor[(3,), float32], %s: Tensor[(3, 3), float32])
        -> (Tensor[(3, 3), float32], int64) {{
      if (%n < 1) {{ (%s, %n) }} else {{
        let %left = @loop(%n - 1, sin(%x), %s + {product("%x")});
        let %right = @loop(%n - 2, cos(%x), %left.0 + {product("sin(%x)")});
        (%right.0, %left.1 + %right.1)
      }}
    }}
    def @main(%n: int64, %x: Tensor[(3,), float32]) {{
        @loop(%n, %x, zeros(size=(3, 3)))
    }}
    """
    before, after = changed(text)
    assert operators(after, "main").count("collect") == 1
    for n in (0, 1, 6):
        args = (n, torch.randn(3))
        torch.testing.assert_close(evaluate(after, "main", args), evaluate(before, "main", args))


@pytest.mark.parametrize(
    "term",
    [
        "%l * sum(%sum)",  # the sum is looked at
        "%l * 2.0",  # as large as the sum, and no product
        "matmul(transpose(%l, dim0=0, dim1=1), %l) + %sum",  # twice the sum
    ],
)
def test_other_sums_stay(term: str) -> None:
    text = loop(term, first="zeros(size=(2, 4))", type_="(2, 4)")
    if "matmul" in term:
        text = loop(term, first="zeros(size=(4, 4))", type_="(4, 4)")
    before = normal(text)
    assert accumulate_sums(before, "main") is before


def test_a_sum_that_alone_shows_a_size_stays_where_the_size_is_needed() -> None:
    text = """
    def @loop[N: Dim](%n: int64, %x: Tensor[(1,), float32], %sum: Tensor[(N, N), float32])
        -> Tensor[(N, N), float32] {
      if (%n < 1) { %sum } else {
        let %e = expand(%x, size=(N,));
        @loop[N](%n - 1, %x, %sum + matmul(unsqueeze(%e, dim=1), unsqueeze(%e, dim=0)))
      }
    }
    def @main[N: Dim](%n: int64, %x: Tensor[(1,), float32], %sum: Tensor[(N, N), float32]) {
      @loop[N](%n, %x, %sum)
    }
    """
    before = normal(text)
    assert accumulate_sums(before, "main") is before
    other = text.replace("%x: Tensor[(1,), float32]", "%x: Tensor[(N,), float32]")
    check(other, (3, torch.ones(2), torch.zeros(2, 2)))


def test_sums_are_put_off_for_backends_as_well() -> None:
    program = Program(parse_module(loop("matmul(transpose(%l, dim0=0, dim1=1), %r)")), "main")
    module = program.regions
    assert "collect" in [name for f in module.functions for name in operators(module, f)]
    for args in ARGUMENTS:
        expected = program.compiled(CPU)(*args)
        with options(lowering="torch-regions"):
            torch.testing.assert_close(program.compiled(CPU)(*args), expected)


def test_functions_that_are_values_stay() -> None:
    text = loop("matmul(transpose(%l, dim0=0, dim1=1), %r)") + "def @other() { @loop }"
    before = normal(text)
    assert accumulate_sums(before, "main") is before


def test_gradients_through_a_loop_are_torchs_at_any_order() -> None:
    @relay
    def run(w: Tensor[Float, (3, 3)], b: Tensor[Float, (3,)], xs: Tensor[Float, (N, 3)]) -> Float:
        h = relay.zeros((3,))
        for x in xs:
            h = relay.tanh(relay.linear(h + x, w, b))
        return (h * h).sum()

    @relay
    def along(w: Tensor[Float, (3, 3)], b: Tensor[Float, (3,)], xs: Tensor[Float, (N, 3)]) -> Float:
        gw, gb = relay.grad(run, wrt=("w", "b"))(w, b, xs)
        return (gw * gw).sum() + (gb * gb).sum()

    def theirs(w: torch.Tensor, b: torch.Tensor, xs: torch.Tensor) -> torch.Tensor:
        h = torch.zeros(3)
        for x in xs:
            h = torch.tanh(torch.nn.functional.linear(h + x, w, b))
        return (h * h).sum()

    def their_along(w: torch.Tensor, b: torch.Tensor, xs: torch.Tensor) -> torch.Tensor:
        gw, gb = torch.func.grad(theirs, argnums=(0, 1))(w, b, xs)
        return (gw * gw).sum() + (gb * gb).sum()

    generator = torch.Generator().manual_seed(0)
    args = [torch.randn(*shape, generator=generator) for shape in ((3, 3), (3,), (4, 3))]
    first = relay.grad(run, wrt=("w", "b"))
    assert "op__collect" in first.show("host")
    torch.testing.assert_close(first(*args), torch.func.grad(theirs, argnums=(0, 1))(*args))
    second = relay.grad(along, wrt=("w", "b"))(*args)
    assert_program(second, torch.func.grad(their_along, argnums=(0, 1))(*args))
