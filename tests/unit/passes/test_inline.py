"""Inlining puts bodies in place of calls and keeps what programs mean."""

from __future__ import annotations

import re

import pytest
import torch

from pyrelay.ir.expr import Call, Function, GlobalVar
from pyrelay.ir.module import Module
from pyrelay.ir.traverse import free_globals, post_order
from pyrelay.ir.verify import Stage, verify
from pyrelay.passes.simplify.inline import SMALL, inline
from pyrelay.text.parser import parse_module
from pyrelay.text.printer import to_text
from tests.unit.passes.programs import body_of, evaluate, normal

BIG = " + ".join(["sin(%x)"] * SMALL)


def inlined(text: str) -> Module:
    module = inline(normal(text), "main")
    verify(module, Stage.ANF)
    return module


def test_a_small_function_is_inlined_wherever_it_is_called() -> None:
    module = inlined("""
        def @half(%x: float32) { %x / 2.0 }
        def @main(%x: float32) { @half(@half(%x)) }
    """)
    assert body_of(module) == (
        "let %divide: float32 = divide(%x, 2.0f32);\n"
        "let %divide_1: float32 = divide(%divide, 2.0f32);\n"
        "%divide_1"
    )


def test_a_large_function_is_inlined_if_it_is_called_once() -> None:
    once = inlined(f"def @f(%x: float32) {{ {BIG} }} def @main(%x: float32) {{ @f(%x) }}")
    assert free_globals(once.functions["main"]) == ()
    twice = inlined(f"def @f(%x: float32) {{ {BIG} }} def @main(%x: float32) {{ @f(@f(%x)) }}")
    assert free_globals(twice.functions["main"]) == ("f",)


def test_recursive_functions_and_the_entry_stay() -> None:
    text = """
        def @even(%n: int64) -> bool { if (%n == 0) { True } else { @odd(%n - 1) } }
        def @odd(%n: int64) -> bool { if (%n == 0) { False } else { @even(%n - 1) } }
        def @main(%n: int64) { @even(%n) }
    """
    module = normal(text)
    assert inline(module, "main") is module


def test_a_call_in_tail_position_leaves_what_was_in_tail_position() -> None:
    module = inlined("""
        def @loop(%n: int64) -> int64 { if (%n == 0) { 0 } else { @loop(%n - 1) } }
        def @start(%n: int64) { @loop(%n + 1) }
        def @main(%n: int64) { @start(%n) }
    """)
    assert body_of(module) == "let %add: int64 = add(%n, 1i64);\n@loop(%add)"


def test_effects_keep_their_order() -> None:
    module = inlined("""
        def @push(%r: ref(int64), %v: int64) -> int64 {
          ref_write(%r, ref_read(%r) * 10 + %v); ref_read(%r)
        }
        def @main() { let %r = ref(0); (@push(%r, 1), @push(%r, 2)) }
    """)
    assert free_globals(module.functions["main"]) == ()
    assert [int(v) for v in evaluate(module, "main", ())] == [1, 12]


def test_sizes_and_types_of_the_callee_are_those_of_the_call() -> None:
    module = inlined("""
        def @ones[N: Dim](%x: Tensor[(N,), float32]) {
          %x + full(size=(N,), fill_value=1.0, dtype=float32)
        }
        def @same[a](%x: a) -> a { %x }
        def @main[A: Dim, B: Dim](%x: Tensor[(A,), float32], %y: Tensor[(B, 2), float32]) {
          (@ones(@same(%x)), @same(%y))
        }
    """)
    assert "full(size=(A,)" in body_of(module)
    assert free_globals(module.functions["main"]) == ()


def test_a_size_found_at_each_call_is_another_each_time() -> None:
    module = inlined("""
        def @find[N: Dim](%x: Tensor[(N,), float32]) {
          let %where = nonzero(%x > 0.0);
          sum(full(size=({ dim_size(%where, dim=0) },), fill_value=1.0, dtype=float32))
        }
        def @main[N: Dim](%x: Tensor[(N,), float32]) { @find(%x) * 10.0 + @find(%x - 1.0) }
    """)
    names = {str(b.ty) for b in post_order(module.functions["main"]) if "nonzero" in str(b.ty)}
    assert len({n for n in names if "int64" in n}) == 2


