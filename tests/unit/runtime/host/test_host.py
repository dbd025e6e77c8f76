"""Host code gives the values of the reference evaluator, whatever a program is made of."""

from __future__ import annotations

import pytest
import torch

from pyrelay.runtime.host import compile_module
from tests.unit.runtime.host.programs import CPU, compiled, prepared, run_both

pytestmark = pytest.mark.host("compiles host code itself")

LIST = "type List[a] { Nil, Cons(a, List[a]) }"


def test_straight_line_code_is_straight_line_torch() -> None:
    source = """def @main[N: Dim](%x: Tensor[(N, 3), float32], %w: Tensor[(3, 2), float32]) {
      let %h = matmul(%x, %w);
      let %a = tanh(%h);
      sum(multiply(%a, 2), dim=1)
    }"""
    x, w = torch.randn(4, 3), torch.randn(3, 2)
    torch.testing.assert_close(run_both(source, x, w), (torch.tanh(x @ w) * 2).sum(1))
    text = compiled(source).source
    assert "torch.matmul(x, w)" in text
    assert "h.tanh()" in text
    assert "op__" not in text


def test_a_number_that_meets_a_tensor_is_made_once() -> None:
    program = compiled("def @main(%x: Tensor[(3,), float32]) { add(multiply(%x, 1.5), 1.5) }")
    assert program.source.count("c__1_5") == 2
    torch.testing.assert_close(program(torch.ones(3)), torch.full((3,), 3.0))


def test_integers_compute_as_pythons() -> None:
    source = """def @main(%n: int64, %m: int64) {
      (floor_divide(%n, %m), mod(%n, %m), multiply(%n, %m), less(%n, %m), divide(%n, %m))
    }"""
    quotient, rest, product, less, ratio = run_both(source, -7, 2)
    assert (quotient, rest, product, less) == (-4, 1, -14, True)
    torch.testing.assert_close(ratio, torch.tensor(-3.5))


def test_rank_0_integers_may_be_tensors() -> None:
    source = """def @main(%n: int64, %m: int64) {
      if (less(%n, %m)) { (add(%n, 1), floor_divide(%n, %m)) } else { (%m, minimum(%n, %m)) }
    }"""
    for n, m in ((2, 5), (5, 2)):
        tensors = (torch.tensor(n), torch.tensor(m))
        expected = run_both(source, n, m)
        assert tuple(map(int, run_both(source, *tensors))) == expected
        assert tuple(map(int, run_both(source, n, tensors[1]))) == expected


def test_an_if_takes_one_arm() -> None:
    source = """def @main(%c: bool, %x: float32) {
      let %y = if (%c) { add(%x, 1) } else { check(False, message="the other arm"); %x };
      multiply(%y, 2)
    }"""
    assert float(run_both(source, True, torch.tensor(1.0))) == 4.0


@pytest.mark.parametrize("outer", ["%r", "add(%r, 0)"])
def test_an_if_may_stand_anywhere(outer: str) -> None:
    source = f"""def @main(%a: bool, %b: bool) {{
      let %r = if (%a) {{ if (%b) {{ 1 }} else {{ 2 }} }} else {{ if (%b) {{ 3 }} else {{ 4 }} }};
      {outer}
    }}"""
    found = [int(run_both(source, a, b)) for a in (True, False) for b in (True, False)]
    assert found == [1, 2, 3, 4]


def test_a_function_that_was_a_value_may_be_called_after() -> None:
    source = """def @main(%n: int64) {
      let %f = fn (%i: int64) -> int64 { %i + %n };
      let %p = (%f, %n); let %g = %p.0;
      (%g(1), %f(2))
    }"""
    assert tuple(map(int, run_both(source, 5))) == (6, 7)


SUM_TO = """def @main(%n: int64) {
  let rec %loop = fn (%i, %total) {
    if (less(%i, %n)) { %loop(add(%i, 1), add(%total, %i)) } else { %total }
  };
  %loop(0, 0)
}"""


def test_a_loop_is_a_while_in_place() -> None:
    text = compiled(SUM_TO).source
    assert text.count("def ") == 1
    assert "while True:" in text
    assert compiled(SUM_TO)(1_000_000) == 499_999_500_000


def test_loops_agree_with_the_evaluator() -> None:
    assert run_both(SUM_TO, 0) == 0
    assert run_both(SUM_TO, 100) == 4950


