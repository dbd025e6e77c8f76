"""Programs in Relay's text give what Relay's evaluators gave."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyrelay import api
from pyrelay.diagnostics.diagnostic import RunError
from tests.relay.reading import HEADER
from tests.seed.values import agree


def run(text: str, *args: Any) -> Any:
    """Return the value of `@main`, which all executors must agree on."""
    return agree(api.parse(HEADER + text)["main"], *args)


def of(body: str, result: str = "") -> Any:
    return run(f"{LISTS} def @main() {result} {{ {body} }}")


LISTS = """
def @count(%n: nat) -> int32 { match (%n) { succ(%m) => { 1 + @count(%m) }, zero => { 0 } } }
def @make(%n: int32) -> nat { if (%n == 0) { zero } else { succ(@make(%n - 1)) } }
def @digits(%xs: List[int32]) -> int32 {
  @foldl(fn (%a: int32, %x: int32) -> int32 { %a * 10 + %x }, 0, %xs)
}
def @inc(%x: int32) -> int32 { %x + 1 }
def @double(%x: int32) -> int32 { %x * 2 }
"""
"""`@digits` shows a list of digits as one number."""

ONE_TWO_THREE = "Cons(1, Cons(2, Cons(3, Nil)))"


# The prelude, with Relay's orders.


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("@count(succ(succ(zero)))", 2),
        ("@count(@nat_double(@make(1)))", 2),
        ("@count(@nat_add(@make(1), @make(1)))", 2),
        (f"@hd({ONE_TWO_THREE})", 1),
        (f"@digits(@tl({ONE_TWO_THREE}))", 23),
        (f"@nth({ONE_TWO_THREE}, 2)", 3),
        (f"@digits(@update({ONE_TWO_THREE}, 1, 9))", 193),
        (f"@length({ONE_TWO_THREE})", 3),
        ("@digits(@map(@inc, Cons(0, Cons(0, Nil))))", 11),
        (
            "@digits(@foldl(fn (%y: List[int32], %x: int32) -> List[int32] "
            "{ Cons(%x, Cons(%x, %y)) }, Nil, " + ONE_TWO_THREE + "))",
            332211,
        ),
        (
            "@digits(@foldr(fn (%x: int32, %y: List[int32]) -> List[int32] { Cons(%x, %y) }, Nil, "
            + ONE_TWO_THREE
            + "))",
            123,
        ),
        (f"@foldr1(add, {ONE_TWO_THREE})", 6),
        ("@sum(Cons(1, Cons(2, Nil)))", 3),
        ("@digits(@concat(Cons(1, Cons(2, Nil)), Cons(3, Cons(4, Nil))))", 1234),
        (
            "@digits(@filter(fn (%x: int32) -> bool { %x > 1 }, "
            "Cons(1, Cons(1, Cons(3, Cons(1, Cons(5, Cons(1, Nil))))))))",
            35,
        ),
        (f"@digits(@rev({ONE_TWO_THREE}))", 321),
        ("@digits(@unfoldr(@down, 3))", 321),
        ("@digits(@unfoldl(@down, 3))", 123),
        ("@compose(@inc, @double)(2)", 5),
        ("@iterate(@double, 2)(3)", 12),
        ("@nat_iterate(@double, @make(3))(1)", 8),
        ("@flip(subtract)(1, 10)", 9),
        (f"@nat_nth({ONE_TWO_THREE}, @make(1))", 2),
        (f"@digits(@nat_update({ONE_TWO_THREE}, @make(2), 9))", 129),
        ("@size(Rose(0, Cons(Rose(0, Nil), Cons(Rose(0, Nil), Nil))))", 3),
        (f"@length(@zip({ONE_TWO_THREE}, Cons(1, Nil)))", 1),
        (f"@id({ONE_TWO_THREE} ) ; 1", 1),
    ],
)
def test_the_prelude_gives_relays_values(body: str, expected: int) -> None:
    down = """
    def @down(%n: int32) -> Option[(int32, int32)] {
      if (%n == 0) { None } else { Some((%n - 1, %n)) }
    }
    """
    assert run(f"{LISTS} {down} def @main() {{ {body} }}") == expected


def test_map_accumr_goes_from_right_to_left() -> None:
    step = "fn (%a: int32, %x: int32) -> (int32, int32) { (%x + %a, %x + %a) }"
    body = f"let %r = @map_accumr({step}, 0, {ONE_TWO_THREE}); (%r.0, @digits(%r.1))"
    assert of(body) == (6, 653)


def test_map_accuml_gives_its_outputs_last_first() -> None:
    step = "fn (%a: int32, %x: int32) -> (int32, int32) { (%x + %a, %x) }"
    body = f"let %r = @map_accuml({step}, 0, {ONE_TWO_THREE}); (%r.0, @digits(%r.1))"
    assert of(body) == (6, 321)


def test_optionals_are_matched_in_a_fold() -> None:
    body = """
    @digits(@foldr(fn (%o: Option[int32], %xs: List[int32]) -> List[int32] {
      match (%o) { Some(%x) => { Cons(%x, %xs) }, None => { %xs } }
    }, Nil, Cons(Some(3), Cons(None, Cons(Some(1), Nil)))))
    """
    assert of(body) == 31


def test_trees_are_mapped() -> None:
    body = """
    match (@tmap(@inc, Rose(0, Cons(Rose(0, Nil), Nil)))) {
      Rose(%x, Cons(Rose(%y, Nil), Nil)) => { (%x, %y) },
      _ => { (0, 0) },
    }
    """
    assert of(body) == (1, 1)


def test_a_text_may_define_what_the_prelude_has() -> None:
    text = """
    type List[A] { Cons(List[A], A), Nil }
    def @length(%xs: List[int32]) -> int32 { match (%xs) { Cons(_, %n) => { %n }, Nil => { 0 } } }
    def @main() { @length(Cons(Nil, 7)) }
    """
    assert run(text) == 7


# Matches.


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("match (3) { _ => { 3 } }", 3),
        ("match (Cons(1, Nil)) { %v => { 0 }, Cons(_, _) => { 1 } }", 0),
        ("match (Cons(1, Cons(2, Nil))) { Cons(_, Cons(%s, _)) => { %s }, _ => { 0 } }", 2),
        ("match ((1, 1)) { (%a, %b) => { %a + %b } }", 2),
        ("match (1, 2) { (%a, %b) => { %b } }", 2),
    ],
)
@pytest.mark.filterwarnings("ignore:.*never")
def test_the_first_clause_that_matches_wins(body: str, expected: int) -> None:
    assert of(body) == expected


def test_the_matched_value_is_evaluated_once() -> None:
    body = """
    let %r = ref(0);
    let %m = match ({ ref_write(%r, ref_read(%r) + 1); Some(ref_read(%r)) }) {
      Some(%x) => { %x }, None => { 0 }
    };
    (%m, ref_read(%r))
    """
    assert of(body) == (1, 1)


@pytest.mark.parametrize("body", ["@hd(Nil)", "@tl(Nil)", "@foldr1(add, Nil)"])
def test_a_partial_match_fails_where_nothing_matches(body: str) -> None:
    text = f"{HEADER} def @main() {{ let %x: List[int32] = Nil; {body.replace('Nil', '%x')} }}"
    main = api.parse(text)["main"]
    for call in (main, main.interpret):
        with pytest.raises(RunError):
            call()


# Evaluation order, references, closures, recursion.


def test_evaluation_goes_from_left_to_right() -> None:
    body = """
    let %r = ref(0);
    let %next = fn () -> int32 { ref_write(%r, ref_read(%r) + 1); ref_read(%r) };
    (%next(), %next(), (%next(), %next()), %next())
    """
    assert of(body) == (1, 2, (3, 4), 5)


def test_only_the_branch_that_is_taken_has_its_effect() -> None:
    text = """
    def @main(%c: bool) {
      let %r = ref(0);
      if (%c) { ref_write(%r, 1) } else { ref_write(%r, 2) };
      ref_read(%r)
    }
    """
    assert (run(text, True), run(text, False)) == (1, 2)


def test_references_are_read_and_written() -> None:
    assert of(
        "let %r = ref(1); let %s = %r; let %a = ref_read(%r); ref_write(%s, 2); (%a, ref_read(%r))"
    ) == (1, 2)
    assert of("let %r = ref(1); ref_write(%r, 2)") is None
    assert of("let %r = ref(fn (%x: int32) -> int32 { %x + 1 }); ref_read(%r)(2)") == 3
    assert of("let %p = (ref(1), ref(2)); ref_write(%p.0, ref_read(%p.1)); ref_read(%p.0)") == 2


def test_closures_keep_what_they_captured() -> None:
    assert of("fn (%y: int32) { fn (%x: int32) { %x + %y } }(1)(2)") == 3
    assert of("let %pair = (fn (%x: int32) { %x + 1 }, 2); %pair.0(%pair.1)") == 3
    assert of("@map(fn (%x: int32) -> int32 { %x }, Nil); 4") == 4


def test_loops_and_recursion_give_their_values() -> None:
    text = """
    def @main(%n: int32) -> (int32, int32) {
      let %up = fn (%i: int32, %acc: int32) -> int32 {
        if (%i == 0) { %acc } else { %up(%i - 1, %acc + %i) }
      };
      let %plain = fn (%i: int32) -> int32 { if (%i == 0) { 0 } else { %i + %plain(%i - 1) } };
      (%up(%n, 0), %plain(%n))
    }
    """
    assert run(text, 10) == (55, 55)
    assert run(text, 3000) == (4501500, 4501500)


def test_functions_may_call_each_other() -> None:
    text = """
    def @even(%n: int32) -> bool { if (%n == 0) { True } else { @odd(%n - 1) } }
    def @odd(%n: int32) -> bool { if (%n == 0) { False } else { @even(%n - 1) } }
    def @main(%n: int32) { (@even(%n), @odd(%n)) }
    """
    assert run(text, 10) == (True, False)


def test_two_conditionals_on_one_flag() -> None:
    text = """
    def @main(%b: bool) {
      let %p = if (%b) { (1, 0) } else { (0, 1) };
      let %q = if (%b) { (%p.1, %p.0) } else { (%p.1, %p.0) };
      %q
    }
    """
    assert (run(text, False), run(text, True)) == ((1, 0), (0, 1))


def test_a_function_without_annotations_is_used_at_several_types() -> None:
    assert of("let %id = fn (%x) { %x }; (%id(1), %id(()))") == (1, None)


def test_a_local_function_with_type_parameters_is_used_at_several_types() -> None:
    assert of("let %id = fn [A](%x: A) -> A { %x }; (%id(1), %id(()))") == (1, None)
    assert of("let %id = fn [A](%x: A) -> A { %x }; %id(1)") == 1
    length = """
    let %len = fn [A](%xs: List[A]) -> int32 {
      match (%xs) { Cons(_, %t) => { 1 + %len(%t) }, Nil => { 0 } }
    };
    (%len(Cons(1, Nil)), %len(Cons((), Cons((), Nil))))
    """
    assert of(length) == (1, 2)
    applied = """
    let %apply = fn [A, B](%f: fn (A) -> B, %x: A) -> B { let %y = %x; %f(%y) };
    (%apply(fn (%n: int32) { %n + 1 }, 3), %apply(fn (%u: ()) { 5f }, ()))
    """
    assert of(applied) == (4, 5.0)


def test_a_global_function_is_polymorphic() -> None:
    assert of("(@id(1), @id((2, 3)))") == (1, (2, 3))


def test_mentions_of_globals_are_values() -> None:
    assert of("let %f = @inc; (%f, 1).0(2)") == 3


# Gradients.


@pytest.mark.parametrize(
    ("body", "slope"),
    [
        ("%x + %x", 2.0),
        ("%x - %x", 0.0),
        ("let %y = %x + %x; %y + %y", 4.0),
        ("let %t = (%x, %x, %x); %t.0 + %t.1 - %t.2", 1.0),
        ("let %r = ref(%x); ref_write(%r, ref_read(%r) + ref_read(%r)); ref_read(%r)", 2.0),
        ("@hd(@map(@twice, Cons(%x, Nil)))", 2.0),
        ("if (sum(%x) > 0f) { @twice(%x) } else { %x }", 2.0),
    ],
)
def test_a_text_is_differentiated(body: str, slope: float) -> None:
    kind = "Tensor[(10, 10), float32]"
    text = f"""{HEADER}
    def @twice(%t: {kind}) -> {kind} {{ %t + %t }}
    def @main(%x: {kind}) {{ sum({{ {body} }}) }}
    """
    main = api.parse(text)["main"]
    x = torch.rand(10, 10)
    expected = torch.full((10, 10), slope)
    torch.testing.assert_close(api.grad(main)(x), expected)
    x.requires_grad_()
    main(x).backward()
    torch.testing.assert_close(x.grad, expected)


@pytest.mark.parametrize("rows", ["2", "?"])
@pytest.mark.parametrize(
    "iterated", ["@nat_iterate(@grown, succ(succ(zero)))(%x)", "@iterate(@grown, 2)(%x)"]
)
def test_a_function_that_is_iterated_is_differentiated(iterated: str, rows: str) -> None:
    kind = f"Tensor[({rows}, 3), float32]"
    text = f"""{HEADER}
    def @grown(%t: {kind}) {{ %t + %t * %t }}
    def @main(%x: {kind}) {{ sum({iterated}) }}
    """
    x = torch.rand(2, 3, requires_grad=True)
    y = x + x * x
    (y + y * y).sum().backward()
    torch.testing.assert_close(api.grad(api.parse(text)["main"])(x.detach()), x.grad)


def test_second_derivatives_of_a_text() -> None:
    main = api.parse(f"{HEADER} def @main(%x: float32) {{ %x * %x * %x }}")["main"]
    assert api.grad(api.grad(main))(2.0) == 12.0
    value, slope = api.value_and_grad(main)(2.0)
    assert (value, slope) == (8.0, 12.0)
