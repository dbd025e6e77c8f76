"""Functions that programs make as they run: closures, functions as values, at any depth."""

from __future__ import annotations

import pytest
import torch

from tests.unit.runtime.host.programs import compiled, run_both

pytestmark = pytest.mark.host("compiles host code itself")

LIST = "type List[a] { Nil, Cons(a, List[a]) }"


def test_recursion_through_function_values_runs_at_any_depth() -> None:
    source = """
    def @apply(%f: fn (int64) -> int64, %n: int64) -> int64 { add(%f(%n), 1) }
    def @main(%n: int64) -> int64 {
      let rec %down = fn (%i: int64) -> int64 {
        if (less(%i, 1)) { 0 } else { @apply(%down, subtract(%i, 1)) }
      };
      %down(%n)
    }
    """
    assert run_both(source, 300) == 300
    assert compiled(source)(20_000) == 20_000


def test_a_global_function_is_a_value() -> None:
    source = """
    def @main(%n: int64) -> int64 { @twice(@down, %n) }
    def @twice(%f: fn (int64) -> int64, %n: int64) -> int64 { %f(%f(%n)) }
    def @down(%n: int64) -> int64 { if (less(%n, 1)) { 5 } else { @step(@down, %n) } }
    def @step(%f: fn (int64) -> int64, %n: int64) -> int64 { add(%f(subtract(%n, 1)), 0) }
    """
    assert run_both(source, 400) == 5
    assert compiled(source)(20_000) == 5


def test_a_function_from_outside_may_be_called_in_deep_recursion() -> None:
    source = """def @main(%f: fn (int64) -> int64, %n: int64) -> int64 {
      if (less(%n, 1)) { %f(%n) } else { add(@main(%f, subtract(%n, 1)), %f(1)) }
    }"""
    assert compiled(source)(lambda n: n + 2, 10_000) == 30_002


def test_closures_made_in_a_loop_hold_the_values_of_their_own_round() -> None:
    source = f"""{LIST}
    def @main(%n: int64) -> int64 {{
      let rec %build = fn (%i: int64, %made: List[fn (int64) -> int64])
          -> List[fn (int64) -> int64] {{
        if (less(%i, %n)) {{
          let %square = multiply(%i, %i);
          %build(add(%i, 1), Cons(fn (%x: int64) -> int64 {{ add(%x, %square) }}, %made))
        }} else {{ %made }}
      }};
      let rec %use = fn (%fs: List[fn (int64) -> int64], %total: int64) -> int64 {{
        match (%fs) {{ Nil => %total, Cons(%f, %rest) => %use(%rest, %f(%total)) }}
      }};
      %use(%build(0, Nil()), 0)
    }}"""
    assert run_both(source, 5) == 0 + 1 + 4 + 9 + 16


def test_recursive_closures_made_in_a_loop_are_independent() -> None:
    source = f"""{LIST}
    def @main(%n: int64) -> int64 {{
      let rec %build = fn (%i: int64, %made: List[fn (int64) -> int64])
          -> List[fn (int64) -> int64] {{
        if (less(%i, %n)) {{
          let rec %times = fn (%x: int64) -> int64 {{
            if (less(%x, 1)) {{ 0 }} else {{ add(%times(subtract(%x, 1)), %i) }}
          }};
          %build(add(%i, 1), Cons(%times, %made))
        }} else {{ %made }}
      }};
      let rec %use = fn (%fs: List[fn (int64) -> int64], %total: int64) -> int64 {{
        match (%fs) {{ Nil => %total, Cons(%f, %rest) => %use(%rest, add(%total, %f(2))) }}
      }};
      %use(%build(0, Nil()), 0)
    }}"""
    assert run_both(source, 5) == 2 * (0 + 1 + 2 + 3 + 4)


def test_a_result_may_be_a_function() -> None:
    source = "def @main(%n: int64) { fn (%x: int64) { add(%x, %n) } }"
    assert compiled(source)(3)(4) == 7


TWICE = """
def @twice[N: Dim](%f: fn (Tensor[(N), float32]) -> Tensor[(N), float32],
                   %x: Tensor[(N), float32]) -> Tensor[(N), float32] { %f(%f(%x)) }
"""


def test_a_closure_in_a_closure_in_a_loop_belongs_to_the_inner_one() -> None:
    source = f"""{TWICE}
    def @main[N: Dim](%a: Tensor[(N), float32], %k: int64) {{
      let rec %loop = fn (%i: int64, %acc: Tensor[(N), float32]) {{
        if (less(%i, %k)) {{
          let %outer = fn (%x: Tensor[(N), float32]) {{
            let %inner = fn (%y: Tensor[(N), float32]) {{ add(%y, %acc) }};
            let %z = @twice(%inner, %a);
            add(%x, %z)
          }};
          %loop(add(%i, 1), tanh(@twice(%outer, %acc)))
        }} else {{ %acc }}
      }};
      %loop(0, %a)
    }}"""
    run_both(source, torch.randn(3), 4)


def test_a_closure_that_dies_early_is_dropped_in_every_form_of_a_function() -> None:
    source = f"""{TWICE}
    def @apply(%f: fn (int64) -> Tensor[(2), float32], %n: int64) {{ %f(%n) }}
    def @main(%a: Tensor[(2), float32], %n: int64) -> Tensor[(2), float32] {{
      if (less(%n, 1)) {{ %a }} else {{
        let %passed = fn (%x: Tensor[(2), float32]) {{ tanh(add(%x, %a)) }};
        let %called = fn (%m: int64) {{ add(@main(%a, %m), %a) }};
        let %y = @twice(%passed, %a);
        let %z = @apply(%called, subtract(%n, 1));
        let %s = multiply(%y, %z);
        tanh(%s)
      }}
    }}"""
    a = torch.randn(2)
    run_both(source, a, 250)
    text = compiled(source).source
    assert "del passed__value" in text
    expected = a
    for _ in range(5000):
        y = torch.tanh(torch.tanh(a + a) + a)
        expected = torch.tanh(y * (expected + a))
    torch.testing.assert_close(compiled(source)(a, 5000), expected)


def test_a_closure_made_in_a_loop_of_a_deep_function_is_there_in_every_form() -> None:
    source = """def @main(%n: int64) -> int64 {
      if (less(%n, 1)) { 0 } else {
        let rec %loop = fn (%i: int64, %total: int64) -> int64 {
          if (less(%i, 2)) {
            let %down = fn (%m: int64) { add(@main(subtract(%m, 2)), %i) };
            let %d = multiply(%down(%n), subtract(1, %i));
            %loop(add(%i, 1), add(%total, %d))
          } else { %total }
        };
        add(%loop(1, 0), @main(subtract(%n, 1)))
      }
    }"""
    run_both(source, 12)