def test_a_loop_in_a_loop_goes_on_after_it() -> None:
    source = """def @main(%n: int64) {
      let rec %outer = fn (%i, %total) {
        if (less(%i, %n)) {
          let rec %inner = fn (%j, %part) {
            if (less(%j, %i)) { %inner(add(%j, 1), add(%part, %j)) } else { %part }
          };
          let %part = %inner(0, 0);
          %outer(add(%i, 1), add(%total, %part))
        } else { %total }
      };
      add(%outer(0, 0), 1000)
    }"""
    assert run_both(source, 6) == 1000 + sum(sum(range(i)) for i in range(6))


LEFT_EARLY = """def @main(%n: int64, %goal: int64) {{
  let rec %outer = fn (%i) {{
    if (less(%i, %n)) {{
      let rec %inner = fn (%j) {{
        if (less(%j, %n)) {{
          if (equal(multiply(%i, %j), %goal)) {{ (%i, %j) }} else {{ %inner(add(%j, 1)) }}
        }} else {{ %outer(add(%i, 1)) }}
      }};
      %inner(0)
    }} else {{ (-1, -1) }}
  }};
  {use}
}}"""


@pytest.mark.parametrize(
    "use", ["%outer(0)", "let %p = %outer(0); let %q = %p.0; (%q, %p.1)"], ids=["tail", "let"]
)
def test_a_loop_in_tail_position_of_a_loop_may_leave_both(use: str) -> None:
    source = LEFT_EARLY.format(use=use)
    text = compiled(source).source
    assert text.count("def ") == 1
    assert text.count("while True:") == 2
    assert run_both(source, 6, 20) == (4, 5)
    assert run_both(source, 6, 7) == (-1, -1)
    assert run_both(source, 6, 0) == (0, 0)


@pytest.mark.parametrize("use", ["%a(0)", "let %p = %a(0); add(%p, 0)"], ids=["tail", "let"])
def test_three_loops_in_tail_position_jump_to_any_of_them(use: str) -> None:
    source = f"""def @main(%n: int64) {{
      let rec %a = fn (%i) {{
        let rec %b = fn (%j) {{
          let rec %c = fn (%k) {{
            if (equal(mod(%k, 7), 3)) {{ %b(add(%k, 1)) }}
            else if (equal(mod(%k, 7), 5)) {{ %a(add(%k, 1)) }}
            else if (less(%k, %n)) {{ %c(add(%k, 1)) }}
            else {{ %k }}
          }};
          if (less(%j, 4)) {{ %c(add(%j, 1)) }} else {{ %c(%j) }}
        }};
        if (less(%i, 2)) {{ %b(%i) }} else {{ %b(add(%i, 1)) }}
      }};
      {use}
    }}"""
    for n in range(25):
        run_both(source, n)


FACTORIAL = """def @main(%n: int64) {
  if (less(%n, 1)) { 1.0f64 } else { add(@main(subtract(%n, 1)), 1.0f64) }
}"""


def test_recursion_of_any_depth_runs() -> None:
    assert float(run_both(FACTORIAL, 250)) == 251
    assert float(compiled(FACTORIAL)(50_000)) == 50_001


def test_a_tail_call_of_itself_is_a_jump() -> None:
    source = """def @main(%n: int64, %total: int64) {
      if (less(%n, 1)) { %total } else { @main(subtract(%n, 1), add(%total, %n)) }
    }"""
    text = compiled(source).source
    assert text.count("def ") == 1
    assert text.count("main(") == 1
    assert run_both(source, 100, 0) == 5050
    assert compiled(source)(200_000, 0) == 20_000_100_000


EVEN = """
def @main(%n: int64) { if (equal(%n, 0)) { True } else { @odd(subtract(%n, 1)) } }
def @odd(%n: int64) { if (equal(%n, 0)) { False } else { @main(subtract(%n, 1)) } }
"""


def test_mutual_tail_calls_run_in_constant_memory() -> None:
    assert run_both(EVEN, 7) is False
    assert compiled(EVEN)(1_000_000) is True


def test_local_functions_that_jump_to_each_other_are_one_loop() -> None:
    source = """def @main(%n: int64) {
      let rec %even = fn (%i) { if (equal(%i, 0)) { True } else { %odd(subtract(%i, 1)) } }
      and %odd = fn (%j) { if (equal(%j, 0)) { False } else { %even(subtract(%j, 1)) } };
      %even(%n)
    }"""
    text = compiled(source).source
    assert text.count("def ") == 1
    assert run_both(source, 8) is True
    assert run_both(source, 9) is False


