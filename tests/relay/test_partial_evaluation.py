"""What Relay's own tests of partial evaluation state, by `relay.specialise` of texts.

Sums and products of numbers, functions, matches and references are in seed/test_partial_evaluation
and unit/passes/partial_eval; gradients in test_gradients and test_gradient_values.
"""

from __future__ import annotations

from typing import Any

import pytest

from pyrelay import relay
from tests.relay.reading import HEADER

NATURALS = """
def @count(%n: nat) -> int32 { match (%n) { succ(%m) => { 1 + @count(%m) }, zero => { 0 } } }
def @make(%n: int32) -> nat { if (%n == 0) { zero } else { succ(@make(%n - 1)) } }
def @same(%n: nat) -> nat { match (%n) { succ(%m) => { succ(@same(%m)) }, zero => { zero } } }
def @apart(%x: nat, %y: nat) -> nat {
  match ((%x, %y)) {
    (zero, _) => { %y }, (_, zero) => { %x }, (succ(%a), succ(%b)) => { @apart(%a, %b) } } }
"""
THREE = "succ(succ(succ(zero)))"


def specialised(text: str) -> Any:
    return relay.specialise(relay.parse(HEADER + text)["main"])


def lines(function: Any) -> list[str]:
    """Return the lines of the one function that is left, without the types of its names."""
    text = str(function)
    assert text.count("def @") == 1, text
    inside = text[text.index("def @") :].strip().splitlines()[1:-1]
    return [line.strip().partition(" = ")[2] or line.strip() for line in inside]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("{ let %same = fn (%n: nat) -> nat { match (%n) "
         "{ succ(%m) => { succ(%same(%m)) }, zero => { zero } } }; " + f"@count(%same({THREE})) }}",
         "3i32"),
        (f"@count(@same({THREE}))", "3i32"),
        (f"@count(match ({THREE}) {{ succ(%m) => {{ succ(%m) }}, zero => {{ zero }} }})", "3i32"),
        ("@count(@apart(@make(7), @make(3)))", "4i32"),
        ("@count(@nat_double(@make(3)))", "6i32"),
        ("{ let %f = fn (%n: int32) -> int32 { if (%n == 0) { 0 } else { %n + %f(%n - 1) } };"
         " %f(10) }", "55i32"),
        ("match ((1, 1)) { (%a, %b) => { %a + %b } }", "2i32"),
    ],
)  # fmt: skip
def test_a_closed_program_is_its_value(body: str, expected: str) -> None:
    assert lines(specialised(f"{NATURALS} def @main() {{ {body} }}")) == [expected]


@pytest.mark.parametrize("body", ["(4f, %x).1", "@hd(Cons(%x, Nil))"])
def test_a_value_of_any_type_is_found(body: str) -> None:
    left = specialised(f"def @main[A](%x: A) {{ {body} }}")
    assert lines(left) == ["%x"]
    assert left(2.0) == 2.0


@pytest.mark.parametrize(
    "body",
    [
        # A closure that writes is called in either branch, and after them.
        "let %r = ref(0); let %up = fn () { ref_write(%r, ref_read(%r) + 1) };"
        " if (%d) { %up() } else { %up() }; %up(); ref_read(%r)",
        # A closure that a branch gives reads what is written after the branch.
        "let %r = ref(0); let %read = fn () -> int32 { ref_read(%r) };"
        " let %f = if (%d) { %read } else { %read }; ref_write(%r, 2); %f()",
    ],
)
def test_branches_hide_nothing_of_references(body: str) -> None:
    text = f"def @main(%d: bool) {{ {body} }}"
    left, whole = specialised(text), relay.parse(HEADER + text)["main"]
    assert lines(left) == ["2i32"]
    assert [int(f(d)) for f in (left, whole) for d in (True, False)] == [2] * 4


def test_a_function_is_mapped_over_a_list_display() -> None:
    text = "def @main() { @map(fn (%x: int32) { %x }, Cons(1, Cons(2, Cons(3, Nil)))) }"
    assert lines(specialised(text)) == [
        "Nil[int32]();",
        "Cons[int32](3i32, %nil);",
        "Cons[int32](2i32, %cons);",
        "Cons[int32](1i32, %cons_1);",
        "%cons_2",
    ]


def test_an_element_of_a_list_display_is_updated() -> None:
    body = "@nat_update(Cons(1, Cons(2, Nil)), succ(zero), %x)"
    left = specialised(f"def @main(%x: int32) {{ {body} }}")
    assert [line for line in lines(left) if "Cons" in line] == [
        "Cons[int32](%x, %nil);",
        "Cons[int32](1i32, %cons);",
    ]


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("def @loop(%a: int32) -> int32 { @loop(%a) } def @main() { @loop(1) }", ["@loop_1()"]),
        ("def @main() { let %loop = fn (%a: int32) -> int32 { %loop(%a) }; %loop(1) }",
         ["@main.loop_1()"]),
        ("def @swap(%a: int32, %b: int32) -> int32 { @swap(%b, %a) } def @main() { @swap(1, 2) }",
         ["@swap_1()"]),
    ],
)  # fmt: skip
def test_a_loop_without_an_end_stays_a_call(text: str, calls: list[str]) -> None:
    functions = str(specialised(text)).split("def @")[1:]
    assert functions[0].splitlines()[1].strip() in calls
    assert len(functions) <= 3


def test_an_operator_on_a_tuple_stays() -> None:
    kind = "Tensor[(2, 3), float32]"
    left = specialised(f"def @main(%x: {kind}, %y: {kind}) {{ concatenate((%x, %y), axis=0) }}")
    assert lines(left) == ["(%x, %y);", "cat(%t);", "%cat"]
