"""Matches as inference checks them: types of patterns, missing cases, cases never reached."""

from __future__ import annotations

import warnings

import pytest

from pyrelay.diagnostics.diagnostic import CheckError, Diagnostic, RelayWarning, RunError
from pyrelay.infer import infer, unreachable_cases
from pyrelay.runtime.compile.evaluator import evaluate
from pyrelay.runtime.compile.program import Program
from pyrelay.text.parser import parse_module

DATA = """
type List[A] { Nil, Cons(A, List[A]) }
type Box[A] { Box(A) }
"""


def text_of(expr: str, params: str) -> str:
    """Return the text of a module whose `main` gives an expression."""
    return f"{DATA} def @main({params}) {{ {expr} }}"


def mistakes(expr: str, params: str = "%x: List[int64]") -> tuple[Diagnostic, ...]:
    """Return the mistakes of a function that gives an expression."""
    with pytest.raises(CheckError) as caught:
        infer(parse_module(text_of(expr, params)))
    return caught.value.diagnostics


def unreached(expr: str, params: str = "%x: List[int64]") -> list[str]:
    """Return the patterns of an expression that are never reached."""
    found = unreachable_cases(infer(parse_module(text_of(expr, params))))
    primaries = [p.diagnostic().primary for p in found]
    return [label.span.text for label in primaries if label is not None]


def test_a_missing_case_is_a_mistake_with_a_pattern_for_it() -> None:
    (found,) = mistakes("match (%x) { Cons(_, Cons(_, _)) => 1 }")
    assert found.code == "RL231"
    assert found.title == "no case matches `Nil`"
    assert found.notes == ("these are not matched either:\nCons(_, Nil)",)
    assert found.help == "add `Nil => ...`, or write `match?` if it need not be complete"


def test_a_match_without_clauses_misses_everything() -> None:
    (found,) = mistakes("match (%x) { }")
    assert found.title == "no case matches `_`"


def test_a_guard_may_be_false() -> None:
    (found,) = mistakes("match (%x) { Nil => 0, Cons(%y, _) if %y > 0 => 1 }")
    assert found.title == "no case matches `Cons(_, _)`"


def test_every_match_of_every_function_is_reported() -> None:
    text = f"""{DATA}
        def @one(%x: bool) {{ match (%x) {{ True => 1 }} }}
        def @two(%x: bool) {{ let %f = fn (%y: bool) {{ match (%y) {{ False => 1 }} }}; %f(%x) }}
        def @ill(%x: bool) {{ match (%x) {{ 1 => 1 }} }}
    """
    with pytest.raises(CheckError) as caught:
        infer(parse_module(text))
    assert caught.value.codes == ("RL231", "RL231", "RL215")


def test_a_local_function_is_reported_once() -> None:
    local = "let %f = fn (%y) { match (%y) { Cons(_, _) => 1 } }; %f(%x) + %f(Cons(2, Nil()))"
    assert [m.code for m in mistakes(local)] == ["RL231"]


def test_a_partial_match_need_not_be_complete_and_fails_where_it_stands() -> None:
    module = infer(parse_module(text_of("match? (%n) { 1 => 2 }", "%n: int64")))
    assert evaluate(module, "main", [1]) == 2
    with pytest.raises(RunError) as caught:
        evaluate(module, "main", [3])
    assert caught.value.codes == ("RL504",)


@pytest.mark.parametrize(
    ("expr", "params", "title", "label"),
    [
        (
            "match (%x) { Cons(_) => 1, _ => 2 }",
            "%x: List[int64]",
            "`Cons` has 2 fields, this pattern has 1",
            "",
        ),
        (
            "match (%x) { Cons(%a, %b, %c) => %a + %c, _ => 2 }",
            "%x: List[int64]",
            "`Cons` has 2 fields, this pattern has 3",
            "",
        ),
        (
            "match (%x) { Box(_) => 1, _ => 2 }",
            "%x: List[int64]",
            "this pattern cannot match the value",
            "this matches a `Box`, the value is List[Int]",
        ),
        (
            "match (%x) { Cons(True, _) => 1, _ => 2 }",
            "%x: List[int64]",
            "this pattern cannot match the value",
            "this matches the bool True, the value is Int",
        ),
        (
            "match (%x) { (_, _, _) => 1, _ => 2 }",
            "%x: (int64, int64)",
            "this pattern cannot match the value",
            "this matches a tuple of 3, the value is tuple[Int, Int]",
        ),
        (
            'match (%x) { "one" => 1, _ => 2 }',
            "%x: int64",
            "this pattern cannot match the value",
            "this matches the string 'one', the value is Int",
        ),
        (
            "match (%x) { 1 => 1, _ => 2 }",
            "%x: Tensor[(2,), int64]",
            "this pattern cannot match the value",
            "this matches the int 1, the value is Tensor[Int, (2,)]",
        ),
    ],
)
def test_a_pattern_for_other_values_is_a_mistake(
    expr: str, params: str, title: str, label: str
) -> None:
    (found,) = mistakes(expr, params)
    assert found.title == title
    assert found.primary is not None
    assert found.primary.text == label


def test_what_a_pattern_says_of_its_value_is_used() -> None:
    text = f"{DATA} def @main(%x) {{ match (%x) {{ Cons(%y: float32, _) => %y, Nil => 0.0 }} }}"
    module = infer(parse_module(text))
    assert str(module.functions["main"].ty).count("AdtType(name='List'") == 1


def test_a_case_that_is_never_reached_is_found_in_its_place() -> None:
    assert unreached("match (%x) { Nil => 0, _ => 1, Cons(_, Nil) => 2 }") == ["Cons(_, Nil)"]
    assert unreached("match (%x) { Nil => 0, Cons(_, _) => 1, _ => 2 }") == ["_"]
    assert unreached("match (%x) { Nil => 0, Cons(_, _) => 1 }") == []


def test_warnings_become_pythons_own_at_the_users_line() -> None:
    program = Program(
        parse_module(text_of("match (%x) {\n _ => 1,\n Nil => 2 }", "%x: List[int64]"), "f.relay"),
        "main",
    )
    (found,) = program.warnings
    assert [label.span.text for label in found.secondary] == ["_"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        program.warn()
    (warning,) = caught
    assert warning.category is RelayWarning
    assert str(warning.message) == "this case is never reached [RL233]"
    assert warning.filename == "f.relay"
    assert warning.lineno == 6