def test_a_size_found_by_the_callee_is_not_that_of_the_same_name_in_the_caller() -> None:
    text = to_text(
        normal("""
            def @count[N: Dim](%x: Tensor[(N,), float32]) -> Tensor[(N,), float32] {
              let %where = nonzero(%x > 0.0);
              full(size=(N,), fill_value=1.0, dtype=float32)
                * sum(full(size=({ dim_size(%where, dim=0) },), fill_value=1.0, dtype=float32))
            }
            def @main[N: Dim](%x: Tensor[(N,), float32]) {
              let %where = nonzero(%x > 0.5);
              @count(full(size=({ dim_size(%where, dim=0) },), fill_value=-1.0, dtype=float32))
            }
        """)
    )
    module = inline(parse_module(re.sub(r"\bnonzero_\d+", "found", text)), "main")
    verify(module, Stage.ANF)
    x = torch.tensor([0.0, 1.0, 2.0])
    assert torch.equal(evaluate(module, "main", (x,)), torch.zeros(2))


def test_a_size_that_the_caller_cannot_tell_keeps_the_call() -> None:
    text = """
        def @pad[N: Dim](%x: Tensor[(N,), float32]) {
          full(size=(N + 1,), fill_value=1.0, dtype=float32)
        }
        def @main[M: Dim](%x: Tensor[(2 * M,), float32]) { @pad(%x) }
    """
    module = normal(text)
    assert inline(module, "main") is module


def test_an_assumption_of_the_callee_keeps_the_call() -> None:
    text = """
        def @add[N: Dim, M: Dim](%x: Tensor[(N,), float32], %y: Tensor[(M,), float32]) { %x + %y }
        def @main[A: Dim](%x: Tensor[(A,), float32], %y: Tensor[(SIZE,), float32], %b: bool) {
          if (%b) { @add(%x, %y) } else { %x }
        }
    """
    known = inlined(text.replace("SIZE", "A"))
    assert free_globals(known.functions["main"]) == ()
    other = normal(text.replace("SIZE", "A"))
    assumed = other.functions["add"].assumptions
    assert assumed, "inference lists what it could not prove"


def test_a_local_function_called_once_moves_to_its_call() -> None:
    module = inlined(f"""
        def @main(%x: float32) {{
          let %f = fn (%y: float32) {{ let %z = %y * %x; {BIG} + %z }};
          exp(%f(%x))
        }}
    """)
    assert not any(isinstance(n, Function) for n in post_order(module.functions["main"].body))


def test_a_small_local_function_is_copied_to_its_calls() -> None:
    module = inlined("""
        def @main(%x: float32) {
          let %f = fn (%y: float32) { %y * %x };
          %f(%f(%x))
        }
    """)
    calls = [n for n in post_order(module.functions["main"]) if isinstance(n, Call)]
    assert not any(getattr(n.callee, "name", "") == "f" for n in calls)


def test_a_function_moved_into_one_that_is_copied_stays_one() -> None:
    module = inlined("""
        def @main(%x: float32) {
          let %inner = fn (%y: float32) { %y + 1.0 };
          let %outer = fn (%y: float32) { %inner(%y) * %x };
          %outer(%outer(%x))
        }
    """)
    assert float(evaluate(module, "main", (3.0,))) == pytest.approx(39.0)


def test_a_function_that_escapes_stays() -> None:
    module = inlined("""
        def @main(%x: float32) {
          let %f = fn (%y: float32) { %y * %x };
          (%f(%x), %f)
        }
    """)
    assert any(isinstance(n, Function) for n in post_order(module.functions["main"].body))


def test_growth_is_bounded() -> None:
    doubling = "\n".join(
        f"def @f{i}(%x: float32) -> float32 {{ @f{i + 1}(%x) + @f{i + 1}(%x) }}" for i in range(30)
    )
    module = inlined(
        f"{doubling}\ndef @f30(%x: float32) -> float32 {{ %x }}\n"
        "def @main(%x: float32) { @f0(%x) + @f0(%x) }"
    )
    assert all(sum(1 for _ in post_order(f)) < 10_000 for f in module.functions.values())


def test_inlined_code_says_where_it_comes_from() -> None:
    module = inlined("""
        def @half(%x: float32) { %x / 2.0 }
        def @main(%x: float32) { @half(%x) + @half(%x) }
    """)
    reasons = {n.span.because for n in post_order(module.functions["main"])}
    assert "inlined from `half`" in reasons
    assert not any(isinstance(n, GlobalVar) for n in post_order(module.functions["main"]))