def test_mutual_recursion_that_is_not_in_tail_position_runs_at_any_depth() -> None:
    source = """
    def @main(%n: int64) { if (less(%n, 1)) { 0 } else { add(@other(subtract(%n, 1)), 1) } }
    def @other(%n: int64) { if (less(%n, 1)) { 0 } else { add(@main(subtract(%n, 1)), 2) } }
    """
    assert run_both(source, 301) == 451
    assert compiled(source)(40_000) == 60_000


def test_a_recursive_function_with_a_loop_inside_runs_at_any_depth() -> None:
    source = """def @main(%n: int64) {
      if (less(%n, 1)) { 0 } else {
        let rec %loop = fn (%i, %total) {
          if (less(%i, 3)) { %loop(add(%i, 1), add(%total, @main(subtract(%n, 3)))) }
          else { %total }
        };
        add(%loop(2, 0), 1)
      }
    }"""
    assert run_both(source, 600) == 200
    assert compiled(source)(60_000) == 20_000


def test_a_recursive_call_may_stand_in_every_arm() -> None:
    source = """def @main(%n: int64) -> int64 {
      if (less(%n, 1)) { 0 } else {
        let %r = if (equal(mod(%n, 2), 0)) { @main(subtract(%n, 1)) }
          else { add(@main(subtract(%n, 1)), 1) };
        add(%r, 1)
      }
    }"""
    assert run_both(source, 301) == 301 + 151
    assert compiled(source)(20_000) == 30_000


def test_cells_hold_what_was_written_last() -> None:
    source = """def @main(%x: float32) {
      let! %r = ref(%x);
      ref_write(%r, add(ref_read(%r), 1));
      let! %old = ref_read(%r);
      ref_write(%r, multiply(%old, 10));
      (%old, ref_read(%r))
    }"""
    old, new = run_both(source, torch.tensor(1.0))
    assert (float(old), float(new)) == (2.0, 20.0)


def test_effects_happen_once_and_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    source = """def @main(%n: int64) {
      let rec %loop = fn (%i) {
        if (less(%i, %n)) { print((%i, "of", %n)); %loop(add(%i, 1)) } else { () }
      };
      %loop(0);
      print(("done",));
      %n
    }"""
    compiled(source)(3)
    assert capsys.readouterr().out == "0 of 3\n1 of 3\n2 of 3\ndone\n"


def test_tuples_are_taken_apart() -> None:
    source = """def @main(%p: (int64, (float32, int64))) {
      match (%p) { (%a, (%b, %c)) => (add(%a, %c), %b, %p.1.1) }
    }"""
    total, kept, last = run_both(source, (1, (torch.tensor(2.0), 3)))
    assert (total, float(kept), last) == (4, 2.0, 3)


TREE = """
type Tree { Leaf(Tensor[(2,), float32]), Node(Tree, Tree) }
def @main(%t: Tree) -> Tensor[(2,), float32] {
  match (%t) { Leaf(%x) => %x, Node(%l, %r) => add(@main(%l), multiply(@main(%r), 2)) }
}
"""


def test_recursion_over_data_of_any_depth() -> None:
    leaf = (0, torch.ones(2))
    tree = (1, (1, leaf, leaf), leaf)
    assert run_both(TREE, tree).tolist() == [5.0, 5.0]
    for _ in range(20_000):
        tree = (1, tree, leaf)
    assert compiled(TREE)(tree).tolist() == [40_005.0, 40_005.0]


def test_the_first_clause_that_matches_wins() -> None:
    source = f"""{LIST}
    def @main(%xs: List[int64]) -> int64 {{
      match (%xs) {{
        Cons(1, Cons(2, _)) => 12,
        Cons(1, _) => 1,
        Cons(%x, Cons(%y, Nil)) => add(%x, %y),
        Cons(%x, %rest) as %all => 100,
        Nil => 0
      }}
    }}"""

    def listed(*numbers: int) -> tuple[object, ...]:
        found: tuple[object, ...] = (0,)
        for number in reversed(numbers):
            found = (1, number, found)
        return found

    for numbers, value in (((1, 2, 3), 12), ((1, 3), 1), ((4, 5), 9), ((4, 5, 6), 100), ((), 0)):
        assert run_both(source, listed(*numbers)) == value


