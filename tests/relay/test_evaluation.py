"""What Relay's own tests of evaluation and of the prelude state, where no other file here has it.

| behaviour of Relay | where |
|---|---|
| the prelude's functions and orders, natural numbers | test_programs; unit/prelude/test_functions |
| the general types of the prelude's functions | below |
| folds over options, maps and sizes of trees | test_programs; unit/prelude/test_trees; below |
| the first clause that matches wins; patterns nest | test_programs; seed/test_text |
| the matched value is evaluated once | test_programs |
| a value as it stands, tuples, projections | below |
| cells: made, read, written, of functions, in tuples | test_programs |
| only the branch that is taken has its effect | test_programs |
| order from left to right | test_programs |
| local recursion copies a list, a global does, at several types | below |
| functions as arguments and results; closures in tuples and cells | test_programs; below |
| operators on tuples, batch normalisation | below; test_operators |
| sums by recursion and with an accumulator | test_programs |
| arguments by position and by name | test_modules |
| data, cells and tuples go through `@id` | below |
| concatenation of what was computed | below |
| two conditionals on one flag (a miscompilation of Relay's) | test_programs |
| a function that only one branch calls | below |
| loops with a bound of 0; loops over a free variable | below |
| the tail of the empty list stops the program | test_programs |
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import relay
from tests.relay.reading import HEADER
from tests.seed.values import agree


def run(text: str, *args: Any) -> Any:
    """Return the value of `@main`, which both executors give."""
    return agree(relay.parse(HEADER + text)["main"], *args)


def of(body: str) -> Any:
    return run(f"def @main() {{ {body} }}")


# The prelude.


@pytest.mark.parametrize(
    ("name", "general"),
    [
        ("id", "fn [A](A) -> A"),
        ("compose", "fn [A, B, C](fn (B) -> C, fn (A) -> B) -> fn (A) -> C"),
        ("flip", "fn [A, B, C](fn (A, B) -> C) -> fn (B, A) -> C"),
        ("hd", "fn [A](List[A]) -> A"),
        ("tl", "fn [A](List[A]) -> List[A]"),
        ("nth", "fn [A](List[A], int32) -> A"),
        ("length", "fn [A](List[A]) -> int32"),
        ("update", "fn [A](List[A], int32, A) -> List[A]"),
        ("map", "fn [A, B](fn (A) -> B, List[A]) -> List[B]"),
        ("foldl", "fn [A, B](fn (A, B) -> A, A, List[B]) -> A"),
        ("foldr", "fn [A, B](fn (A, B) -> B, B, List[A]) -> B"),
        ("foldr1", "fn [A](fn (A, A) -> A, List[A]) -> A"),
        ("sum", "fn (List[int32]) -> int32"),
        ("concat", "fn [A](List[A], List[A]) -> List[A]"),
        ("filter", "fn [A](fn (A) -> bool, List[A]) -> List[A]"),
        ("zip", "fn [A, B](List[A], List[B]) -> List[(A, B)]"),
        ("rev", "fn [A](List[A]) -> List[A]"),
        ("map_accumr", "fn [A, B, C](fn (A, B) -> (A, C), A, List[B]) -> (A, List[C])"),
        ("map_accuml", "fn [A, B, C](fn (A, B) -> (A, C), A, List[B]) -> (A, List[C])"),
        ("unfoldr", "fn [A, B](fn (A) -> Option[(A, B)], A) -> List[B]"),
        ("unfoldl", "fn [A, B](fn (A) -> Option[(A, B)], A) -> List[B]"),
        ("tmap", "fn [A, B](fn (A) -> B, Tree[A]) -> Tree[B]"),
        ("size", "fn [A](Tree[A]) -> int32"),
        ("iterate", "fn [A](fn (A) -> A, int32) -> fn (A) -> A"),
        ("nat_double", "fn (nat) -> nat"),
        ("nat_add", "fn (nat, nat) -> nat"),
        ("nat_nth", "fn [A](List[A], nat) -> A"),
        ("nat_update", "fn [A](List[A], nat, A) -> List[A]"),
        ("nat_iterate", "fn [A](fn (A) -> A, nat) -> fn (A) -> A"),
    ],
)
def test_functions_of_the_prelude_have_their_general_types(name: str, general: str) -> None:
    params, _, result = general.removeprefix("fn ").rpartition(") -> ")
    if "-> fn (" in general:
        params, _, result = general.removeprefix("fn ").partition(") -> fn ")
        params, result = params, f"fn {result}"
    brackets, _, types = params.partition("(")
    names = [f"%x{i}" for i in range(len(_parts(types)))]
    typed = ", ".join(f"{n}: {t}" for n, t in zip(names, _parts(types), strict=True))
    text = f"def @use{brackets}({typed}) -> {result} {{ @{name}({', '.join(names)}) }}"
    relay.parse(HEADER + text).check()


def _parts(types: str) -> list[str]:
    """Return the types of a list of types, parted at the commas that stand in no brackets."""
    found, depth = [""], 0
    for sign in types:
        depth += (sign in "([") - (sign in ")]")
        if sign == "," and depth == 0:
            found.append("")
        else:
            found[-1] += sign
    return found


NATS = """
def @nat(%n: int32) -> nat { if (%n == 0) { zero } else { succ(@nat(%n - 1)) } }
def @int(%n: nat) -> int32 { match (%n) { succ(%m) => { 1 + @int(%m) }, zero => { 0 } } }
def @nats(%xs: List[int32]) -> List[nat] { @map(@nat, %xs) }
def @digits(%xs: List[nat]) -> int32 {
  @foldl(fn (%a: int32, %x: nat) -> int32 { %a * 10 + @int(%x) }, 0, %xs)
}
"""


def test_a_list_is_filtered_by_a_nested_pattern() -> None:
    text = f"""
    {NATS}
    def @more_than_one(%n: nat) -> bool {{
      match (%n) {{ succ(succ(_)) => {{ True }}, _ => {{ False }} }}
    }}
    def @main() {{
      let %xs = @nats(Cons(1, Cons(1, Cons(3, Cons(1, Cons(5, Cons(1, Nil)))))));
      @digits(@filter(@more_than_one, %xs))
    }}
    """
    assert run(text) == 35


def test_a_tree_has_a_size_and_is_mapped() -> None:
    text = f"""
    {NATS}
    def @leaf(%n: nat) -> Tree[nat] {{ Rose(%n, Nil) }}
    def @part(%n: nat) -> Tree[nat] {{ Rose(%n, Cons(@leaf(%n), Cons(@leaf(%n), Nil))) }}
    def @total(%t: Tree[nat]) -> int32 {{
      match (%t) {{
        Rose(%n, %more) => {{ @int(%n) + @sum(@map(@total, %more)) }}
      }}
    }}
    def @main() {{
      let %p = @part(zero);
      let %tree = Rose(zero, Cons(%p, Cons(%p, Cons(%p, Nil))));
      (@size(%tree), @total(@tmap(fn (%n: nat) -> nat {{ succ(%n) }}, %tree)))
    }}
    """
    assert run(text) == (10, 10)


def test_lists_of_lists_are_zipped_as_far_as_the_shorter_goes() -> None:
    text = """
    def @main() {
      let %xs = Cons(1, Cons(2, Cons(3, Nil)));
      let %xss = Cons(Cons(4, Nil), Cons(Cons(5, Cons(6, Nil)), Nil));
      let %both = @zip(%xs, %xss);
      (@length(%both), @sum(@map(fn (%p: (int32, List[int32])) { %p.0 * @sum(%p.1) }, %both)),
       @length(@zip(%xss, Cons(1, Nil))))
    }
    """
    assert run(text) == (2, 4 + 2 * 11, 1)


# Values.


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("()", None),
        ("1", 1),
        ("(1, 2, (3, 4))", (1, 2, (3, 4))),
        ("let %t = (1, 2, (3, 4)); (%t.0, %t.1, %t.2, %t.2.0, %t.2.1)", (1, 2, (3, 4), 3, 4)),
        ("let %v = (); (%v, %v)", (None, None)),
        ("add(1, 2)", 3),
        ("({ let %a = 1; %a + 1 }, { let %b = 2; %b + 1 }, { let %c = 3; %c + 1 })", (2, 3, 4)),
        ("@id(@id)(1)", 1),
        ("let %id = fn (%x) { %x }; %id(%id)(2)", 2),
        ("let %id = fn [T](%x: T) -> T { %x }; (%id(1), %id(()), %id(%id)(2))", (1, None, 2)),
        (
            "let %id = fn (%x) { %x }; let %two = fn (%x) { %id(%id)(%x) }; (%two(2), %two(True))",
            (2, True),
        ),
        ("match (@id((1, ref(2)))) { (%a, %cell) => { %a + ref_read(%cell) } }", 3),
        ("@hd(@id(Cons(4, Nil)))", 4),
        ("let %p = @id(ref((1, 2))); ref_write(%p, (3, 4)); ref_read(%p).1", 4),
    ],
)
def test_a_value_is_what_it_stands_for(body: str, value: Any) -> None:
    assert of(body) == value


def test_a_tensor_is_what_it_stands_for() -> None:
    x = torch.tensor([[1.0, 1.0], [2.0, 2.0]])
    assert run("def @main(%x: Tensor[(2, 2), float32]) { %x }", x) == x.tolist()


BOX = """
type Box[A] { Box(A) }
def @open[A](%b: Box[A]) -> A { match (%b) { Box(%x) => { %x } } }
"""


def test_a_box_holds_a_number_or_nothing() -> None:
    assert run(f"{BOX} def @main() {{ (@open(Box(1)), @open(Box(()))) }}") == (1, None)
    assert run(f"{BOX} def @main() {{ @open(@open(Box(Box(2)))) }}") == 2
    assert run(f"{BOX} def @main() {{ @sum(@map(@open, @map(Box, Cons(2, Cons(3, Nil))))) }}") == 5


def test_local_and_global_recursion_copy_a_list() -> None:
    text = """
    def @copy[A](%xs: List[A]) -> List[A] {
      match (%xs) { Cons(%x, %more) => { Cons(%x, @copy(%more)) }, Nil => { Nil } }
    }
    def @main() {
      let %copy = fn (%xs: List[int32]) -> List[int32] {
        match (%xs) { Cons(%x, %more) => { Cons(%x, %copy(%more)) }, Nil => { Nil } }
      };
      let %digits = fn (%xs: List[int32]) -> int32 {
        @foldl(fn (%a: int32, %x: int32) -> int32 { %a * 10 + %x }, 0, %xs)
      };
      (%digits(%copy(Cons(1, Cons(2, Cons(3, Nil))))), %digits(@copy(Cons(1, Cons(2, Nil)))),
       @hd(@copy(Cons((), Nil))))
    }
    """
    assert run(text) == (123, 12, None)


def test_functions_are_passed_named_and_unnamed() -> None:
    text = """
    def @one(%f: fn (int32) -> int32) -> int32 { %f(0) }
    def @inc(%x: int32) -> int32 { %x + 1 }
    def @main() {
      (@one(fn (%x: int32) -> int32 { %x + 1 }), @one(@inc) + 1, @compose(@inc, @inc)(1))
    }
    """
    assert run(text) == (1, 2, 3)


def test_a_function_is_given_back_and_called() -> None:
    module = relay.parse(
        f"{HEADER} def @inc(%x: int32) -> int32 {{ %x + 1 }} def @main() {{ @inc }}"
    )
    for call in (module["main"], module["main"].interpret):
        assert int(call()(2)) == 3


def test_tensors_are_stacked_and_split() -> None:
    x, y = torch.rand(2, 2), torch.rand(2, 2)
    kind = "Tensor[(2, 2), float32]"
    text = f"""
    def @main(%x: {kind}, %y: {kind}) {{
      let %parts = split(stack((%x, %y), axis=0), indices_or_sections=2, axis=0);
      (%parts.1, concatenate((subtract(%x, %y), %y), axis=1))
    }}
    """
    second, joined = run(text, x, y)
    assert second == [y.tolist()]
    assert joined == torch.cat((x - y, y), dim=1).tolist()


def test_batches_are_normalised() -> None:
    x, (scale, shift, mean, var) = torch.rand(3, 4, 2), torch.rand(4, 4)
    text = """
    def @main(%x: Tensor[(3, 4, 2), float32], %g: Tensor[(4), float32], %b: Tensor[(4), float32],
              %m: Tensor[(4), float32], %v: Tensor[(4), float32]) {
      nn.batch_norm(%x, %g, %b, %m, %v).0
    }
    """
    expected = torch.nn.functional.batch_norm(x, mean, var, scale, shift, eps=1e-5)
    main = relay.parse(HEADER + text)["main"]
    torch.testing.assert_close(main(x, scale, shift, mean, var), expected)
    torch.testing.assert_close(main.interpret(x, scale, shift, mean, var), expected)


# Control.


def test_a_function_that_one_branch_calls() -> None:
    text = """
    def @other(%x: int32) -> int32 { %x + 1 }
    def @main(%c: bool, %x: int32) -> int32 { if (%c) { %x } else { @other(%x) } }
    """
    assert (run(text, True, 1), run(text, False, 1)) == (1, 2)


def test_loops_count_and_sum_from_a_bound_of_zero_on() -> None:
    text = """
    def @count(%n: int32) -> int32 { if (%n == 0) { 0 } else { 1 + @count(%n - 1) } }
    def @sum_up(%n: int32, %acc: int32) -> int32 {
      if (%n < 1) { %acc } else { @sum_up(%n - 1, %acc + %n) }
    }
    def @main(%n: int32) { (@count(%n), @sum_up(%n, 0)) }
    """
    assert (run(text, 0), run(text, 1), run(text, 10)) == ((0, 0), (1, 1), (10, 55))


def test_a_loop_reads_a_variable_from_outside() -> None:
    text = """
    def @main(%x: float32, %n: int32) -> float32 {
      let %loop = fn (%i: int32, %acc: float32) -> float32 {
        if (%i == 0) { %acc } else { %loop(%i - 1, %acc + %x) }
      };
      %loop(%n, 0f)
    }
    """
    assert (run(text, 1.5, 4), run(text, 1.5, 0)) == (6.0, 0.0)


def test_shapes_are_changed_one_after_the_other() -> None:
    x = torch.rand(2, 3, 4)
    text = """
    def @main(%x: Tensor[(2, 3, 4), float32]) {
      reshape(reshape(reshape(%x, newshape=[6, 4]), newshape=[-1]), newshape=[4, -1])
    }
    """
    assert run(text, x) == x.reshape(4, 6).tolist()