@pytest.mark.parametrize("use", ["{match}", "let %v = {match}; add(%v, 0)"], ids=["tail", "let"])
def test_a_guard_may_send_on_to_the_next_clause(use: str) -> None:
    match = """match (%n) {
        0 => 100,
        %k if less(%k, 3) => multiply(%k, 10),
        %k if check_is_small(%k) => %k,
        _ => -1
      }""".replace("check_is_small(%k)", "{ let %d = multiply(%k, 2); less(%d, 12) }")
    source = f"def @main(%n: int64) {{ {use.format(match=match)} }}"
    assert [run_both(source, n) for n in range(8)] == [100, 10, 20, 3, 4, 5, -1, -1]


def test_many_cases_are_not_one_chain() -> None:
    clauses = ", ".join(f"{n} => {n * n}" for n in range(300))
    source = f"""def @main(%n: int64) {{
      let %v = match (%n) {{ {clauses}, _ => -1 }};
      add(%v, 0)
    }}"""
    program = compiled(source)
    assert [program(n) for n in (0, 17, 299, 300)] == [0, 289, 299 * 299, -1]


def test_sizes_are_read_once_and_only_where_they_are_needed() -> None:
    source = """def @main[N: Dim, M: Dim](%x: Tensor[(N, M), float32],
                                %p: (float32, Tensor[(M,), float32])) {
      let %a = reshape(%x, shape=(N * M,));
      let %b = zeros(size=(2 * N, 3), dtype=float32);
      (%a, %b, size(dim=N * M + 1))
    }"""
    text = compiled(source).source
    assert text.count(".shape[") == 2
    a, b, size = run_both(source, torch.ones(4, 5), (torch.tensor(0.0), torch.ones(5)))
    assert (a.shape, b.shape, size) == ((20,), (8, 3), 21)
    assert "shape[" not in compiled("def @main(%x: Tensor[(3,), float32]) { add(%x, %x) }").source


def test_sizes_that_only_the_run_knows_are_read_where_they_appear() -> None:
    source = """def @main(%x: Tensor[(6,), float32]) {
      let %found = nonzero(greater(%x, 0));
      let %n = dim_size(%found, dim=0);
      zeros(size=({%n}, 2), dtype=float32)
    }"""
    x = torch.tensor([1.0, -1.0, 2.0, 3.0, -2.0, 0.0])
    assert run_both(source, x).shape == (3, 2)


def test_a_function_that_calls_itself_at_another_size_reads_it_again() -> None:
    source = """def @main[N: Dim](%x: Tensor[(N,), float32], %n: int64) -> float32 {
      if (less(%n, 1)) { sum(add(%x, ones(size=(N,), dtype=float32))) }
      else { @main(cat((%x, %x)), subtract(%n, 1)) }
    }"""
    assert float(run_both(source, torch.ones(3), 2)) == 24.0


def test_operands_in_tuples_need_no_tuple() -> None:
    source = """def @main(%x: Tensor[(3,), float32], %y: Tensor[(3,), float32]) {
      stack((%x, multiply(%y, 2)))
    }"""
    text = compiled(source).source
    assert "[x, multiply]" in text
    assert run_both(source, torch.ones(3), torch.ones(3)).tolist() == [[1.0] * 3, [2.0] * 3]


def test_values_are_deleted_after_their_last_use() -> None:
    source = """def @main(%x: Tensor[(3,), float32]) {
      let %a = exp(%x);
      let %b = exp(%a);
      let %c = if (less(sum(%b), 0)) { %a } else { add(%b, 1) };
      exp(%c)
    }"""
    lines = [line.strip() for line in compiled(source).source.splitlines()]
    assert "del b" in lines
    assert "del a" in lines
    torch.testing.assert_close(
        run_both(source, torch.zeros(3)), torch.zeros(3).exp().exp().add(1).exp().exp().log()
    )


def test_two_calls_share_nothing() -> None:
    program = compiled(
        "def @main(%x: float32) { let! %r = ref(%x); ref_write(%r, add(ref_read(%r), 1)); %r }"
    )
    first, second = program(torch.tensor(1.0)), program(torch.tensor(5.0))
    assert (float(first.value), float(second.value)) == (2.0, 6.0)


def test_host_code_runs_without_gradients() -> None:
    x = torch.ones(3, requires_grad=True)
    assert not compiled("def @main(%x: Tensor[(3,), float32]) { add(%x, 1) }")(x).requires_grad
    assert torch.is_grad_enabled()


def test_the_module_is_not_changed_by_compiling() -> None:
    module = prepared(EVEN)
    first = compile_module(module, "main", CPU).source
    assert compile_module(module, "main", CPU).source == first
